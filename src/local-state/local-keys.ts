// The signing keys of `grantry dev`: a ring for each SigningKey manifest, and the rings that an install has without one.
// The keys are in `.grantry/keys/`, their states in a record. The controller's planner decides which key is made, signs,
// retires and is removed. A new key signs at once: there is no other replica and no long-lived cache to wait for.

import { admitKey, type KeyVerdict } from '../admission/keys/admit-key.ts';
import { DEFAULT_SIGNING_KEYS } from '../admission/keys/default-signing-keys.ts';
import type { StoredKey } from '../admission/keys/key-secret.ts';
import { isReplaced, mayPublish, revokedKeyIds, servedKeys } from '../admission/keys/served-keys.ts';
import type { SourceObject } from '../admission/kinds/manifest.ts';
import { rotationRequests } from '../controller/reconciling/rotation-requests.ts';
import {
  desiredRing,
  type KeyPlan,
  type KeyStep,
  ORPHANS_RETAIN_MILLISECONDS,
  planKeys,
  planOrphans,
} from '../controller/signing-keys/key-plan.ts';
import type { KubernetesObject } from '../kubernetes/objects/resources.ts';
import type { Clock } from '../oauth/ports/ports.ts';
import { generateSigningKeyPem, importSigningKey, KeyRing, type SigningKey } from '../oauth/registry/keys.ts';
import type { SigningAlgorithm } from '../oauth/values/signature.ts';
import { LocalRecord } from './local-record.ts';
import { StateError } from './state-error.ts';
import type { StateFiles } from './state-files.ts';

/** A key, and the file with its material. */
interface FiledKey extends StoredKey {
  readonly file: string;
}

const KEY_FILE = /^keys\/(?<ring>.+)\.(?<algorithm>ES256|ES384|RS256|PS256|EdDSA)(-\d+)?\.\d+\.pem$/;

export interface LocalKeysOptions {
  readonly state: StateFiles;
  readonly clock: Clock;
  readonly releaseNamespace: string;
}

/** What became of the keys of a folder. */
export interface ReconciledKeys {
  readonly ring: KeyRing;
  /** A line for each ring that has changed: its first key is no change. */
  readonly rotations: readonly string[];
  /** When the next step is due, in epoch milliseconds; undefined: only a change makes it due. */
  readonly dueAt: number | undefined;
}

/** The keys of a folder of manifests. */
export class LocalKeys {
  readonly #options: LocalKeysOptions;
  readonly #record: LocalRecord<readonly FiledKey[]>;
  /** The keys that were served last. */
  #served: readonly FiledKey[] | undefined;
  /** A cache of imported keys by file and state: an import takes a millisecond. */
  readonly #imported = new Map<string, { readonly pem: string; readonly key: SigningKey }>();

  constructor(options: LocalKeysOptions) {
    this.#options = options;
    this.#record = new LocalRecord(options.state, `keys.${options.releaseNamespace}`);
  }

