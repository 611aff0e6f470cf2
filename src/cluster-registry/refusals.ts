// The refused clients of a token server by client id, for the log lines of their requests. Nothing of their manifests.

import type { RefusedClients } from '../oauth/registry/registry.ts';

export class Refusals implements RefusedClients {
  readonly #idOf = new Map<string, string>();
  /** By client id and uid: several refused clients may have one id. */
  readonly #reasons = new Map<string, Map<string, string>>();

  /** @param reason that of the condition which refuses the client */
  put(uid: string, clientId: string, reason: string): void {
    this.delete(uid);
    this.#idOf.set(uid, clientId);
    this.#reasons.set(clientId, (this.#reasons.get(clientId) ?? new Map<string, string>()).set(uid, reason));
  }

  /** Does nothing for a client that is not refused. */
  delete(uid: string): void {
    const clientId = this.#idOf.get(uid);
    if (clientId === undefined) return;
    this.#idOf.delete(uid);
    const byUid = this.#reasons.get(clientId);
    byUid?.delete(uid);
    if (byUid?.size === 0) this.#reasons.delete(clientId);
  }

  reasonOf(clientId: string): string | undefined {
    return this.#reasons.get(clientId)?.values().next().value;
  }
}
