// The client secrets that `grantry dev` generates: each as a plain file for `$(cat …)` and as the Secret that the cluster
// would write. Both stand in `.grantry/secrets/`; deleting the plain file makes a new secret at the next start.

import { stringify } from 'yaml';
import {
  clientSecretManifest,
  hasGeneratedSecret,
  MINIMUM_SECRET_BYTES,
} from '../../admission/client-secrets/client-secret-manifest.ts';
import type { ClientVerdict } from '../../admission/clients/admit-client.ts';
import type { Random } from '../../oauth/ports/ports.ts';
import { generateClientSecret, secretVerifier } from '../../oauth/registry/client-secret.ts';
import { type DevState, DevStateError } from './dev-state.ts';

export interface DevSecretsOptions {
  readonly state: DevState;
  readonly random: Random;
  readonly issuer: string;
}

/** Generated secrets by uid of their client. */
export class DevSecrets {
  readonly #state: DevState;
  readonly #random: Random;
  readonly #issuer: string;
  /** Each with its verifiers, by uid of the client. */
  readonly #secrets = new Map<string, { readonly secret: string; readonly verifiers: readonly Uint8Array[] }>();
  /** What was last written, by uid: a folder has many clients and one change. */
  readonly #written = new Map<string, string>();

  constructor({ state, random, issuer }: DevSecretsOptions) {
    this.#state = state;
    this.#random = random;
    this.#issuer = issuer;
  }

  /** The verifiers of the secrets made so far; empty when there are none. */
  verifiersOf(uid: string): readonly Uint8Array[] {
    return this.#secrets.get(uid)?.verifiers ?? [];
  }

  /** The file that holds just the generated secret of a client; undefined when there is none, or none on disk. */
  fileOf(verdict: ClientVerdict): string | undefined {
    const known = isGenerated(verdict) && this.#secrets.has(verdict.object.uid);
    return known ? this.#state.fileOf(plainName(verdict)) : undefined;
  }

  /** Reads or makes the secret of a client that wants one. */
  async provide(verdict: ClientVerdict): Promise<void> {
    const { uid } = verdict.object;
    const secret = await this.#state.keep(plainName(verdict), () => generateClientSecret(this.#random));
    if (Buffer.byteLength(secret) < MINIMUM_SECRET_BYTES) {
      const file = this.#state.fileOf(plainName(verdict)) ?? plainName(verdict);
      throw new DevStateError(file, `holds less than ${MINIMUM_SECRET_BYTES} bytes; remove it`);
    }
    this.#secrets.set(uid, { secret, verifiers: [secretVerifier(uid, secret)] });
  }

  /** Writes the Secret of a client with a generated secret as the cluster would have it now. */
  async writeManifest(verdict: ClientVerdict): Promise<void> {
    const { manifest, object } = verdict;
    const secret = this.#secrets.get(object.uid)?.secret;
    if (manifest === undefined || secret === undefined || !isGenerated(verdict)) return;
    const randomValues: Record<string, string> = {};
    for (const key of manifest.spec.auth.clientSecret?.randomKeys ?? []) {
      // Kept over rotations, so it has a file of its own.
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

// A client may have had a generated secret before it got one of its owner's, or none.
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
