// The clients that requests are served by: the registry and the draft of the next one, the refused clients by client id, and
// the changes for the audit stream. validated-clients.ts validates them.

import type { Client } from '../oauth/registry/client.ts';
import { KeyRing } from '../oauth/registry/keys.ts';
import { type RefusedClients, Registry, type RegistryDraft, type RegistryParts } from '../oauth/registry/registry.ts';

/** A client that is accepted, refused or removed, for the audit stream. */
export interface ClientChange {
  readonly clientId: string;
  readonly kind: 'accepted' | 'refused' | 'removed';
  /** Why the client is refused. */
  readonly reason?: string;
}

export class ServedClients {
  readonly #refusals = new Refusals();
  #registry = new Registry([], new KeyRing([]), { refused: this.#refusals });
  #draft: RegistryDraft | undefined;
  readonly #changes: ClientChange[] = [];

  /** How many clients are refused. */
  get refused(): number {
    return this.#refusals.size;
  }

  /** The next registry serves this client. The same object as before changes nothing. */
  accept(client: Client): void {
    const before = this.#find(client.uid);
    this.#refusals.delete(client.uid);
    if (client === before) return;
    this.#drafted().put(client);
    if (before === undefined) this.#changes.push({ clientId: client.clientId, kind: 'accepted' });
  }

  /** The next registry does not serve this client. @param reason that of the condition which refuses it */
  refuse(uid: string, clientId: string, reason: string): void {
    const isServed = this.#find(uid) !== undefined;
    if (isServed || !this.#refusals.has(uid)) this.#changes.push({ clientId, kind: 'refused', reason });
    this.#refusals.put(uid, clientId, reason);
    if (isServed) this.#drafted().remove(uid);
  }

  /** The client is deleted. */
  remove(uid: string, clientId: string): void {
    this.#changes.push({ clientId, kind: 'removed' });
    this.#refusals.delete(uid);
    if (this.#find(uid) !== undefined) this.#drafted().remove(uid);
  }

  /** Publishes the draft. @returns the registry, and the changes since the previous one */
  publish(
    keys: KeyRing,
    parts: RegistryParts,
  ): { readonly registry: Registry; readonly changes: readonly ClientChange[] } {
    const before = this.#registry;
    const isSame = keys === before.keys && parts.resources === before.resources && parts.providers === before.providers;
    if (this.#draft !== undefined || !isSame) this.#registry = this.#drafted().finish(keys, parts);
    this.#draft = undefined;
    return { registry: this.#registry, changes: this.#changes.splice(0) };
  }

  #find(uid: string): Client | undefined {
    return (this.#draft ?? this.#registry).findByUid(uid);
  }

  #drafted(): RegistryDraft {
    this.#draft ??= this.#registry.draft();
    return this.#draft;
  }
}

/** The refused clients, for the log lines of their requests. Nothing of their manifests. */
class Refusals implements RefusedClients {
  readonly #idOf = new Map<string, string>();
  /** By client id and uid: several refused clients may have one id. */
  readonly #reasons = new Map<string, Map<string, string>>();

  get size(): number {
    return this.#idOf.size;
  }

  has(uid: string): boolean {
    return this.#idOf.has(uid);
  }

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
