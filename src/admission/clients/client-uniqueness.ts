// What only the set of all clients can tell of one: whether another holds its uid, its client id or its Secret, and whether
// it is one too many in its namespace. Kept one client at a time, so that a change costs what it touches and not the set.

import { clientOfDefault, hasGeneratedSecret } from '../client-secrets/client-secret-manifest.ts';
import { ACCEPTED_FAULTS, type Fault, type FaultReason } from '../kinds/conditions.ts';
import type { ObjectIdentity } from '../kinds/manifest.ts';
import type { OAuthClientSpec } from '../kinds/oauth-client.ts';
import type { ClientFindings } from './admit-client.ts';
import { secretNotOwned } from './credentials.ts';
import { type Order, RankedClaims, type RankedClaimsOptions } from './ranked-claims.ts';

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
  /** What stands for the Secret that is written for the client, and for no other Secret. */
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
  const { object, manifest, awaitsNamespace, faults, clientId, derived, maxClientsPerNamespace } = findings;
  const hasFault = (reasons: readonly FaultReason[]) => faults.some(({ reason }) => reasons.includes(reason));
  // A suspended or otherwise refused client keeps its id, and its Secret: else somebody could take them over meanwhile.
  const claimsItsId = manifest !== undefined && !awaitsNamespace && !hasFault(WITHOUT_CLAIM);
  const hasSecret = claimsItsId && hasGeneratedSecret(manifest.spec) && !hasFault(['SecretNotOwned']);
  // In one go, as wherever there are many: what is added to an object takes room of its own.
  return {
    namespace: object.namespace,
    createdAt: object.createdAt,
    uid: manifest === undefined ? undefined : object.uid,
    clientId: claimsItsId ? clientId : undefined,
    derived,
    secret: hasSecret ? secretClaim(object, manifest.spec) : undefined,
    // One whose Secret is still missing takes its place like any other, and so does a suspended one.
    isAccepted: !awaitsNamespace && !hasFault(ACCEPTED_FAULTS),
    maxClientsPerNamespace,
  };
}

/** A Secret with the default name goes by the client it is the default of: as text, most sources have that already. */
function secretClaim({ namespace, name, key }: ObjectIdentity, { auth }: OAuthClientSpec): string {
  const secretName = auth.clientSecret?.secretName;
  const client = secretName === undefined ? name : clientOfDefault(secretName);
  // No name holds a slash.
  if (client === undefined) return [namespace, secretName, ''].join('/');
  return client === name && key !== undefined ? key : [namespace, client].join('/');
}

/** One client among the claimants. Whoever follows clients adds what it knows of each; what stands here only the claims write. */
export class Contender {
  /** Undefined for whoever is not among the claimants. */
  claim: ClientClaim | undefined;
  /** Of several that are equal otherwise the one that came first. */
  order = 0;
  /** What the set found about it: flags of {@link VERDICT}, because there may be a hundred thousand. */
  verdicts = 0;
}

const VERDICT = { isTwin: 1, hasConflict: 2, sharesSecret: 4, isTooMany: 8 } as const;

type Verdict = keyof typeof VERDICT;

function has({ verdicts }: Contender, verdict: Verdict): boolean {
  return (verdicts & VERDICT[verdict]) !== 0;
}

/** One that is among the claimants. */
type Claiming<Member extends Contender> = Member & { readonly claim: ClientClaim };

/** The claims of all clients of one install. */
export class ClientUniqueness<Member extends Contender> {
  /** In this order: a twin claims nothing else, and who has no id of its own takes no place. */
  readonly #lines: readonly RankedClaims<Claiming<Member>>[];
  /** Those who may have to join a line, or to leave one. */
  readonly #restless = new Set<Claiming<Member>>();
  readonly #changed = new Set<Member>();
  #count = 0;

