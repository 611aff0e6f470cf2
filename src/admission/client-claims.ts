// What only the set of all clients can tell of one: whether another holds its uid, its client id or its Secret, and whether
// it is one too many in its namespace. Kept one client at a time, so that a change costs what it touches and not the set.

import type { ClientFindings } from './admit-client.ts';
import { clientSecretName, hasGeneratedSecret } from './client-secret-manifest.ts';
import { ACCEPTED_FAULTS, type Fault, type FaultReason } from './conditions.ts';
import { secretNotOwned } from './credentials.ts';

/** What one client claims of what there is only once, or only so often. */
export interface ClientClaim {
  readonly namespace: string;
  readonly createdAt: number;
  /** Undefined for an unreadable manifest, which claims nothing at all. */
  readonly uid: string | undefined;
  /** Undefined for an id that was not permitted: it keeps nobody else from having it. */
  readonly clientId: string | undefined;
  /** Whether the id is the derived one: it beats any explicit one. */
  readonly derived: boolean;
  /** The Secret that is written for the client, by namespace and name. */
  readonly secret: string | undefined;
  /** Whether it takes a place in its namespace. */
  readonly isAccepted: boolean;
  readonly maxClientsPerNamespace: number;
}

const WITHOUT_CLAIM: readonly FaultReason[] = [
  'InvalidManifest',
  'NamespaceReserved',
  'ClientIdNotPermitted',
  'NoMatchingPolicy',
];

/** What a client claims by the findings about it alone. */
export function claimOf(findings: ClientFindings): ClientClaim {
  const { object, manifest, faults, clientId, derived, maxClientsPerNamespace } = findings;
  const has = (reasons: readonly FaultReason[]) => faults.some(({ reason }) => reasons.includes(reason));
  // A suspended or otherwise refused client keeps its id, and its Secret: else somebody could take them over meanwhile.
  const claimsItsId = manifest !== undefined && !has(WITHOUT_CLAIM);
  const hasSecret = claimsItsId && hasGeneratedSecret(manifest.spec) && !has(['SecretNotOwned']);
  return {
    ...{ namespace: object.namespace, createdAt: object.createdAt, derived, maxClientsPerNamespace },
    uid: manifest === undefined ? undefined : object.uid,
    clientId: claimsItsId ? clientId : undefined,
    secret: hasSecret ? `${object.namespace}/${clientSecretName(object.name, manifest.spec)}` : undefined,
    // One whose Secret is still missing takes its place like any other, and so does a suspended one.
    isAccepted: !has(ACCEPTED_FAULTS),
  };
}

interface Member<Key> {
  readonly key: Key;
  /** Of several that are equal otherwise the one that came first. */
  readonly order: number;
  readonly claim: ClientClaim;
  isTwin: boolean;
  hasConflict: boolean;
  sharesSecret: boolean;
  isTooMany: boolean;
}

type Verdict = 'isTwin' | 'hasConflict' | 'sharesSecret' | 'isTooMany';

/** The claims of all clients of one install. */
export class ClientClaims<Key> {
  readonly #members = new Map<Key, Member<Key>>();
  readonly #byUid = new Groups<Key>();
  readonly #byClientId = new Groups<Key>();
  readonly #bySecret = new Groups<Key>();
  readonly #byNamespace = new Groups<Key>();
  readonly #changed = new Set<Key>();
  #count = 0;

  /** Takes a client in, or what it claims now; that it is judged anew is for the caller to know. */
  put(key: Key, claim: ClientClaim): void {
    const before = this.#members.get(key);
    if (before !== undefined) this.#leave(before);
    const member: Member<Key> = {
      ...{ key, claim, order: before?.order ?? this.#count++ },
      // What it no longer claims nobody will judge again.
      isTwin: before?.isTwin === true && claim.uid !== undefined,
      hasConflict: before?.hasConflict === true && claim.clientId !== undefined,
      sharesSecret: before?.sharesSecret === true && claim.secret !== undefined,
      isTooMany: before?.isTooMany === true,
    };
    this.#members.set(key, member);
    this.#byUid.add(claim.uid, member);
    this.#byClientId.add(claim.clientId, member);
    this.#bySecret.add(claim.secret, member);
    this.#byNamespace.add(claim.namespace, member);
  }

  delete(key: Key): void {
    const member = this.#members.get(key);
    if (member === undefined) return;
    this.#leave(member);
    this.#members.delete(key);
    this.#changed.delete(key);
  }

  /** Judges what was put and deleted since. @returns the clients whose faults are not what they were */
  settle(): readonly Key[] {
    // In this order: a twin claims nothing else, and who has no id of its own takes no place.
    this.#byUid.settle((members) => {
      const holder = first(members, byAge);
      for (const member of members) this.#set(member, 'isTwin', member.claim.uid !== undefined && member !== holder);
    });
    this.#byClientId.settle((members) => {
      const holder = first(members.filter(isNoTwin), derivedFirst);
      for (const member of members) this.#set(member, 'hasConflict', isNoTwin(member) && member !== holder);
    });
    this.#bySecret.settle((members) => {
      const holder = first(members.filter(isNoTwin), byAge);
      for (const member of members) this.#set(member, 'sharesSecret', isNoTwin(member) && member !== holder);
    });
    this.#byNamespace.settle((members) => {
      const late = latecomers(members.filter(takesAPlace));
      for (const member of members) this.#set(member, 'isTooMany', late.has(member));
    });
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }

  /** What the set found about a client, as of the last {@link settle}. */
  faultsOf(key: Key): readonly Fault[] {
    const member = this.#members.get(key);
    if (member === undefined || !hasVerdict(member)) return NONE;
    return [
      ...(member.isTwin ? [TWIN] : []),
      ...(member.hasConflict ? [CONFLICT] : []),
      ...(member.sharesSecret ? [SHARED_SECRET] : []),
      ...(member.isTooMany ? [tooMany(member.claim.maxClientsPerNamespace)] : []),
    ];
  }

  #leave(member: Member<Key>): void {
    const { uid, clientId, secret, namespace } = member.claim;
    this.#byUid.remove(uid, member);
    this.#byClientId.remove(clientId, member);
    this.#bySecret.remove(secret, member);
    this.#byNamespace.remove(namespace, member);
  }

  #set(member: Member<Key>, verdict: Verdict, value: boolean): void {
    if (member[verdict] === value) return;
    member[verdict] = value;
    this.#changed.add(member.key);
    const { clientId, secret, namespace } = member.claim;
    if (verdict === 'isTwin') {
      this.#byClientId.touch(clientId);
      this.#bySecret.touch(secret);
    }
    if (verdict === 'isTwin' || verdict === 'hasConflict') this.#byNamespace.touch(namespace);
  }
}

