// The faults of ProtectedResources that follow from the set of all: an identifier that another resource has, a namespace
// over its limit. An identifier that an administrator listed letter by letter goes to the resource there, else the oldest
// has it; age alone would not do, since a restore resets creationTimestamps.

import type { ResourceFindings } from './admit-resource.ts';
import type { ResourceFault } from './resource-rules.ts';

const NONE: readonly ResourceFault[] = [];
// Names nothing of the holder, which may be of another tenant.
const CONFLICT: ResourceFault = {
  reason: 'ResourceConflict',
  path: ['spec', 'resource'],
  message: 'Another resource has this identifier.',
};

/** The faults of each resource among all, by its findings; a resource without any is left out. */
export function faultsAmongAll(
  all: readonly ResourceFindings[],
): ReadonlyMap<ResourceFindings, readonly ResourceFault[]> {
  const faults = new Map<ResourceFindings, readonly ResourceFault[]>();
  const held = new Set<string>();
  const placesTaken = new Map<string, number>();
  for (const findings of all.toSorted(listedFirst)) {
    if (findings.claim === undefined) continue;
    if (held.has(findings.claim)) faults.set(findings, [CONFLICT]);
    else held.add(findings.claim);
  }
  for (const findings of all.toSorted(byAge)) {
    const { object, maxResourcesPerNamespace: limit } = findings;
    if (findings.faults.length > 0 || findings.awaitsNamespace || faults.has(findings)) continue;
    const taken = placesTaken.get(object.namespace) ?? 0;
    if (taken >= limit) faults.set(findings, [limitExceeded(limit)]);
    else placesTaken.set(object.namespace, taken + 1);
  }
  return faults;
}

/** The faults of one resource in the answer of {@link faultsAmongAll}. */
export function faultsOf(
  ranked: ReadonlyMap<ResourceFindings, readonly ResourceFault[]>,
  findings: ResourceFindings,
): readonly ResourceFault[] {
  return ranked.get(findings) ?? NONE;
}

function limitExceeded(limit: number): ResourceFault {
  const message = `The limit for this namespace is ${limit}, and older resources take all places.`;
  return { reason: 'ResourceLimitExceeded', path: [], message };
}

function byAge({ object: a }: ResourceFindings, { object: b }: ResourceFindings): number {
  return a.createdAt - b.createdAt || (a.uid < b.uid ? -1 : a.uid > b.uid ? 1 : 0);
}

function listedFirst(a: ResourceFindings, b: ResourceFindings): number {
  return Number(b.isListed) - Number(a.isListed) || byAge(a, b);
}
