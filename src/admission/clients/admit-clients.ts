// Judges all OAuthClients of one install together: each by itself, then uniqueness of uid, client id and Secret, and
// the limit of each namespace (client-uniqueness.ts). A caller that watches a large set keeps the claims and runs the
// same two steps for each change.

import { classOf, fieldsOf, type SourceObject } from '../kinds/manifest.ts';
import { type AdmissionContext, type ClientVerdict, clientVerdict, findClient } from './admit-client.ts';
import { ClientUniqueness, Contender, claimOf } from './client-uniqueness.ts';

/** The clients of one install, and what they are judged by. */
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
  const claims = new ClientUniqueness<Contender>();
  const judged = found.map((findings) => ({ findings, contender: new Contender() }));
  for (const { findings, contender } of judged) claims.put(contender, claimOf(findings));
  claims.settle();
  return judged.map(({ findings, contender }) => clientVerdict(findings, claims.faultsOf(contender)));
}

/** Whether an OAuthClient is one of this class and not being deleted. */
export function isServed({ manifest }: Pick<SourceObject, 'manifest'>, className: string): boolean {
  const { metadata } = fieldsOf(manifest);
  const isBeingDeleted = (fieldsOf(metadata).deletionTimestamp ?? undefined) !== undefined;
  return !isBeingDeleted && classOf(manifest) === className;
}
