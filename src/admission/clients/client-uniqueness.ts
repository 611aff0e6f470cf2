// Faults of an OAuthClient that follow from the set of all clients: a duplicate uid, a client id or Secret that another
// client holds, a namespace over its limit. The set is updated one client at a time: the cost of a change does not grow
// with the set. Faults of a client by itself: admit-client.ts.

import { clientOfDefault, hasGeneratedSecret } from '../client-secrets/client-secret-manifest.ts';
import { ACCEPTED_FAULTS, type Fault, type FaultReason } from '../kinds/conditions.ts';
import type { ObjectIdentity } from '../kinds/manifest.ts';
import type { OAuthClientSpec } from '../kinds/oauth-client.ts';
import type { ClientFindings, ClientVerdict } from './admit-client.ts';
import { secretNotOwned } from './credentials.ts';
import { type Order, RankedClaims, type RankedClaimsOptions } from './ranked-claims.ts';

/** The unique or limited things that one client claims. */
export interface ClientClaim {
  readonly namespace: string;
  readonly createdAt: number;
  /** Undefined for an unreadable manifest, which claims nothing at all. */
  readonly uid: string | undefined;
  /** Undefined for an id that is not permitted: another client may have it. */
  readonly clientId: string | undefined;
  /** Whether the id is the derived one: it ranks behind an explicit one. */
  readonly derived: boolean;
  /** Identifies the Secret that is written for the client, if one is. */
  readonly secret: string | undefined;
  /** Whether it may count towards the limit of its namespace. */
  readonly isAccepted: boolean;
  readonly maxClientsPerNamespace: number;
}

const WITHOUT_CLAIM: readonly FaultReason[] = [
  'InvalidManifest',
  'NamespaceReserved',
  'ClientIdNotPermitted',
  'NoMatchingPolicy',
];

/** The claim of a client by the findings about it alone. */
export function claimOf(findings: ClientFindings): ClientClaim {
  const { object, manifest, awaitsNamespace, faults, clientId, derived, maxClientsPerNamespace } = findings;
  const hasFault = (reasons: readonly FaultReason[]) => faults.some(({ reason }) => reasons.includes(reason));
  // A suspended or otherwise refused client keeps its id and its Secret: otherwise another client could claim them.
  const claimsItsId = manifest !== undefined && !awaitsNamespace && !hasFault(WITHOUT_CLAIM);
  const hasSecret = claimsItsId && hasGeneratedSecret(manifest.spec) && !hasFault(['SecretNotOwned']);
  // One literal, as there may be a hundred thousand claims: a property added to an object later takes more memory.
  return {
    namespace: object.namespace,
    createdAt: object.createdAt,
    uid: manifest === undefined ? undefined : object.uid,
    clientId: claimsItsId ? clientId : undefined,
    derived,
    secret: hasSecret ? secretClaim(object, manifest.spec) : undefined,
    // A client whose Secret is still missing counts towards the limit, and so does a suspended one.
    isAccepted: !awaitsNamespace && !hasFault(ACCEPTED_FAULTS),
    maxClientsPerNamespace,
  };
}

/** Whether a client has its id by this verdict: it may claim the id, and no other client has it. */
export function holdsClientId({ policy, faults }: Pick<ClientVerdict, 'policy' | 'faults'>): boolean {
  const isWithout = ({ reason }: Fault) => reason === 'ClientIdConflict' || WITHOUT_CLAIM.includes(reason);
  // The verdict has no policy until the labels of the namespace are observed.
  return policy !== undefined && !faults.some(isWithout);
}

/** A Secret with the default name is identified by the key of its client. */
function secretClaim({ namespace, name }: ObjectIdentity, { auth }: OAuthClientSpec): string {
  const secretName = auth.clientSecret?.secretName;
  const client = secretName === undefined ? name : clientOfDefault(secretName);
  // No name holds a slash.
  if (client === undefined) return [namespace, secretName, ''].join('/');
  return [namespace, client].join('/');
}

/**
 * One client of a {@link ClientUniqueness}, which alone writes these fields. A subclass may hold more about the client.
 */
export class Candidate {
  /** Undefined while the client is not in the set. */
  claim: ClientClaim | undefined;
  /** Insertion order: decides between clients that are equal otherwise. */
  order = 0;
  /** The results of the rankings: flags of {@link VERDICT}, because there may be a hundred thousand clients. */
  verdicts = 0;
}

const VERDICT = { duplicateUid: 1, hasConflict: 2, sharesSecret: 4, overLimit: 8 } as const;

type Verdict = keyof typeof VERDICT;

function has({ verdicts }: Candidate, verdict: Verdict): boolean {
  return (verdicts & VERDICT[verdict]) !== 0;
}

/** A client that is in the set. */
type Claiming<Member extends Candidate> = Member & { readonly claim: ClientClaim };

/** The claims of all clients of one install. */
export class ClientUniqueness<Member extends Candidate> {
  /**
   * In this order: a client with a duplicate uid is in no later ranking, and one without its id not in that of the
   * limit.
   */
  readonly #rankings: readonly RankedClaims<Claiming<Member>>[];
  /** Clients whose rankings are to be updated. */
  readonly #dirty = new Set<Claiming<Member>>();
  readonly #changed = new Set<Member>();
  #count = 0;

