// What is to be done about the keys of one ring, given what is there and what time it is. Pure: a key is published, signs,
// retires and is removed; each step is small enough to be repeated, and what was done is read from the keys alone.

import type { StoredKey } from '../../admission/keys/key-secret.ts';
import type { SigningAlgorithm } from '../../oauth/values/signature.ts';

/** What its SigningKey says of a ring. Durations are milliseconds. */
export interface RingWishes {
  readonly algorithm: SigningAlgorithm;
  readonly scheduled: boolean;
  readonly interval: number;
  readonly prePublish: number;
  readonly retain: number;
  readonly revokedKeyIds: readonly string[];
  /** The imported key that is to sign; undefined for a ring whose keys are generated. */
  readonly importedKeyId: string | undefined;
  /** Neither suspended nor at fault: else keys end, and none begins. */
  readonly mayBegin: boolean;
  /** The request for rotation as it stands on the object; undefined for none. */
  readonly rotateAt: string | undefined;
}

/** One write. */
export type KeyStep =
  /** A key that is not there: the imported one, or a new one of the ring's algorithm. */
  | { readonly do: 'make'; readonly state: 'Published' | 'Active'; readonly handledRotateAt: string | undefined }
  /** A key that is there becomes this. */
  | { readonly do: 'put'; readonly key: StoredKey }
  | { readonly do: 'remove'; readonly key: StoredKey };

export interface KeyPlan {
  /** In this order: whatever ends comes after what takes its place. */
  readonly steps: readonly KeyStep[];
  /** When something else is to be done even if nothing happens, epoch milliseconds. */
  readonly again: number | undefined;
}

/** What is known when a plan is made. */
export interface KeyFacts {
  readonly wishes: RingWishes;
  readonly keys: readonly StoredKey[];
  readonly now: number;
  /** Whether every replica that takes requests has this key. */
  readonly isEverywhere: (keyId: string) => boolean;
}

/** How soon it is looked again whether the replicas have a key. */
const REPLICAS_MILLISECONDS = 2000;

/** The key that signs: of several Active ones the one that was activated last. */
export function activeKey(keys: readonly StoredKey[]): StoredKey | undefined {
  return keys
    .filter(({ state }) => state === 'Active')
    .reduce<StoredKey | undefined>((latest, key) => (activation(key) >= activation(latest) ? key : latest), undefined);
}

function activation(key: StoredKey | undefined): number {
  return key?.activatedAt ?? key?.publishedAt ?? -Infinity;
}

/** The key that signs next, as long as it is what the ring is to have. */
export function nextKey(wishes: RingWishes, keys: readonly StoredKey[]): StoredKey | undefined {
  return keys
    .filter((key) => key.state === 'Published' && isWanted(wishes, key) && !isRevoked(wishes, key))
    .toSorted((a, b) => a.publishedAt - b.publishedAt)[0];
}

/** When a key that is published may sign: every cache has seen it by then. */
export function activationTime({ prePublish }: RingWishes, next: StoredKey): number {
  return next.publishedAt + prePublish;
}

/** When the next key signs; undefined when nothing is to happen by itself. */
export function nextActivation(wishes: RingWishes, keys: readonly StoredKey[]): number | undefined {
  const next = nextKey(wishes, keys);
  if (next !== undefined) return activationTime(wishes, next);
  const active = activeKey(keys);
  if (active === undefined || !rotatesByItself(wishes)) return undefined;
  return activation(active) + wishes.interval;
}

/** The last request for rotation that was acted on: what the newest key knows. */
export function handledRequest(keys: readonly StoredKey[]): string | undefined {
  const signsSince = ({ activatedAt }: StoredKey) => activatedAt ?? Number.MAX_VALUE;
  const newestFirst = (a: StoredKey, b: StoredKey) => b.publishedAt - a.publishedAt || signsSince(b) - signsSince(a);
  return keys.toSorted(newestFirst)[0]?.handledRotateAt;
}

/** What is to be done now. */
export function planKeys(facts: KeyFacts): KeyPlan {
  const ended = endings(facts);
  const begun = facts.wishes.mayBegin ? beginnings(facts) : { steps: [], again: undefined };
  return { steps: [...begun.steps, ...ended.steps], again: earliest(begun.again, ended.again) };
}

/** What is to be done with the keys of a SigningKey that is gone: they verify until their last token has died. */
export function planOrphans(
  keys: readonly StoredKey[],
  { now, retain, otherSigns }: { readonly now: number; readonly retain: number; readonly otherSigns: boolean },
): KeyPlan {
  const steps = keys.flatMap((key): readonly KeyStep[] => {
    if (key.state === 'Active') return otherSigns ? [{ do: 'put', key: retired(key, now, retain) }] : [];
    if (key.state === 'Published') return [{ do: 'remove', key }];
    return isOver(key, now) ? [{ do: 'remove', key }] : [];
  });
  return { steps, again: earliestRemoval(keys, now) };
}

