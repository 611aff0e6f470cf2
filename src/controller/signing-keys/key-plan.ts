// Plans the steps for the keys of one ring from the stored keys and the time. Pure. A key is published, signs, retires
// and is removed; each step is small enough to be repeated, and progress is read from the keys alone.

import type { KeyVerdict } from '../../admission/keys/admit-key.ts';
import type { StoredKey } from '../../admission/keys/key-secret.ts';
import type { SigningKeyManifest } from '../../admission/kinds/signing-key.ts';
import type { SigningAlgorithm } from '../../oauth/values/signature.ts';

/** The desired state of a ring, from its SigningKey. Durations are milliseconds. */
export interface DesiredRing {
  readonly algorithm: SigningAlgorithm;
  readonly scheduled: boolean;
  readonly interval: number;
  readonly prePublish: number;
  readonly retain: number;
  readonly revokedKeyIds: readonly string[];
  /** The imported key that is to sign; undefined for a ring whose keys are generated. */
  readonly importedKeyId: string | undefined;
  /** Whether keys may be made and activated: the ring is neither suspended nor invalid. Keys end in any case. */
  readonly mayBegin: boolean;
  /** The request for rotation as it stands on the object; undefined for none. */
  readonly rotateAt: string | undefined;
}

/** One write. */
export type KeyStep =
  /** Stores a key: the imported one, or a new one of the ring's algorithm. */
  | { readonly do: 'make'; readonly state: 'Published' | 'Active'; readonly handledRotateAt: string | undefined }
  /** Changes a stored key to this. */
  | { readonly do: 'put'; readonly key: StoredKey }
  | { readonly do: 'remove'; readonly key: StoredKey };

export interface KeyPlan {
  /** In this order: a key ends after the one that replaces it has begun. */
  readonly steps: readonly KeyStep[];
  /** When the next step is due without a change, epoch milliseconds; undefined: never. */
  readonly requeueAt: number | undefined;
  /** Whether a key is due that may not be published yet. */
  readonly lacksRoom: boolean;
}

/** The inputs of a plan. */
export interface KeyFacts {
  readonly desired: DesiredRing;
  readonly keys: readonly StoredKey[];
  readonly now: number;
  /** Whether one more key may be published, of this ring or of any other. */
  readonly mayPublish: boolean;
  /** Whether every replica that takes requests has this key. */
  readonly isServedByAll: (keyId: string) => boolean;
}

/** How long orphaned keys go on verifying: the default of `spec.rotation.retain`. */
export const ORPHANS_RETAIN_MILLISECONDS = 48 * 3_600_000;

/** The desired state of a ring. @param revoked the key ids that any SigningKey revokes */
export function desiredRing(
  { accepted, imported }: KeyVerdict,
  { spec }: SigningKeyManifest,
  { revoked, rotateAt }: { readonly revoked: ReadonlySet<string>; readonly rotateAt: string | undefined },
): DesiredRing {
  const { policy, interval, prePublish, retain } = spec.rotation;
  return {
    algorithm: spec.algorithm,
    scheduled: policy === 'Scheduled',
    interval: interval * 1000,
    prePublish: prePublish * 1000,
    retain: retain * 1000,
    revokedKeyIds: [...spec.revokedKeyIds, ...revoked],
    importedKeyId: imported?.kid,
    mayBegin: accepted,
    rotateAt,
  };
}

/** How often the replicas are polled for a key. */
const REPLICAS_MILLISECONDS = 2000;
/** How often a ring is planned again whose key has no room: a key of any other ring may make some. */
const ROOM_MILLISECONDS = 10_000;

/** The key that signs: of several Active ones the one that was activated last. */
export function activeKey(keys: readonly StoredKey[]): StoredKey | undefined {
  return keys
    .filter(({ state }) => state === 'Active')
    .reduce<StoredKey | undefined>((latest, key) => (activation(key) >= activation(latest) ? key : latest), undefined);
}

function activation(key: StoredKey | undefined): number {
  return key?.activatedAt ?? key?.publishedAt ?? -Infinity;
}