  /** @param options.uidsDiffer whether no two clients that are put have the same uid, whatever they claim */
  constructor({ uidsDiffer = false }: { readonly uidsDiffer?: boolean } = {}) {
    this.#lines = [
      ...(uidsDiffer ? [] : [this.#linesOf('isTwin', { claimed: ({ claim }) => claim.uid })]),
      this.#linesOf('hasConflict', { claimed: ({ claim }) => claim.clientId, isInLine: isNoTwin, order: derivedFirst }),
      this.#linesOf('sharesSecret', { claimed: ({ claim }) => claim.secret, isInLine: isNoTwin }),
      this.#linesOf('isTooMany', {
        claimed: ({ claim }) => claim.namespace,
        isInLine: takesAPlace,
        placesFor: ({ claim }) => claim.maxClientsPerNamespace,
      }),
    ];
  }

  /** Takes a client in, or what it claims now; that it is judged anew is for the caller to know. */
  put(member: Member, claim: ClientClaim): void {
    const before = member.claim;
    if (before !== undefined && isSame(before, claim)) return;
    if (isClaiming(member)) this.#leave(member);
    else {
      member.order = this.#count++;
      member.verdicts = 0;
    }
    // Only now that it stands in no line: there it is found by what it claims.
    member.claim = claim;
    if (isClaiming(member)) this.#restless.add(member);
  }

  delete(member: Member): void {
    if (!isClaiming(member)) return;
    this.#leave(member);
    (member as Member).claim = undefined;
    this.#changed.delete(member);
  }

  /** Judges what was put and deleted since. @returns the clients whose faults are not what they were */
  settle(): readonly Member[] {
    for (const lines of this.#lines) {
      for (const member of this.#restless) lines.update(member);
      lines.settle();
    }
    this.#restless.clear();
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }

  /** What the set found about a client, as of the last {@link settle}. */
  faultsOf(member: Member): readonly Fault[] {
    if (!isClaiming(member) || member.verdicts === 0) return NONE;
    return [
      ...(has(member, 'isTwin') ? [TWIN] : []),
      ...(has(member, 'hasConflict') ? [CONFLICT] : []),
      ...(has(member, 'sharesSecret') ? [SHARED_SECRET] : []),
      ...(has(member, 'isTooMany') ? [tooMany(member.claim.maxClientsPerNamespace)] : []),
    ];
  }

  #linesOf(
    verdict: Verdict,
    options: Pick<RankedClaimsOptions<Claiming<Member>>, 'claimed'> & Partial<RankedClaimsOptions<Claiming<Member>>>,
  ): RankedClaims<Claiming<Member>> {
    const tell = (member: Claiming<Member>, isLate: boolean) => this.#set(member, verdict, isLate);
    return new RankedClaims({ isInLine: () => true, order: byAge, placesFor: () => 1, tell, ...options });
  }

  #leave(member: Claiming<Member>): void {
    for (const lines of this.#lines) lines.remove(member);
    this.#restless.delete(member);
  }

  #set(member: Claiming<Member>, verdict: Verdict, value: boolean): void {
    if (has(member, verdict) === value) return;
    (member as Contender).verdicts ^= VERDICT[verdict];
    this.#changed.add(member);
    // Both decide whether it stands in the other lines.
    if (verdict === 'isTwin' || verdict === 'hasConflict') this.#restless.add(member);
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

function isClaiming<Member extends Contender>(member: Member): member is Claiming<Member> {
  return member.claim !== undefined;
}

function isNoTwin(member: Contender): boolean {
  return !has(member, 'isTwin');
}

function takesAPlace(member: Claiming<Contender>): boolean {
  return member.claim.isAccepted && isNoTwin(member) && !has(member, 'hasConflict');
}

/** Older first, then by uid. */
const byAge: Order<Claiming<Contender>> = (a, b) => {
  const [uidA, uidB] = [a.claim.uid ?? '', b.claim.uid ?? ''];
  return a.claim.createdAt - b.claim.createdAt || (uidA < uidB ? -1 : uidA > uidB ? 1 : a.order - b.order);
};

const derivedFirst: Order<Claiming<Contender>> = (a, b) =>
  Number(b.claim.derived) - Number(a.claim.derived) || byAge(a, b);

function isSame(one: ClientClaim, other: ClientClaim): boolean {
  return (Object.keys(one) as (keyof ClientClaim)[]).every((field) => one[field] === other[field]);
}