function beginnings({ wishes, keys, now, isEverywhere }: KeyFacts): KeyPlan {
  const living = keys.filter((key) => key.state !== 'Revoked' && !isRevoked(wishes, key));
  const active = activeKey(living);
  const next = nextKey(wishes, living);
  // Nothing signs: no cache and no replica is worth waiting for.
  if (active === undefined) return { steps: [begin('Active', { wishes, keys: living, now }, next)], again: undefined };
  const isAsked = wishes.importedKeyId === undefined && wishes.rotateAt !== undefined;
  const isRequested = isAsked && wishes.rotateAt !== handledRequest(living);
  if (next === undefined) {
    const due = activation(active) + wishes.interval - wishes.prePublish;
    const isDue = rotatesByItself(wishes) && now >= due;
    if (isDue || isRequested || !isWanted(wishes, active)) {
      return { steps: [begin('Published', { wishes, keys: living, now }, undefined)], again: now + wishes.prePublish };
    }
    return { steps: [], again: rotatesByItself(wishes) ? due : undefined };
  }
  if (now < activationTime(wishes, next)) {
    // What is on its way is what was asked for.
    const steps: readonly KeyStep[] = isRequested
      ? [{ do: 'put', key: { ...next, handledRotateAt: wishes.rotateAt } }]
      : [];
    return { steps, again: activationTime(wishes, next) };
  }
  if (!isEverywhere(next.keyId)) return { steps: [], again: now + REPLICAS_MILLISECONDS };
  const handledRotateAt = isRequested ? wishes.rotateAt : next.handledRotateAt;
  return {
    steps: [
      { do: 'put', key: { ...activated(next, now), handledRotateAt } },
      { do: 'put', key: retired(active, now, wishes.retain) },
    ],
    again: now + wishes.retain,
  };
}

/** The step after which a wanted key is Published or Active: one that is there, or one that is made. */
function begin(
  state: 'Published' | 'Active',
  { wishes, keys, now }: Pick<KeyFacts, 'wishes' | 'keys' | 'now'>,
  next: StoredKey | undefined,
): KeyStep {
  // An imported key that is imported again has never been away from the key set.
  const known = next ?? keys.find(({ keyId }) => keyId === wishes.importedKeyId);
  if (known === undefined) return { do: 'make', state, handledRotateAt: wishes.rotateAt };
  const key = state === 'Active' ? activated(known, now) : { ...known, state, removeAfter: undefined };
  return { do: 'put', key: { ...key, handledRotateAt: wishes.rotateAt } };
}

function endings({ wishes, keys, now }: KeyFacts): KeyPlan {
  const active = activeKey(keys.filter((key) => !isRevoked(wishes, key)));
  const steps = keys.flatMap((key): readonly KeyStep[] => {
    if (key.state !== 'Revoked' && isRevoked(wishes, key)) {
      return [{ do: 'put', key: { ...key, state: 'Revoked', removeAfter: key.removeAfter ?? now + wishes.retain } }];
    }
    if (key.state === 'Active') return key === active ? [] : [{ do: 'put', key: retired(key, now, wishes.retain) }];
    if (key.state !== 'Published') return isOver(key, now) ? [{ do: 'remove', key }] : [];
    if (!wishes.mayBegin || isWanted(wishes, key)) return [];
    // One that never signed is missed by nobody.
    return [
      key.activatedAt === undefined ? { do: 'remove', key } : { do: 'put', key: retired(key, now, wishes.retain) },
    ];
  });
  return { steps, again: earliestRemoval(keys, now) };
}

function rotatesByItself({ scheduled, importedKeyId }: RingWishes): boolean {
  return scheduled && importedKeyId === undefined;
}

function isWanted({ algorithm, importedKeyId }: RingWishes, key: StoredKey): boolean {
  return importedKeyId === undefined ? key.algorithm === algorithm : key.keyId === importedKeyId;
}

function isRevoked({ revokedKeyIds }: RingWishes, { keyId }: StoredKey): boolean {
  return revokedKeyIds.includes(keyId);
}

function activated(key: StoredKey, now: number): StoredKey {
  return { ...key, state: 'Active', activatedAt: now, removeAfter: undefined };
}

function retired(key: StoredKey, now: number, retain: number): StoredKey {
  return { ...key, state: 'Retiring', removeAfter: now + retain };
}

function isOver({ removeAfter }: StoredKey, now: number): boolean {
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
