// One SigningKey reconciled: its keys made, published, activated, retired and removed as planned (key-plan.ts, key-steps.ts),
// and all of it told in status (key-status.ts). The truth is in the key Secrets; the token servers read the same ones.

import { admitKey, type KeyVerdict } from '../../admission/keys/admit-key.ts';
import { servedKeys } from '../../admission/keys/served-keys.ts';
import type { Condition } from '../../admission/kinds/conditions.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import { readSecretValue } from '../../admission/references/references.ts';
import { KubernetesError } from '../../kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, objectKey, SECRETS, SIGNING_KEYS } from '../../kubernetes/objects/resources.ts';
import { sourceOf } from '../../kubernetes/objects/source-object.ts';
import type { ObjectView } from '../../kubernetes/watch/shared-reflector.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { OwnWrites } from '../reconciling/own-writes.ts';
import { rotationRequests } from '../reconciling/rotation-requests.ts';
import { conditionIn, isSameStatus } from '../reconciling/status-conditions.ts';
import { type ObservedReplicas, replicasBehind } from '../replicas/observed-replicas.ts';
import { activationTime, type KeyFacts, nextKey, planKeys, planOrphans, type RingWishes } from './key-plan.ts';
import { KeySecrets } from './key-secrets.ts';
import { keyStatus } from './key-status.ts';
import { KeySteps, type Ring } from './key-steps.ts';

export interface KeyReconcilerOptions {
  readonly api: LeaderApi;
  /** The SigningKeys of the release namespace. */
  readonly signingKeys: ObjectView;
  /** The Secrets of the release namespace, those of keys at least. */
  readonly secrets: ObjectView;
  readonly releaseNamespace: string;
  readonly replicas: ObservedReplicas;
  readonly record: (event: EventFacts) => void;
  readonly clock: Clock;
}

/** The ring there is when nobody asked for one. */
const DEFAULT_RING = 'default';
/** A plan is carried out and made again until nothing is left to do; this often at most in one look. */
const ROUNDS = 3;
/** How soon an imported key is looked for again, there being no watch on its Secret, and how often one that is there. */
const IMPORT_MISSING_MILLISECONDS = 1000;
const IMPORT_MILLISECONDS = 60_000;
/** How soon it is looked again whether others sign in place of a ring that is gone. */
const ORPHANS_MILLISECONDS = 1000;
/** How long the keys of a ring that is gone go on verifying: the default of `spec.rotation.retain`. */
const ORPHANS_RETAIN_MILLISECONDS = 48 * 3_600_000;

/** Whether the next key may sign. */
interface Gate extends Pick<KeyFacts, 'isEverywhere'> {
  /** The replicas that were asked and do not have it. */
  readonly behind: readonly string[];
}

export class KeyReconciler {
  readonly #options: KeyReconcilerOptions;
  readonly #secrets: KeySecrets;
  readonly #steps: KeySteps;
  readonly #objects: OwnWrites;

  constructor(options: KeyReconcilerOptions) {
    this.#options = options;
    const { api, secrets: view, releaseNamespace } = options;
    this.#secrets = new KeySecrets({ api, view, releaseNamespace });
    this.#steps = new KeySteps({ secrets: this.#secrets, record: options.record, clock: options.clock });
    this.#objects = new OwnWrites(options.signingKeys);
  }

