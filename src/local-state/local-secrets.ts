// The client secrets that `grantry dev` generates and rotates: each as a plain file for `$(cat …)` and as the Secret that
// the controller would write, both in `.grantry/secrets/`. What is accepted, and which requests for a rotation are
// handled, is in a record. The controller's planner decides on each step; a plain file that is deleted takes with it all
// that was accepted.

import { stringify } from 'yaml';
import {
  clientSecretKeys,
  clientSecretManifest,
  hasGeneratedSecret,
  MINIMUM_SECRET_BYTES,
} from '../admission/client-secrets/client-secret-manifest.ts';
import { activeVerifiers } from '../admission/client-secrets/client-verifier.ts';
import type { ClientVerdict } from '../admission/clients/admit-client.ts';
import type { OAuthClientManifest } from '../admission/kinds/oauth-client.ts';
import { rotationStep } from '../controller/client-secrets/client-rotation.ts';
import { gracePeriodOf, indexOfSecret } from '../controller/client-secrets/credential-changes.ts';
import {
  type CredentialState,
  readCredentialState,
  verifierSecret,
} from '../controller/client-secrets/credential-state.ts';
import { rotationRequests } from '../controller/reconciling/rotation-requests.ts';
import type { KubernetesObject } from '../kubernetes/objects/resources.ts';
import type { ManifestObject } from '../manifests/objects.ts';
import type { Clock, Random } from '../oauth/ports/ports.ts';
import { generateClientSecret } from '../oauth/registry/client-secret.ts';
import { LocalRecord } from './local-record.ts';
import { StateError } from './state-error.ts';
import type { StateFiles } from './state-files.ts';

export interface LocalSecretsOptions {
  readonly state: StateFiles;
  readonly clock: Clock;
  readonly random: Random;
  readonly issuer: string;
}

/** A client that has a generated secret. */
export type SecretVerdict = ClientVerdict<ManifestObject>;

/** What the record holds of a client. */
interface RecordedSecret {
  /** The verifier Secret that the controller would write. */
  readonly verifiers: unknown;
  /** The secret that the plain file is about to hold. */
  readonly next?: string | undefined;
  /** The one that it held before, where the client's Secret is to hold that too. */
  readonly previous?: string | undefined;
}

/** The state of a client after its last step. */
interface KnownSecret {
  readonly state: CredentialState;
  readonly secret: string;
  readonly previous: string | undefined;
}

/** What became of the secrets of a folder. */
export interface ReconciledSecrets {
  /** Whether the accepted secrets of a client are others than before. */
  readonly isChanged: boolean;
  /** A line for each secret that is another one than before, or that is refused from now on. */
  readonly rotations: readonly string[];
  /** The clients whose secret could not be read or written. */
  readonly faults: ReadonlyMap<SecretVerdict, StateError>;
  /** When the next step is due, in epoch milliseconds; undefined: only a change makes it due. */
  readonly dueAt: number | undefined;
}

/** Generates, keeps, rotates and writes the secrets of clients. */
export class LocalSecrets {
  readonly #options: LocalSecretsOptions;
  readonly #record: LocalRecord<Readonly<Record<string, RecordedSecret>>>;
  /** By uid of the client. */
  readonly #known = new Map<string, KnownSecret>();
  /** The texts of the plain files by name, as long as the files are there and no other process writes the record. */
  readonly #texts = new Map<string, string>();
  #version = 0;
  /** The last written Secret by uid: most clients do not change with a change of the folder. */
  readonly #written = new Map<string, string>();

  constructor(options: LocalSecretsOptions) {
    this.#options = options;
    this.#record = new LocalRecord(options.state, 'secrets');
  }