const NONE: readonly Fault[] = [];

const TWIN: Fault = {
  reason: 'InvalidManifest',
  path: ['metadata', 'uid'],
  message: 'Another object has this uid; leave it out or change it.',
};
// Nothing about the holder: it may be another tenant's.
const CONFLICT: Fault = {
  reason: 'ClientIdConflict',
  path: ['spec', 'clientId'],
  message: 'Another client already has this client id.',
};
// Two generated secrets in one Secret would overwrite each other for ever.
const SHARED_SECRET: Fault = secretNotOwned(
  'The secret of an older client of this namespace is generated into this Secret.',
);

function tooMany(limit: number): Fault {
  const message = `The limit for this namespace is ${limit}, and older clients take all places.`;
  return { reason: 'ClientLimitExceeded', path: [], message };
}

function hasVerdict({ isTwin, hasConflict, sharesSecret, isTooMany }: Member<unknown>): boolean {
  return isTwin || hasConflict || sharesSecret || isTooMany;
}

function isNoTwin({ isTwin }: Member<unknown>): boolean {
  return !isTwin;
}

function takesAPlace({ claim, isTwin, hasConflict }: Member<unknown>): boolean {
  return claim.isAccepted && !isTwin && !hasConflict;
}

type Order = (a: Member<unknown>, b: Member<unknown>) => number;

/** Older first, then by uid. */
const byAge: Order = (a, b) => {
  const [uidA, uidB] = [a.claim.uid ?? '', b.claim.uid ?? ''];
  return a.claim.createdAt - b.claim.createdAt || (uidA < uidB ? -1 : uidA > uidB ? 1 : a.order - b.order);
};

const derivedFirst: Order = (a, b) => Number(b.claim.derived) - Number(a.claim.derived) || byAge(a, b);

function first<Key>(members: readonly Member<Key>[], order: Order): Member<Key> | undefined {
  return members.reduce<Member<Key> | undefined>(
    (holder, member) => (holder === undefined || order(member, holder) < 0 ? member : holder),
    undefined,
  );
}

/** Those who found all the places they may take taken by older ones. */
function latecomers<Key>(members: readonly Member<Key>[]): ReadonlySet<Member<Key>> {
  if (members.every(({ claim }) => members.length <= claim.maxClientsPerNamespace)) return new Set();
  const sorted = [...members].sort(byAge);
  return new Set(sorted.filter(({ claim }, index) => index >= claim.maxClientsPerNamespace));
}

/** Members by what they claim. Most claims have one claimant, who is then kept without a list of its own. */
class Groups<Key> {
  readonly #groups = new Map<string, Member<Key> | Set<Member<Key>>>();
  readonly #touched = new Set<string>();

  add(name: string | undefined, member: Member<Key>): void {
    if (name === undefined) return;
    this.#touched.add(name);
    const group = this.#groups.get(name);
    if (group === undefined) this.#groups.set(name, member);
    else if (group instanceof Set) group.add(member);
    else this.#groups.set(name, new Set([group, member]));
  }

  remove(name: string | undefined, member: Member<Key>): void {
    if (name === undefined) return;
    this.#touched.add(name);
    const group = this.#groups.get(name);
    if (!(group instanceof Set)) this.#groups.delete(name);
    else if (group.delete(member) && group.size === 0) this.#groups.delete(name);
  }

  /** Has a group judged again at the next {@link settle}. */
  touch(name: string | undefined): void {
    if (name !== undefined) this.#touched.add(name);
  }

  /** Judges every group that is not what it was. */
  settle(judge: (members: readonly Member<Key>[]) => void): void {
    for (const name of this.#touched) {
      const group = this.#groups.get(name);
      if (group !== undefined) judge(group instanceof Set ? [...group] : [group]);
    }
    this.#touched.clear();
  }
}