  /**
   * The ring of all SigningKeys of the folder, after every step that is due.
   * @throws StateError for a key file or record that cannot be read: the tokens that a key signed must not become
   * invalid silently
   */
  async reconcile(verdicts: readonly KeyVerdict[]): Promise<ReconciledKeys> {
    const { releaseNamespace } = this.#options;
    const own = verdicts.filter(({ object }) => object.namespace === releaseNamespace);
    const missing = DEFAULT_SIGNING_KEYS.filter(({ isMissing }) => isMissing(own.map(({ object }) => object)));
    const rings = [...own, ...(await Promise.all(missing.map((each) => this.#defaultRing(each))))];
    for (;;) {
      const recorded = await this.#record.read();
      const before = await this.#present(recorded.value ?? (await this.#unrecorded(rings)));
      const { keys, dueAt } = await this.#planned(rings, before);
      if (recorded.value === undefined || JSON.stringify(keys) !== JSON.stringify(recorded.value)) {
        await this.#record.write(recorded, keys);
        this.#served ??= before;
        continue;
      }
      const rotations = changedRings(this.#served ?? keys, keys).map(
        ({ name, changes }) => `SigningKey ${releaseNamespace}/${name}: ${changes.join('; ')}`,
      );
      const served = servedKeys(
        rings.map(({ object }) => object),
        keys,
      );
      const ring = new KeyRing(await Promise.all(served.map((key) => this.#import(key, key.state))));
      this.#served = keys;
      return { ring, rotations, dueAt };
    }
  }

  /** A ring that no manifest describes, as the controller would create it. */
  async #defaultRing({ name, spec }: (typeof DEFAULT_SIGNING_KEYS)[number]): Promise<KeyVerdict> {
    const { releaseNamespace: namespace } = this.#options;
    const manifest = { apiVersion: 'grantry.dev/v1alpha1', kind: 'SigningKey', metadata: { name, namespace }, spec };
    const object: SourceObject = { namespace, name, uid: name, createdAt: 0, generation: 1, manifest };
    return await admitKey(object, {
      unknownFields: 'refuse',
      releaseNamespace: namespace,
      references: { secret: () => undefined },
      revokedKeyIds: new Set(),
      olderPublisher: () => undefined,
    });
  }

  /** Those keys whose file is there. */
  async #present(keys: readonly FiledKey[]): Promise<readonly FiledKey[]> {
    const pems = await Promise.all(keys.map(({ file }) => this.#options.state.read(file)));
    return keys.filter((_, index) => pems[index] !== undefined);
  }

  /** The keys of a folder that has no record of their states yet, which none of its requests for a rotation is about. */
  async #unrecorded(rings: readonly KeyVerdict[]): Promise<readonly FiledKey[]> {
    const { state, clock, releaseNamespace } = this.#options;
    const now = clock.now();
    const keys: FiledKey[] = [];
    for (const file of await state.list('keys')) {
      const { ring = '', algorithm } = KEY_FILE.exec(file)?.groups ?? {};
      if (!ring.startsWith(`${releaseNamespace}.`)) continue;
      const signingKeyName = ring.slice(releaseNamespace.length + 1);
      // The pattern matches no other algorithm.
      const found = { signingKeyName, algorithm: algorithm as SigningAlgorithm, file };
      const { kid: keyId } = await this.#import(found, 'Active');
      const object = rings.find(({ object: { name } }) => name === signingKeyName)?.object;
      const handledRotateAt = object && requestsOn(object).rotateAt;
      const times = { publishedAt: now, activatedAt: now, removeAfter: undefined };
      keys.push({ ...found, ...times, keyId, state: 'Active', handledRotateAt });
    }
    return keys;
  }

  /** The keys after every step that is due now. */
  async #planned(rings: readonly KeyVerdict[], before: readonly FiledKey[]) {
    const now = this.#options.clock.now();
    const objects = rings.map(({ object }) => object);
    const revoked = revokedKeyIds(objects);
    const due: number[] = [];
    let keys = before;
    const of = (name: string) => keys.filter(({ signingKeyName }) => signingKeyName === name);
    const carryOut = async (plan: () => KeyPlan, verdict?: KeyVerdict): Promise<void> => {
      let planned = plan();
      for (; planned.steps.length > 0; planned = plan()) {
        for (const step of planned.steps) keys = await this.#stepped(keys, step, verdict);
      }
      if (planned.requeueAt !== undefined) due.push(planned.requeueAt);
    };
    for (const verdict of rings) {
      const { manifest, object } = verdict;
      if (manifest === undefined) continue;
      const { rotateAt } = requestsOn(object);
      const desired = { ...desiredRing(verdict, manifest, { revoked, rotateAt }), prePublish: 0 };
      const facts = () => ({ keys: of(object.name), mayPublish: mayPublish(objects, keys) });
      await carryOut(() => planKeys({ ...facts(), desired, now, isServedByAll: () => true }), verdict);
    }
    const names = new Set(keys.map(({ signingKeyName }) => signingKeyName));
    for (const name of [...names].filter((each) => !objects.some((object) => object.name === each))) {
      const isReplacedNow = (key: StoredKey) => isReplaced(key, { objects, keys });
      const facts = { now, retain: ORPHANS_RETAIN_MILLISECONDS, isReplaced: isReplacedNow };
      await carryOut(() => planOrphans(of(name), facts));
    }
    return { keys, dueAt: due.length === 0 ? undefined : Math.min(...due) };
  }

  /** The keys after one step of a plan. */
  async #stepped(
    keys: readonly FiledKey[],
    step: KeyStep,
    verdict: KeyVerdict | undefined,
  ): Promise<readonly FiledKey[]> {
    const { state, clock } = this.#options;
    if (step.do === 'make') {
      if (verdict === undefined) return keys;
      const made = await this.#make(keys, verdict);
      const now = clock.now();
      const activatedAt = step.state === 'Active' ? now : undefined;
      const { handledRotateAt } = step;
      return [
        ...keys,
        { ...made, state: step.state, publishedAt: now, activatedAt, removeAfter: undefined, handledRotateAt },
      ];
    }
    const isMeant = ({ keyId, signingKeyName }: StoredKey) =>
      keyId === step.key.keyId && signingKeyName === step.key.signingKeyName;
    if (step.do === 'put') return keys.map((key) => (isMeant(key) ? { ...step.key, file: key.file } : key));
    // Its number may be taken again once the record does not have it: by then the file is gone.
    for (const { file } of keys.filter(isMeant)) await state.remove(file);
    return keys.filter((key) => !isMeant(key));
  }

  /** A key that the ring does not have yet: the imported one, or one that is generated. */
  async #make(keys: readonly FiledKey[], { object, manifest, imported }: KeyVerdict) {
    const { algorithm = 'ES256', rsaModulusBits } = manifest?.spec ?? {};
    const size = algorithm === 'RS256' || algorithm === 'PS256' ? `-${rsaModulusBits}` : '';
    const base = `keys/${object.namespace}.${object.name}.${algorithm}`;
    const free = () => {
      for (let number = 1; ; number++) {
        const file = `${base}${size}.${number}.pem`;
        if (!keys.some((key) => key.file === file)) return file;
      }
    };
    const file = imported === undefined ? free() : `${base}.${imported.kid}.pem`;
    await this.#options.state.keep(file, async () => {
      const exported = imported?.privateKey.export({ format: 'pem', type: 'pkcs8' });
      return String(exported ?? (await generateSigningKeyPem(algorithm, rsaModulusBits))).trimEnd();
    });
    const { kid: keyId } = await this.#import({ file, algorithm }, 'Active');
    return { signingKeyName: object.name, keyId, algorithm, file };
  }

  async #import(
    { file, algorithm }: Pick<FiledKey, 'file' | 'algorithm'>,
    state: SigningKey['state'],
  ): Promise<SigningKey> {
    const pem = (await this.#options.state.read(file)) ?? '';
    const known = this.#imported.get(`${state} ${file}`);
    if (known?.pem === pem) return known.key;
    const key = await importSigningKey(pem, algorithm, state).catch(() => {
      const path = this.#options.state.fileOf(file) ?? file;
      const remedy = 'put it back, or remove it and with it all that it signed';
      throw new StateError(path, `is not a private key in PEM that fits ${algorithm}; ${remedy}`);
    });
    this.#imported.set(`${state} ${file}`, { pem, key });
    return key;
  }
}

function requestsOn({ manifest }: SourceObject) {
  return rotationRequests(manifest as KubernetesObject);
}

/** The rings that had keys before, and what became of each key that changed. */
function changedRings(before: readonly FiledKey[], after: readonly FiledKey[]) {
  const names = [...new Set(before.map(({ signingKeyName }) => signingKeyName))];
  return names.flatMap((name) => {
    const of = (keys: readonly FiledKey[]) => keys.filter(({ signingKeyName }) => signingKeyName === name);
    const known = new Map(of(before).map((key) => [key.keyId, key]));
    const changed = of(after).filter(({ keyId, state }) => known.get(keyId)?.state !== state);
    const removed = of(before).filter(({ keyId }) => !after.some((key) => key.keyId === keyId));
    const changes = [...changed.map(changeOf), ...removed.map(({ keyId }) => `the key ${keyId} is removed`)];
    return changes.length === 0 ? [] : [{ name, changes }];
  });
}

function changeOf({ keyId, state, removeAfter = 0 }: FiledKey): string {
  if (state === 'Active') return `the key ${keyId} signs from now on`;
  if (state === 'Retiring') return `the key ${keyId} verifies until ${new Date(removeAfter).toISOString()}`;
  return state === 'Revoked' ? `the key ${keyId} is revoked` : `the key ${keyId} is published`;
}