  /** The verifiers of a client's generated secrets that are accepted now; empty when there is none. */
  verifiersOf(uid: string): readonly Uint8Array[] {
    const known = this.#known.get(uid);
    return known === undefined ? [] : activeVerifiers(known.state, this.#options.clock.now());
  }

  /** The file that holds only the generated secret of a client; undefined when there is none, or none on disk. */
  fileOf(verdict: ClientVerdict): string | undefined {
    const known = isGenerated(verdict) && this.#known.has(verdict.object.uid);
    return known ? this.#options.state.fileOf(plainName(verdict)) : undefined;
  }

  /**
   * Generates the missing secrets and carries out every step of their rotation that is due.
   * @throws StateError when the record cannot be read or written
   */
  async reconcile(verdicts: readonly SecretVerdict[]): Promise<ReconciledSecrets> {
    const own = verdicts.filter((verdict) => isGenerated(verdict) && (verdict.wantsSecret || verdict.client));
    const before = new Map<string, CredentialState>();
    const known = new Map(this.#known);
    for (;;) {
      const recorded = await this.#record.read();
      await this.#forgetTexts(recorded.number);
      const faults = new Map<SecretVerdict, StateError>();
      const due: number[] = [];
      const changes: Record<string, RecordedSecret> = {};
      for (const verdict of own) {
        const { uid } = verdict.object;
        const entry = recorded.value?.[uid];
        const state = this.#known.get(uid)?.state ?? readCredentialState(entry?.verifiers);
        if (state !== undefined && !before.has(uid)) before.set(uid, state);
        try {
          const step = await this.#step(verdict, entry);
          if (step.change !== undefined) changes[uid] = step.change;
          if (step.dueAt !== undefined) due.push(step.dueAt);
        } catch (error) {
          if (!(error instanceof StateError)) throw error;
          faults.set(verdict, error);
        }
      }
      if (Object.keys(changes).length === 0) {
        const rotations = own.flatMap((verdict) => this.#rotationOf(verdict, before.get(verdict.object.uid)) ?? []);
        const isChanged = own.some(({ object: { uid } }) => !isSame(known.get(uid), this.#known.get(uid)));
        return { isChanged, rotations, faults, dueAt: due.length === 0 ? undefined : Math.min(...due) };
      }
      if (await this.#record.write(recorded, { ...recorded.value, ...changes })) this.#version = recorded.number + 1;
    }
  }

  /** Plain files that are gone are made again, and those of another version of the record are read again. */
  async #forgetTexts(version: number): Promise<void> {
    const present = new Set(version === this.#version ? await this.#options.state.list('secrets') : []);
    for (const name of this.#texts.keys()) if (!present.has(name)) this.#texts.delete(name);
    this.#version = version;
  }

  /**
   * Carries out one step of the rotation of a client's secret (client-rotation.ts). What changes is recorded before the
   * plain file is written, and `next` is recorded with it: a process that ends in between continues there.
   */
  async #step(
    verdict: SecretVerdict,
    entry: RecordedSecret | undefined,
  ): Promise<{ readonly change?: RecordedSecret; readonly dueAt?: number | undefined }> {
    const { object } = verdict;
    const manifest = verdict.manifest as OAuthClientManifest;
    const { uid } = object;
    const { clock, random, state } = this.#options;
    const stored = readCredentialState(entry?.verifiers);
    const present = await this.#present(verdict);
    const isReplaced =
      stored !== undefined && entry?.next === undefined && indexOfSecret(uid, present, stored.verifiers) === undefined;
    const step = rotationStep({
      uid,
      now: clock.now(),
      random,
      stored: isReplaced ? { ...stored, verifiers: [] } : stored,
      intervalSeconds: manifest.spec.auth.clientSecret?.rotation.interval,
      gracePeriodSeconds: gracePeriodOf(manifest),
      requests: rotationRequests(object.manifest as unknown as KubernetesObject),
      present,
      isOrphan: false,
      staged: entry?.next,
      unwritten: undefined,
      // The processes on this folder read the record before the file.
      isServed: true,
    });
    const isNew = step.value !== present;
    const previous =
      isNew && clientSecretKeys(manifest.spec).previousClientSecret !== undefined ? present : entry?.previous;
    const recordOf = (after: CredentialState, next?: string): { readonly change: RecordedSecret } => ({
      change: { verifiers: verifierSecret(object, after, NO_INSTALL), next, previous },
    });
    if (step.store !== undefined) return recordOf(step.store, isNew ? step.value : step.next);
    if (isNew) {
      await state.replace(plainName(verdict), step.value);
      this.#texts.set(plainName(verdict), step.value);
    }
    const after = step.storeAfterWrite ?? (stored as CredentialState);
    if (step.storeAfterWrite !== undefined || entry?.next !== undefined) return recordOf(after);
    this.#known.set(uid, { state: after, secret: step.value, previous });
    return { dueAt: step.requeueAt };
  }

  /** The text of the plain file; a new secret where there is none. */
  async #present(verdict: SecretVerdict): Promise<string> {
    const { state, random } = this.#options;
    const name = plainName(verdict);
    const text = this.#texts.get(name) ?? (await state.keep(name, () => generateClientSecret(random)));
    if (Buffer.byteLength(text) < MINIMUM_SECRET_BYTES) {
      throw new StateError(state.fileOf(name) ?? name, `holds less than ${MINIMUM_SECRET_BYTES} bytes; remove it`);
    }
    this.#texts.set(name, text);
    return text;
  }

  /** What became of a client's secret since `before`; undefined when it is as it was, or the client's first. */
  #rotationOf(verdict: SecretVerdict, before: CredentialState | undefined): string | undefined {
    const { uid } = verdict.object;
    const after = this.#known.get(uid)?.state;
    const [newest, ...former] = after?.verifiers ?? [];
    if (before === undefined || after === undefined || newest === undefined) return undefined;
    const isSame = before.verifiers.some(({ verifier }) => Buffer.from(verifier).equals(newest.verifier));
    if (isSame && former.length >= before.verifiers.length - 1) return undefined;
    const end = Math.max(0, ...former.map(({ expiresAt = 0 }) => expiresAt));
    const those =
      end === 0 ? 'those before it are refused' : `the former one is accepted until ${new Date(end).toISOString()}`;
    const file = this.fileOf(verdict);
    if (isSame) return `${verdict.clientId}: a former secret is refused from now on`;
    return `${verdict.clientId} has a new secret${file === undefined ? '' : ` in ${file}`}; ${those}`;
  }

  /** Writes the Secret of a client with a generated secret as the controller would. */
  async writeManifest(verdict: ClientVerdict): Promise<void> {
    const { manifest, object } = verdict;
    const { state, random, issuer } = this.#options;
    const known = this.#known.get(object.uid);
    if (manifest === undefined || known === undefined || !isGenerated(verdict)) return;
    const randomValues: Record<string, string> = {};
    for (const key of manifest.spec.auth.clientSecret?.randomKeys ?? []) {
      // Kept over rotations, therefore in a file of its own.
      const make = () => Buffer.from(random.bytes(32)).toString('base64url');
      randomValues[key] = await state.keep(`${baseName(verdict)}+${key}.random`, make);
    }
    const facts = {
      clientId: verdict.clientId,
      clientSecret: known.secret,
      previousClientSecret: this.#acceptedPrevious(object.uid, known),
      issuer,
    };
    const written = clientSecretManifest({ object, manifest, facts, randomValues });
    const fingerprint = JSON.stringify(written);
    if (this.#written.get(object.uid) === fingerprint) return;
    await state.replace(`${baseName(verdict)}.yaml`, stringify(written).trimEnd());
    this.#written.set(object.uid, fingerprint);
  }

  #acceptedPrevious(uid: string, { state, previous }: KnownSecret): string | undefined {
    return previous !== undefined && indexOfSecret(uid, previous, state.verifiers) ? previous : undefined;
  }
}

/** Whether the same secrets are accepted. */
function isSame(one: KnownSecret | undefined, other: KnownSecret | undefined): boolean {
  const texts = [one, other].map((known) => known?.state.verifiers.map(({ verifier }) => String(verifier)).join());
  return texts[0] === texts[1];
}

const NO_INSTALL = { releaseNamespace: '', className: '' };

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