/** The key that signs next, as long as it is desired. */
export function nextKey(desired: DesiredRing, keys: readonly StoredKey[]): StoredKey | undefined {
  return keys
    .filter((key) => key.state === 'Published' && isDesired(desired, key) && !isRevoked(desired, key))
    .toSorted((a, b) => a.publishedAt - b.publishedAt)[0];
}

/** When a published key may sign: every cache of the key set has it by then. */
export function activationTime({ prePublish }: DesiredRing, next: StoredKey): number {
  return next.publishedAt + prePublish;
}

/** When the next key signs; undefined when no rotation is scheduled. */
export function nextActivation(desired: DesiredRing, keys: readonly StoredKey[]): number | undefined {
  const next = nextKey(desired, keys);
  if (next !== undefined) return activationTime(desired, next);
  const active = activeKey(keys);
  if (active === undefined || !rotatesByItself(desired)) return undefined;
  return activation(active) + desired.interval;
}

/** The last request for rotation that was handled: the newest key records it. */
export function handledRequest(keys: readonly StoredKey[]): string | undefined {
  const signsSince = ({ activatedAt }: StoredKey) => activatedAt ?? Number.MAX_VALUE;
  const newestFirst = (a: StoredKey, b: StoredKey) => b.publishedAt - a.publishedAt || signsSince(b) - signsSince(a);
  return keys.toSorted(newestFirst)[0]?.handledRotateAt;
}

const NOTHING: KeyPlan = { steps: [], requeueAt: undefined, lacksRoom: false };

/** The steps that are due now. */
export function planKeys(facts: KeyFacts): KeyPlan {
  const ended = endings(facts);
  const begun = facts.desired.mayBegin ? beginnings(facts) : NOTHING;
  return {
    steps: [...begun.steps, ...ended.steps],
    requeueAt: earliest(begun.requeueAt, ended.requeueAt),
    lacksRoom: begun.lacksRoom,
  };
}

/** The inputs of a plan for orphaned keys. */
interface OrphanFacts {
  readonly now: number;
  /** Milliseconds. */
  readonly retain: number;
  /** Whether other keys sign in place of this one. */
  readonly isReplaced: (key: StoredKey) => boolean;
}

/** The steps for orphaned keys, whose SigningKey was deleted: they verify until their last token has expired. */
export function planOrphans(keys: readonly StoredKey[], { now, retain, isReplaced }: OrphanFacts): KeyPlan {
  const steps = keys.flatMap((key): readonly KeyStep[] => {
    if (key.state === 'Active') return isReplaced(key) ? [{ do: 'put', key: retired(key, now, retain) }] : [];
    if (key.state === 'Published') return [{ do: 'remove', key }];
    return isExpired(key, now) ? [{ do: 'remove', key }] : [];
  });
  return { ...NOTHING, steps, requeueAt: earliestRemoval(keys, now) };
}

function beginnings(facts: KeyFacts): KeyPlan {
  const { desired, keys, now, isServedByAll } = facts;
  const unrevoked = keys.filter((key) => key.state !== 'Revoked' && !isRevoked(desired, key));
  const active = activeKey(unrevoked);
  const next = nextKey(desired, unrevoked);
  // No key signs: do not wait for caches and replicas.
  if (active === undefined) return withRoom(begin('Active', { desired, keys: unrevoked, now }, next), facts, undefined);
  const isAsked = desired.importedKeyId === undefined && desired.rotateAt !== undefined;
  const isRequested = isAsked && desired.rotateAt !== handledRequest(unrevoked);
  if (next === undefined) {
    const due = activation(active) + desired.interval - desired.prePublish;
    const isDue = rotatesByItself(desired) && now >= due;
    if (isDue || isRequested || !isDesired(desired, active)) {
      return withRoom(
        begin('Published', { desired, keys: unrevoked, now }, undefined),
        facts,
        now + desired.prePublish,
      );
    }
    return { ...NOTHING, requeueAt: rotatesByItself(desired) ? due : undefined };
  }
  if (now < activationTime(desired, next)) {
    // The key that is already published fulfils the request.
    const steps: readonly KeyStep[] = isRequested
      ? [{ do: 'put', key: { ...next, handledRotateAt: desired.rotateAt } }]
      : [];
    return { ...NOTHING, steps, requeueAt: activationTime(desired, next) };
  }
  if (!isServedByAll(next.keyId)) return { ...NOTHING, requeueAt: now + REPLICAS_MILLISECONDS };
  const handledRotateAt = isRequested ? desired.rotateAt : next.handledRotateAt;
  return {
    steps: [
      { do: 'put', key: { ...activated(next, now), handledRotateAt } },
      { do: 'put', key: retired(active, now, desired.retain) },
    ],
    requeueAt: now + desired.retain,
    lacksRoom: false,
  };
}

