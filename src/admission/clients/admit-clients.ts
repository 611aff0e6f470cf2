// The judge of all OAuthClients of one install together: each by itself, then who has a uid, a client id or a Secret that
// two claim, and who is one too many (client-uniqueness.ts). Whoever follows a large set from change to change keeps the claims
// and calls the same two steps for what changed.

import { classOf, fieldsOf, type SourceObject } from '../kinds/manifest.ts';
import { type AdmissionContext, type ClientVerdict, clientVerdict, findClient } from './admit-client.ts';
import { ClientUniqueness, Contender, claimOf } from './client-uniqueness.ts';

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
  const claims = new ClientUniqueness<Contender>();
  const judged = found.map((findings) => ({ findings, claimant: new Contender() }));
  for (const { findings, claimant } of judged) claims.put(claimant, claimOf(findings));
  claims.settle();
  return judged.map(({ findings, claimant }) => clientVerdict(findings, claims.faultsOf(claimant)));
}

/** Whether an OAuthClient is one of this class and not being deleted. */
export function isServed({ manifest }: Pick<SourceObject, 'manifest'>, className: string): boolean {
  const { metadata } = fieldsOf(manifest);
  const isBeingDeleted = (fieldsOf(metadata).deletionTimestamp ?? undefined) !== undefined;
  return !isBeingDeleted && classOf(manifest) === className;
}