  /** @param options.uidsDiffer whether the caller guarantees that no two clients have the same uid */
  constructor({ uidsDiffer = false }: { readonly uidsDiffer?: boolean } = {}) {
    this.#rankings = [
      ...(uidsDiffer ? [] : [this.#rankingsOf('duplicateUid', { nameOf: ({ claim }) => claim.uid })]),
      this.#rankingsOf('hasConflict', {
        nameOf: ({ claim }) => claim.clientId,
        isRanked: hasUniqueUid,
        order: explicitFirst,
      }),
      this.#rankingsOf('sharesSecret', { nameOf: ({ claim }) => claim.secret, isRanked: hasUniqueUid }),
      this.#rankingsOf('overLimit', {
        nameOf: ({ claim }) => claim.namespace,
        isRanked: countsTowardsLimit,
        capacityFor: ({ claim }) => claim.maxClientsPerNamespace,
      }),
    ];
  }

  /**
   * Adds a client, or replaces its claim. {@link recompute} returns it only if its faults differ from the former ones.
   */
  put(member: Member, claim: ClientClaim): void {
    const before = member.claim;
    if (before !== undefined && isSame(before, claim)) return;
    if (isClaiming(member)) this.#withdraw(member);
    else {
      member.order = this.#count++;
      member.verdicts = 0;
    }
    // Only now that it is in no ranking: a ranking finds a member by its claim.
    member.claim = claim;
    if (isClaiming(member)) this.#dirty.add(member);
  }

  delete(member: Member): void {
    if (!isClaiming(member)) return;
    this.#withdraw(member);
    (member as Member).claim = undefined;
    this.#changed.delete(member);
  }

  /** Applies every `put` and `delete` since the last call. @returns the clients whose faults changed */
  recompute(): readonly Member[] {
    for (const claims of this.#rankings) {
      for (const member of this.#dirty) claims.update(member);
      claims.recompute();
    }
    this.#dirty.clear();
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }

  /** The faults of a client as of the last {@link recompute}. */
  faultsOf(member: Member): readonly Fault[] {
    if (!isClaiming(member) || member.verdicts === 0) return NONE;
    return [
      ...(has(member, 'duplicateUid') ? [DUPLICATE_UID] : []),
      ...(has(member, 'hasConflict') ? [CONFLICT] : []),
      ...(has(member, 'sharesSecret') ? [SHARED_SECRET] : []),
      ...(has(member, 'overLimit') ? [limitExceeded(member.claim.maxClientsPerNamespace)] : []),
    ];
  }

  #rankingsOf(
    verdict: Verdict,
    options: Pick<RankedClaimsOptions<Claiming<Member>>, 'nameOf'> & Partial<RankedClaimsOptions<Claiming<Member>>>,
  ): RankedClaims<Claiming<Member>> {
    const report = (member: Claiming<Member>, overCapacity: boolean) => this.#set(member, verdict, overCapacity);
    return new RankedClaims({ isRanked: () => true, order: byAge, capacityFor: () => 1, report, ...options });
  }

  #withdraw(member: Claiming<Member>): void {
    for (const claims of this.#rankings) claims.remove(member);
    this.#dirty.delete(member);
  }

  #set(member: Claiming<Member>, verdict: Verdict, value: boolean): void {
    if (has(member, verdict) === value) return;
    (member as Candidate).verdicts ^= VERDICT[verdict];
    this.#changed.add(member);
    // Both decide whether it is in the later rankings.
    if (verdict === 'duplicateUid' || verdict === 'hasConflict') this.#dirty.add(member);
  }
}

const NONE: readonly Fault[] = [];

const DUPLICATE_UID: Fault = {
  reason: 'InvalidManifest',
  path: ['metadata', 'uid'],
  message: 'Another object has this uid; leave it out or change it.',
};
// Names nothing of the holder, which may be of another tenant.
const CONFLICT: Fault = {
  reason: 'ClientIdConflict',
  path: ['spec', 'clientId'],
  message: 'Another client has this client id.',
};
// Two generated secrets in one Secret would overwrite each other endlessly.
const SHARED_SECRET: Fault = secretNotOwned(
  'The secret of an older client of this namespace is generated into this Secret.',
);

function limitExceeded(limit: number): Fault {
  const message = `The limit for this namespace is ${limit}, and older clients take all places.`;
  return { reason: 'ClientLimitExceeded', path: [], message };
}

function isClaiming<Member extends Candidate>(member: Member): member is Claiming<Member> {
  return member.claim !== undefined;
}

function hasUniqueUid(member: Candidate): boolean {
  return !has(member, 'duplicateUid');
}

function countsTowardsLimit(member: Claiming<Candidate>): boolean {
  return member.claim.isAccepted && hasUniqueUid(member) && !has(member, 'hasConflict');
}

/** Older first, then by uid. */
const byAge: Order<Claiming<Candidate>> = (a, b) => {
  const [uidA, uidB] = [a.claim.uid ?? '', b.claim.uid ?? ''];
  return a.claim.createdAt - b.claim.createdAt || (uidA < uidB ? -1 : uidA > uidB ? 1 : a.order - b.order);
};

/**
 * The explicit claim of an id before the derived one, then by age. The two meet only in an id with a dot, and a policy
 * permits another object than its own such an id only where an administrator listed it letter by letter
 * (policy-violations.ts). Age alone would not do: a restore or a re-creation resets creationTimestamps.
 */
const explicitFirst: Order<Claiming<Candidate>> = (a, b) =>
  Number(a.claim.derived) - Number(b.claim.derived) || byAge(a, b);

function isSame(one: ClientClaim, other: ClientClaim): boolean {
  return (Object.keys(one) as (keyof ClientClaim)[]).every((field) => one[field] === other[field]);
}
