// The judge of all OAuthClients of one install together: who has a client id or a Secret that two claim, and who is one too
// many.

import {
  type AdmissionContext,
  type ClientFindings,
  type ClientVerdict,
  clientVerdict,
  findClient,
} from './admit-client.ts';
import { clientSecretName, hasGeneratedSecret } from './client-secret-manifest.ts';
import { ACCEPTED_FAULTS, type Fault, type FaultReason } from './conditions.ts';
import { secretNotOwned } from './credentials.ts';
import { classOf, fieldsOf, type SourceObject } from './manifest.ts';

/** What is judged, by whom. */
export interface ClientWorld<Source extends SourceObject = SourceObject> extends AdmissionContext {
  /** The class of this install; objects of another class are left out of the answer. */
  readonly className: string;
  readonly clients: readonly Source[];
}

/**
 * Judges every OAuthClient of this class, in the order given. One that is being deleted is left out: it is not served.
 * Never throws, and a broken manifest changes nothing for any other.
 */
export function admitClients<Source extends SourceObject>(
  world: ClientWorld<Source>,
): readonly ClientVerdict<Source>[] {
  const found = world.clients
    .filter((object) => isServed(object, world.className))
    .map((object) => findClient(object, world));
  const unique = withoutTwins(found);
  const settled = withoutSharedSecrets(withoutConflicts(unique));
  return withinLimits(settled).map(clientVerdict);
}

function isServed({ manifest }: SourceObject, className: string): boolean {
  const { metadata } = fieldsOf(manifest);
  const isBeingDeleted = (fieldsOf(metadata).deletionTimestamp ?? undefined) !== undefined;
  return !isBeingDeleted && classOf(manifest) === className;
}

function refuse<Source extends SourceObject>(findings: ClientFindings<Source>, fault: Fault): ClientFindings<Source> {
  return { ...findings, faults: [...findings.faults, fault] };
}

/** Older first, then by uid. */
function byAge(a: ClientFindings, b: ClientFindings): number {
  return (
    a.object.createdAt - b.object.createdAt || (a.object.uid < b.object.uid ? -1 : a.object.uid > b.object.uid ? 1 : 0)
  );
}

// Grants and verifiers are keyed by uid: of two objects with one uid (a manifest copied with its metadata) only one counts.
function withoutTwins<Source extends SourceObject>(
  all: readonly ClientFindings<Source>[],
): readonly ClientFindings<Source>[] {
  const readable = all.filter(({ manifest }) => manifest !== undefined);
  const holders = firstOf(readable, (findings) => findings.object.uid, byAge);
  return all.map((findings) => {
    if (findings.manifest === undefined || holders.get(findings.object.uid) === findings) return findings;
    const message = 'Another object has this uid; leave it out or change it.';
    return refuse(findings, { reason: 'InvalidManifest', path: ['metadata', 'uid'], message });
  });
}

function withoutConflicts<Source extends SourceObject>(
  all: readonly ClientFindings<Source>[],
): readonly ClientFindings<Source>[] {
  const claims = all.filter(claimsItsId);
  const derivedFirst = (a: ClientFindings, b: ClientFindings) => Number(b.derived) - Number(a.derived) || byAge(a, b);
  const holders = firstOf(claims, (findings) => findings.clientId, derivedFirst);
  return all.map((findings) => {
    if (!claimsItsId(findings) || holders.get(findings.clientId) === findings) return findings;
    // Nothing about the holder: it may be another tenant's.
    const message = 'Another client already has this client id.';
    return refuse(findings, { reason: 'ClientIdConflict', path: ['spec', 'clientId'], message });
  });
}

// Two generated secrets in one Secret would overwrite each other for ever.
function withoutSharedSecrets<Source extends SourceObject>(
  all: readonly ClientFindings<Source>[],
): readonly ClientFindings<Source>[] {
  const holders = firstOf(
    all.filter((findings) => generatedSecretOf(findings) !== undefined),
    (findings) => generatedSecretOf(findings) ?? '',
    byAge,
  );
  return all.map((findings) => {
    const secret = generatedSecretOf(findings);
    if (secret === undefined || holders.get(secret) === findings) return findings;
    const message = 'The secret of an older client of this namespace is generated into this Secret.';
    return { ...refuse(findings, secretNotOwned(message)), credentials: { state: 'pending', faults: [] } };
  });
}

/** The Secret that is written for a client, by namespace and name; undefined for a client that gets none. */
function generatedSecretOf(findings: ClientFindings): string | undefined {
  const { object, manifest, faults } = findings;
  const owned = claimsItsId(findings) && !faults.some(({ reason }) => reason === 'SecretNotOwned');
  if (manifest === undefined || !owned || !hasGeneratedSecret(manifest.spec)) return undefined;
  return `${object.namespace}/${clientSecretName(object.name, manifest.spec)}`;
}

// An id that was not permitted, or that stands in an unreadable manifest, keeps nobody else from having it. A suspended or
// otherwise refused client keeps its own, and its Secret: else somebody could take them over in the meantime.
function claimsItsId({ manifest, faults }: ClientFindings): boolean {
  const without: readonly FaultReason[] = [
    'InvalidManifest',
    'NamespaceReserved',
    'ClientIdNotPermitted',
    'NoMatchingPolicy',
  ];
  return manifest !== undefined && !faults.some(({ reason }) => without.includes(reason));
}

// One whose Secret is still missing takes its place like any other, and so does a suspended one.
function isAccepted({ faults }: ClientFindings): boolean {
  const reasons: readonly FaultReason[] = ACCEPTED_FAULTS;
  return !faults.some(({ reason }) => reasons.includes(reason));
}

function withinLimits<Source extends SourceObject>(
  all: readonly ClientFindings<Source>[],
): readonly ClientFindings<Source>[] {
  const counts = new Map<string, number>();
  const refused = new Set<ClientFindings>();
  for (const findings of all.filter(isAccepted).sort(byAge)) {
    const before = counts.get(findings.object.namespace) ?? 0;
    counts.set(findings.object.namespace, before + 1);
    if (before >= findings.maxClientsPerNamespace) refused.add(findings);
  }
  return all.map((findings) => {
    if (!refused.has(findings)) return findings;
    const message = `The limit for this namespace is ${findings.maxClientsPerNamespace}, and older clients take all places.`;
    return refuse(findings, { reason: 'ClientLimitExceeded', path: [], message });
  });
}

/** For each key the member that comes first by `order`; of equals the one given first. */
function firstOf<Member>(
  members: readonly Member[],
  keyOf: (member: Member) => string,
  order: (a: Member, b: Member) => number,
): ReadonlyMap<string, Member> {
  const first = new Map<string, Member>();
  for (const member of members) {
    const holder = first.get(keyOf(member));
    if (holder === undefined || order(member, holder) < 0) first.set(keyOf(member), member);
  }
  return first;
}