/** The plan of a key that begins; one that is not published yet needs room for it. */
function withRoom(step: KeyStep, { mayPublish, now }: KeyFacts, requeueAt: number | undefined): KeyPlan {
  if (step.do === 'make' && !mayPublish) return { steps: [], requeueAt: now + ROOM_MILLISECONDS, lacksRoom: true };
  return { steps: [step], requeueAt, lacksRoom: false };
}

/** The step that makes a desired key Published or Active: a stored one, or a new one. */
function begin(
  state: 'Published' | 'Active',
  { desired, keys, now }: Pick<KeyFacts, 'desired' | 'keys' | 'now'>,
  next: StoredKey | undefined,
): KeyStep {
  // An imported key that is imported again has never left the key set.
  const known = next ?? keys.find(({ keyId }) => keyId === desired.importedKeyId);
  if (known === undefined) return { do: 'make', state, handledRotateAt: desired.rotateAt };
  const key = state === 'Active' ? activated(known, now) : { ...known, state, removeAfter: undefined };
  return { do: 'put', key: { ...key, handledRotateAt: desired.rotateAt } };
}

function endings({ desired, keys, now }: KeyFacts): KeyPlan {
  const active = activeKey(keys.filter((key) => !isRevoked(desired, key)));
  const steps = keys.flatMap((key): readonly KeyStep[] => {
    if (key.state !== 'Revoked' && isRevoked(desired, key)) {
      return [{ do: 'put', key: { ...key, state: 'Revoked', removeAfter: key.removeAfter ?? now + desired.retain } }];
    }
    if (key.state === 'Active') return key === active ? [] : [{ do: 'put', key: retired(key, now, desired.retain) }];
    if (key.state !== 'Published') return isExpired(key, now) ? [{ do: 'remove', key }] : [];
    if (!desired.mayBegin || isDesired(desired, key)) return [];
    // A key that never signed has no tokens to verify.
    return [
      key.activatedAt === undefined ? { do: 'remove', key } : { do: 'put', key: retired(key, now, desired.retain) },
    ];
  });
  return { ...NOTHING, steps, requeueAt: earliestRemoval(keys, now) };
}

function rotatesByItself({ scheduled, importedKeyId }: DesiredRing): boolean {
  return scheduled && importedKeyId === undefined;
}

function isDesired({ algorithm, importedKeyId }: DesiredRing, key: StoredKey): boolean {
  return importedKeyId === undefined ? key.algorithm === algorithm : key.keyId === importedKeyId;
}

function isRevoked({ revokedKeyIds }: DesiredRing, { keyId }: StoredKey): boolean {
  return revokedKeyIds.includes(keyId);
}

function activated(key: StoredKey, now: number): StoredKey {
  return { ...key, state: 'Active', activatedAt: now, removeAfter: undefined };
}

function retired(key: StoredKey, now: number, retain: number): StoredKey {
  return { ...key, state: 'Retiring', removeAfter: now + retain };
}

function isExpired({ removeAfter }: StoredKey, now: number): boolean {
  return removeAfter !== undefined && removeAfter <= now;
}

function earliestRemoval(keys: readonly StoredKey[], now: number): number | undefined {
  const times = keys.flatMap(({ removeAfter }) => (removeAfter !== undefined && removeAfter > now ? removeAfter : []));
  return times.length === 0 ? undefined : Math.min(...times);
}

function earliest(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.min(one, other);
}