  /** To be looked at when this process begins to lead, whatever there is. */
  get defaultRing(): string {
    return objectKey({ namespace: this.#options.releaseNamespace, name: DEFAULT_RING });
  }

  /** To be called when the watch tells that a SigningKey is gone. */
  forget(key: string, uid: string): void {
    this.#objects.gone(key, uid);
  }

  /** To be called when the watch tells that a Secret is gone. */
  forgetSecret(key: string, uid: string): void {
    this.#secrets.gone(key, uid);
  }

  /**
   * @param key `<release namespace>/<name>`
   * @returns milliseconds until it is looked at again even if nothing happens
   * @throws KubernetesError with reason `Conflict` or `AlreadyExists` when something changed meanwhile: look again
   */
  async reconcile(key: string): Promise<number | undefined> {
    const object = this.#objects.get(key);
    return object === undefined ? await this.#withoutObject(key) : await this.#withObject(key, object);
  }

  async #withoutObject(key: string): Promise<number | undefined> {
    const { signingKeys, clock, releaseNamespace: namespace, api } = this.#options;
    const objects = [...signingKeys.objects()];
    if (objects.length === 0 && this.#objects.get(this.defaultRing) === undefined) {
      const ring = { metadata: { name: DEFAULT_RING, namespace }, spec: {} };
      const made = await this.#objects.write(this.defaultRing, () => api.create(SIGNING_KEYS, ring));
      if (key === this.defaultRing) return await this.#withObject(key, made);
    }
    const name = key.slice(key.indexOf('/') + 1);
    const served = servedKeys(objects.map(sourceOf), this.#secrets.keys());
    const otherSigns = served.some(
      ({ state, signingKey }) => state === 'Active' && objects.some(({ metadata }) => metadata.name === signingKey),
    );
    const facts = { now: clock.now(), retain: ORPHANS_RETAIN_MILLISECONDS, otherSigns };
    const { steps, again } = planOrphans(this.#secrets.keys(name), facts);
    for (const step of steps) {
      if (step.do === 'put') await this.#secrets.put(step.key);
      if (step.do === 'remove') await this.#secrets.remove(step.key);
    }
    const isLeft = this.#secrets.keys(name).some(({ state }) => state === 'Active');
    return isLeft ? ORPHANS_MILLISECONDS : this.#untilTime(again);
  }

  async #withObject(key: string, object: KubernetesObject): Promise<number | undefined> {
    const { name } = object.metadata;
    const imported = await this.#importedSecret(object);
    const verdict = await this.#judge(object, imported);
    const ring = ringOf(object, verdict, imported);
    if (ring === undefined) {
      await this.#writeStatus(key, object, { verdict, wishes: undefined, behind: [] });
      return undefined;
    }
    let behind: readonly string[] = [];
    let again: number | undefined;
    for (let round = 0; round < ROUNDS; round++) {
      const now = this.#options.clock.now();
      const gate = await this.#gate(ring, now);
      behind = gate.behind;
      const plan = planKeys({ ...gate, wishes: ring.wishes, keys: this.#secrets.keys(name), now });
      again = plan.again;
      if (plan.steps.length === 0) break;
      for (const step of plan.steps) await this.#steps.take(step, ring);
    }
    const stale = this.#secrets.withOtherTemplate(this.#secrets.keys(name), ring.template);
    if (verdict.accepted) for (const stored of stale) await this.#secrets.put(stored, ring.template);
    await this.#writeStatus(key, object, { verdict, wishes: ring.wishes, behind });
    return earliest(this.#untilTime(again), untilImport(verdict));
  }

  async #importedSecret({ spec }: KubernetesObject): Promise<KubernetesObject | undefined> {
    const { name } = fieldsOf(fieldsOf(spec).importSecretRef);
    if (typeof name !== 'string') return undefined;
    return await this.#options.api.get(SECRETS, { namespace: this.#options.releaseNamespace, name });
  }

  async #judge(object: KubernetesObject, imported: KubernetesObject | undefined): Promise<KeyVerdict> {
    const { releaseNamespace } = this.#options;
    const references = { secret: () => imported };
    return await admitKey(sourceOf(object), { unknownFields: 'ignore', releaseNamespace, references });
  }

  /** What the next key waits for at this time; no replica is asked before the key's time, and then it may not sign. */
  async #gate({ object, wishes }: Ring, now: number): Promise<Gate> {
    const next = wishes.mayBegin ? nextKey(wishes, this.#secrets.keys(object.metadata.name)) : undefined;
    if (next === undefined || now < activationTime(wishes, next)) return { behind: [], isEverywhere: () => false };
    const observation = await this.#options.replicas.observe([]);
    const behind = replicasBehind(observation, ({ keyIds }) => keyIds.has(next.keyId));
    // While they were asked another key may have become the next one.
    return { behind, isEverywhere: (keyId) => keyId === next.keyId && behind.length === 0 };
  }

  async #writeStatus(
    key: string,
    object: KubernetesObject,
    report: {
      readonly verdict: KeyVerdict;
      readonly wishes: RingWishes | undefined;
      readonly behind: readonly string[];
    },
  ): Promise<void> {
    const { api, clock } = this.#options;
    const { name, namespace, uid } = object.metadata;
    const before = fieldsOf(this.#objects.get(key)).status;
    const status = keyStatus({ ...report, keys: this.#secrets.keys(name) }, before, clock.now());
    if (isSameStatus(status, before)) return;
    try {
      const written = { metadata: { name, uid, ...(namespace !== undefined && { namespace }) }, status };
      await this.#objects.write(key, () => api.apply(SIGNING_KEYS, written, { subresource: 'status' }));
    } catch (error) {
      // Gone, or made anew: the watch tells.
      if (!(error instanceof KubernetesError && error.status === 404)) throw error;
      return;
    }
    this.#recordFault(object, report.verdict.conditions, before);
  }

  /** A Warning for what is False now and was not so before. */
  #recordFault(object: KubernetesObject, conditions: readonly Condition[], before: unknown): void {
    for (const { type, status, reason, message } of conditions) {
      if (status !== 'False' || type === 'Ready') continue;
      const known = conditionIn(before, type);
      if (known?.status === status && known.reason === reason) continue;
      this.#options.record({ regarding: object, type: 'Warning', reason, action: 'Reconcile', note: message });
    }
  }

  #untilTime(time: number | undefined): number | undefined {
    return time === undefined ? undefined : Math.max(0, time - this.#options.clock.now());
  }
}

function ringOf(
  object: KubernetesObject,
  verdict: KeyVerdict,
  imported: KubernetesObject | undefined,
): Ring | undefined {
  const { manifest } = verdict;
  if (manifest === undefined) return undefined;
  const { algorithm, rotation, revokedKeyIds, importSecretRef, secretTemplate: template } = manifest.spec;
  const pem = imported && importSecretRef && readSecretValue(imported, importSecretRef.key, true);
  const wishes: RingWishes = {
    algorithm,
    scheduled: rotation.policy === 'Scheduled',
    interval: rotation.interval * 1000,
    prePublish: rotation.prePublish * 1000,
    retain: rotation.retain * 1000,
    revokedKeyIds,
    importedKeyId: verdict.imported?.kid,
    mayBegin: verdict.accepted,
    rotateAt: rotationRequests(object).rotateAt,
  };
  return { object, verdict, wishes, template, importedPem: pem?.outcome === 'found' ? pem.value : undefined };
}

function untilImport({ manifest, accepted }: KeyVerdict): number | undefined {
  if (manifest?.spec.importSecretRef === undefined) return undefined;
  return accepted ? IMPORT_MILLISECONDS : IMPORT_MISSING_MILLISECONDS;
}

function earliest(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.min(one, other);
}
