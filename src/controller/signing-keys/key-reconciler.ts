// Reconciles one SigningKey: makes, publishes, activates, retires and removes its keys as planned (key-plan.ts,
// key-steps.ts), and writes its status (key-status.ts). The key Secrets are the source of truth; the token servers read
// the same ones.

import { admitKey, type KeyVerdict } from '../../admission/keys/admit-key.ts';
import { DEFAULT_SIGNING_KEYS } from '../../admission/keys/default-signing-keys.ts';
import type { StoredKey } from '../../admission/keys/key-secret.ts';
import { isReplaced, mayPublish, olderPublisher, revokedKeyIds } from '../../admission/keys/served-keys.ts';
import { fieldsOf, type SourceObject } from '../../admission/kinds/manifest.ts';
import { readSecretValue } from '../../admission/references/references.ts';
import { PART_LABEL } from '../../admission/references/secret-parts.ts';
import type { KubernetesApi } from '../../kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, objectKey, SECRETS, SIGNING_KEYS } from '../../kubernetes/objects/resources.ts';
import { sourceOf } from '../../kubernetes/objects/source-object.ts';
import type { ObjectView } from '../../kubernetes/watch/shared-reflector.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { rotationRequests } from '../reconciling/rotation-requests.ts';
import { StaleReadError } from '../reconciling/stale-read.ts';
import { StatusReport } from '../reconciling/status-report.ts';
import { type ObservedReplicas, replicasBehind } from '../replicas/observed-replicas.ts';
import {
  activationTime,
  type DesiredRing,
  desiredRing,
  type KeyFacts,
  nextKey,
  ORPHANS_RETAIN_MILLISECONDS,
  planKeys,
  planOrphans,
} from './key-plan.ts';
import { KeySecrets } from './key-secrets.ts';
import { keyStatus } from './key-status.ts';
import { KeySteps, type Ring } from './key-steps.ts';

export interface KeyReconcilerOptions {
  readonly api: LeaderApi;
  /** Lists without a lease, as the watches do. */
  readonly reader: Pick<KubernetesApi, 'list'>;
  /** The SigningKeys of the release namespace. */
  readonly signingKeys: ObjectView;
  /** The Secrets of the release namespace, those of keys at least. */
  readonly secrets: ObjectView;
  readonly releaseNamespace: string;
  readonly replicas: ObservedReplicas;
  readonly record: (event: EventFacts) => void;
  readonly clock: Clock;
}

/** Planning and execution repeat until a plan has no steps; this often at most in one reconcile. */
const ROUNDS = 3;
/** How often the Secret of an imported key is read, as it is not watched: while it is missing, and once it is there. */
const IMPORT_MISSING_MILLISECONDS = 1000;
const IMPORT_MILLISECONDS = 60_000;
/** How often a ring without SigningKey is reconciled until another one signs in its place. */
const ORPHANS_MILLISECONDS = 1000;

/** Whether the next key may sign. */
interface Gate extends Pick<KeyFacts, 'isServedByAll'> {
  /** The replicas that were queried and do not have it. */
  readonly behind: readonly string[];
}

export class KeyReconciler {
  readonly #options: KeyReconcilerOptions;
  readonly #steps: KeySteps;
  readonly #statuses: StatusReport;

  constructor(options: KeyReconcilerOptions) {
    this.#options = options;
    this.#steps = new KeySteps(options);
    this.#statuses = new StatusReport(options, SIGNING_KEYS);
  }

