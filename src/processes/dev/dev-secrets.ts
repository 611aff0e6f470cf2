// The client secrets that `grantry dev` generates: each as a plain file for `$(cat …)` and as the Secret that the
// controller would write. Both are in `.grantry/secrets/`; when the plain file is deleted, the next start generates a
// new secret.

import { stringify } from 'yaml';
import {
  clientSecretManifest,
  hasGeneratedSecret,
  MINIMUM_SECRET_BYTES,
} from '../../admission/client-secrets/client-secret-manifest.ts';
import type { ClientVerdict } from '../../admission/clients/admit-client.ts';
import type { Random } from '../../oauth/ports/ports.ts';
import { generateClientSecret, secretVerifier } from '../../oauth/registry/client-secret.ts';
import type { DevState } from './dev-state.ts';
import { DevStateError } from './dev-state-error.ts';

export interface DevSecretsOptions {
  readonly state: DevState;
  readonly random: Random;
  readonly issuer: string;
}

/** Generates, keeps and writes the secrets of clients. */
export class DevSecrets {
  readonly #state: DevState;
  readonly #random: Random;
  readonly #issuer: string;
  /** Each secret with its verifiers, by uid of the client. */
  readonly #secrets = new Map<string, { readonly secret: string; readonly verifiers: readonly Uint8Array[] }>();
  /** The last written Secret by uid: most clients do not change with a change of the folder. */
  readonly #written = new Map<string, string>();

  constructor({ state, random, issuer }: DevSecretsOptions) {
    this.#state = state;
    this.#random = random;
    this.#issuer = issuer;
  }

  /** The verifiers of a client's generated secret; empty when there is none. */
  verifiersOf(uid: string): readonly Uint8Array[] {
    return this.#secrets.get(uid)?.verifiers ?? [];
  }

  /** The file that holds only the generated secret of a client; undefined when there is none, or none on disk. */
  fileOf(verdict: ClientVerdict): string | undefined {
    const known = isGenerated(verdict) && this.#secrets.has(verdict.object.uid);
    return known ? this.#state.fileOf(plainName(verdict)) : undefined;
  }

  /** Reads or generates the secret of a client that needs one. */
  async provide(verdict: ClientVerdict): Promise<void> {
    const { uid } = verdict.object;
    const secret = await this.#state.keep(plainName(verdict), () => generateClientSecret(this.#random));
    if (Buffer.byteLength(secret) < MINIMUM_SECRET_BYTES) {
      const file = this.#state.fileOf(plainName(verdict)) ?? plainName(verdict);
      throw new DevStateError(file, `holds less than ${MINIMUM_SECRET_BYTES} bytes; remove it`);
    }
    this.#secrets.set(uid, { secret, verifiers: [secretVerifier(uid, secret)] });
  }

  /** Writes the Secret of a client with a generated secret as the controller would. */
  async writeManifest(verdict: ClientVerdict): Promise<void> {
    const { manifest, object } = verdict;
    const secret = this.#secrets.get(object.uid)?.secret;
    if (manifest === undefined || secret === undefined || !isGenerated(verdict)) return;
    const randomValues: Record<string, string> = {};
    for (const key of manifest.spec.auth.clientSecret?.randomKeys ?? []) {
      // Kept over rotations, therefore in a file of its own.
      const make = () => Buffer.from(this.#random.bytes(32)).toString('base64url');
      randomValues[key] = await this.#state.keep(`${baseName(verdict)}+${key}.random`, make);
    }
    const facts = { clientId: verdict.clientId, clientSecret: secret, issuer: this.#issuer };
    const written = clientSecretManifest({ object, manifest, facts, randomValues });
    const fingerprint = JSON.stringify(written);
    if (this.#written.get(object.uid) === fingerprint) return;
    await this.#state.replace(`${baseName(verdict)}.yaml`, stringify(written).trimEnd());
    this.#written.set(object.uid, fingerprint);
  }
}

// A client may have had a generated secret before it changed to an existing one, or to none.
function isGenerated({ manifest }: ClientVerdict): boolean {
  return manifest !== undefined && hasGeneratedSecret(manifest.spec);
}

function plainName(verdict: ClientVerdict): string {
  return `${baseName(verdict)}.secret`;
}

// A namespace has no dot, so no two clients share a file.
function baseName({ object }: ClientVerdict): string {
  return `secrets/${object.namespace}.${object.name}`;
}
