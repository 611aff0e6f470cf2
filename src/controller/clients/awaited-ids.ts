// The clients whose id another client has, and the moment at which one of them gets it. The conditions name one fault at
// a time, and a conflict may stand behind another one, so a status alone does not show it.

import type { ClientVerdict } from '../../admission/clients/admit-client.ts';
import { holdsClientId } from '../../admission/clients/client-uniqueness.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import { conditionIn } from '../reconciling/status-conditions.ts';

export class AwaitedIds {
  /** The client id, by uid. After a restart the status is all there is. */
  readonly #awaited = new Map<string, string>();

  /**
   * To be called with each verdict, once its status is written.
   * @param before the status before that
   * @returns whether the client has got the id that another client had
   */
  isAcquired(verdict: ClientVerdict, before: unknown): boolean {
    const { object, clientId, faults } = verdict;
    const { uid } = object;
    if (faults.some(({ reason }) => reason === 'ClientIdConflict')) {
      this.#awaited.set(uid, clientId);
      return false;
    }
    const awaited = this.#awaited.get(uid) ?? awaitedIn(before);
    if (awaited === undefined) return false;
    if (!holdsClientId(verdict)) {
      this.#awaited.set(uid, awaited);
      return false;
    }
    this.#awaited.delete(uid);
    return awaited === clientId;
  }

  /** To be called when a client was deleted. */
  forget(uid: string): void {
    this.#awaited.delete(uid);
  }
}

function awaitedIn(status: unknown): string | undefined {
  const { clientId } = fieldsOf(status);
  return conditionIn(status, 'Accepted')?.reason === 'ClientIdConflict' && typeof clientId === 'string'
    ? clientId
    : undefined;
}