  /** The keys of the SigningKeys that {@link reconcile} creates. */
  get missingRings(): readonly string[] {
    const objects = this.#rings();
    return DEFAULT_SIGNING_KEYS.filter(({ isMissing }) => isMissing(objects)).map(({ name }) => this.#keyOf(name));
  }

  /** The rings that have a key with this id: the verdict on each depends on the others. */
  ringsWith(keyId: string): readonly string[] {
    const { releaseNamespace: namespace } = this.#options;
    const keys = this.#watchedSecrets()
      .keys()
      .filter((key) => key.keyId === keyId);
    return keys.map(({ signingKeyName: name }) => objectKey({ namespace, name }));
  }

  /**
   * @param key `<release namespace>/<name>`
   * @returns milliseconds until the key is requeued without a change; undefined: never
   * @throws KubernetesError with reason `Conflict` or `AlreadyExists`, or StaleReadError, when something changed
   * meanwhile: requeue
   */
  async reconcile(key: string): Promise<number | undefined> {
    const object = this.#options.signingKeys.get(key);
    return object === undefined
      ? await this.#withoutObject(key)
      : await this.#withObject(object, this.#watchedSecrets());
  }

  async #withoutObject(key: string): Promise<number | undefined> {
    const { clock, releaseNamespace: namespace, api } = this.#options;
    const objects = this.#rings();
    const missing = DEFAULT_SIGNING_KEYS.find(({ name, isMissing }) => this.#keyOf(name) === key && isMissing(objects));
    if (missing !== undefined) {
      const ring = { metadata: { name: missing.name, namespace }, spec: missing.spec };
      // The watch delivers it.
      await api.create(SIGNING_KEYS, ring);
      return undefined;
    }
    const secrets = this.#watchedSecrets();
    const name = key.slice(key.indexOf('/') + 1);
    const stored = { objects, keys: secrets.keys() };
    const isReplacedNow = (orphan: StoredKey) => isReplaced(orphan, stored);
    const facts = { now: clock.now(), retain: ORPHANS_RETAIN_MILLISECONDS, isReplaced: isReplacedNow };
    const { steps, requeueAt } = planOrphans(secrets.keys(name), facts);
    for (const step of steps) {
      if (step.do === 'put') await secrets.put(step.key);
      if (step.do === 'remove') await secrets.remove(step.key);
    }
    const isLeft = secrets.keys(name).some(({ state }) => state === 'Active');
    return isLeft ? ORPHANS_MILLISECONDS : this.#untilTime(requeueAt);
  }

  async #withObject(object: KubernetesObject, secrets: KeySecrets): Promise<number | undefined> {
    const { name } = object.metadata;
    const imported = await this.#importedSecret(object);
    const verdict = await this.#admit(object, imported, secrets);
    const ring = ringOf(object, { verdict, imported, revoked: revokedKeyIds(this.#rings()), secrets });
    if (ring === undefined) {
      await this.#writeStatus(object, secrets, { verdict, desired: undefined, lacksRoom: false, behind: [] });
      return undefined;
    }
    let behind: readonly string[] = [];
    let requeueAt: number | undefined;
    let lacksRoom = false;
    for (let round = 0; round < ROUNDS; round++) {
      const now = this.#options.clock.now();
      const gate = await this.#gate(ring, now);
      behind = gate.behind;
      const plan = planKeys({
        desired: ring.desired,
        keys: secrets.keys(name),
        now,
        mayPublish: mayPublish(this.#rings(), secrets.keys()),
        isServedByAll: gate.isServedByAll,
      });
      ({ requeueAt, lacksRoom } = plan);
      if (plan.steps.length === 0) break;
      // The watches may be behind: a key that was made already, or for a request from long ago, would be made again.
      if (!secrets.areCurrent) {
        await this.#assertCurrent(object);
        return await this.#withObject(object, await this.#storedSecrets());
      }
      for (const step of plan.steps) await this.#steps.take(step, ring);
    }
    const stale = secrets.withOtherTemplate(secrets.keys(name), ring.template);
    if (verdict.accepted) for (const stored of stale) await secrets.put(stored, ring.template);
    await this.#writeStatus(object, secrets, { verdict, desired: ring.desired, lacksRoom, behind });
    return earliest(this.#untilTime(requeueAt), untilImport(verdict));
  }

  /** @throws StaleReadError when the API server has another SigningKey of this name, or other requests: requeue */
  async #assertCurrent(object: KubernetesObject): Promise<void> {
    const { name, uid, generation } = object.metadata;
    const { api, releaseNamespace: namespace } = this.#options;
    const current = await api.get(SIGNING_KEYS, { namespace, name });
    const isCurrent =
      current?.metadata.uid === uid &&
      current.metadata.generation === generation &&
      rotationRequests(current).rotateAt === rotationRequests(object).rotateAt;
    if (!isCurrent) throw new StaleReadError(`SigningKey ${namespace}/${name}`);
  }

  #rings(): readonly SourceObject[] {
    return [...this.#options.signingKeys.objects()].map(sourceOf);
  }

  #watchedSecrets(): KeySecrets {
    return new KeySecrets({ ...this.#options, objects: this.#options.secrets.objects(), areCurrent: false });
  }

  async #storedSecrets(): Promise<KeySecrets> {
    const { reader, releaseNamespace: namespace } = this.#options;
    const { items } = await reader.list(SECRETS, { namespace, labelSelector: `${PART_LABEL}=signing-key` });
    return new KeySecrets({ ...this.#options, objects: items, areCurrent: true });
  }

  #keyOf(name: string): string {
    return objectKey({ namespace: this.#options.releaseNamespace, name });
  }

  async #importedSecret({ spec }: KubernetesObject): Promise<KubernetesObject | undefined> {
    const { name } = fieldsOf(fieldsOf(spec).importSecretRef);
    if (typeof name !== 'string') return undefined;
    return await this.#options.api.get(SECRETS, { namespace: this.#options.releaseNamespace, name });
  }

  async #admit(
    object: KubernetesObject,
    imported: KubernetesObject | undefined,
    secrets: KeySecrets,
  ): Promise<KeyVerdict> {
    const { releaseNamespace } = this.#options;
    const objects = this.#rings();
    return await admitKey(sourceOf(object), {
      unknownFields: 'ignore',
      releaseNamespace,
      references: { secret: () => imported },
      revokedKeyIds: revokedKeyIds(objects),
      olderPublisher: (keyId, source) => olderPublisher(keyId, source, { objects, keys: secrets.keys() }),
    });
  }

  /** What the next key waits for. Before its activation time no replica is queried, and the key may not sign. */
  async #gate({ object, desired, secrets }: Ring, now: number): Promise<Gate> {
    const next = desired.mayBegin ? nextKey(desired, secrets.keys(object.metadata.name)) : undefined;
    if (next === undefined || now < activationTime(desired, next)) return { behind: [], isServedByAll: () => false };
    const observation = await this.#options.replicas.observe([]);
    const behind = replicasBehind(observation, ({ keyIds }) => keyIds.has(next.keyId));
    // Another key may have become the next one during the query.
    return { behind, isServedByAll: (keyId) => keyId === next.keyId && behind.length === 0 };
  }

  async #writeStatus(
    object: KubernetesObject,
    secrets: KeySecrets,
    report: {
      readonly verdict: KeyVerdict;
      readonly desired: DesiredRing | undefined;
      readonly lacksRoom: boolean;
      readonly behind: readonly string[];
    },
  ): Promise<void> {
    const keys = secrets.keys(object.metadata.name);
    const status = keyStatus({ ...report, keys }, object.status, this.#options.clock.now());
    // Of the others that `Rotating` has none is a fault.
    const reported = status.conditions.filter(({ type, reason }) => type !== 'Rotating' || reason === 'TooManyKeys');
    await this.#statuses.report(object, status, reported);
  }

  #untilTime(time: number | undefined): number | undefined {
    return time === undefined ? undefined : Math.max(0, time - this.#options.clock.now());
  }
}

function ringOf(
  object: KubernetesObject,
  {
    verdict,
    imported,
    revoked,
    secrets,
  }: {
    readonly verdict: KeyVerdict;
    readonly imported: KubernetesObject | undefined;
    readonly revoked: ReadonlySet<string>;
    readonly secrets: KeySecrets;
  },
): Ring | undefined {
  const { manifest } = verdict;
  if (manifest === undefined) return undefined;
  const { importSecretRef, secretTemplate: template } = manifest.spec;
  const pem = imported && importSecretRef && readSecretValue(imported, importSecretRef.key, true);
  const desired = desiredRing(verdict, manifest, { revoked, rotateAt: rotationRequests(object).rotateAt });
  const importedPem = pem?.outcome === 'found' ? pem.value : undefined;
  return { object, verdict, desired, template, importedPem, secrets };
}

function untilImport({ manifest, accepted }: KeyVerdict): number | undefined {
  if (manifest?.spec.importSecretRef === undefined) return undefined;
  return accepted ? IMPORT_MILLISECONDS : IMPORT_MISSING_MILLISECONDS;
}

function earliest(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.min(one, other);
}
