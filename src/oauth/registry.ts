// The immutable snapshot that every request reads once: the admitted clients and the signing keys.
// Sources (`manifests/`, later `kubernetes/`) build a new one and swap the reference; nothing is ever patched.

import type { Client } from './client.ts';
import type { KeyRing } from './keys.ts';

/** One consistent world: clients by id and by uid, CORS origins, signing keys. */
export class Registry {
  readonly keys: KeyRing;
  /** The union of all clients' `allowedCorsOrigins`; a preflight names no client. */
  readonly corsOrigins: ReadonlySet<string>;
  readonly #byClientId: ReadonlyMap<string, Client>;
  readonly #byUid: ReadonlyMap<string, Client>;

  /** @param clients admitted and not suspended; client ids are unique (the judge saw to that). */
  constructor(clients: readonly Client[], keys: KeyRing) {
    this.keys = keys;
    this.#byClientId = new Map(clients.map((client) => [client.clientId, client]));
    this.#byUid = new Map(clients.map((client) => [client.uid, client]));
    this.corsOrigins = new Set(clients.flatMap((client) => client.allowedCorsOrigins));
  }

  get size(): number {
    return this.#byUid.size;
  }

  find(clientId: string): Client | undefined {
    return this.#byClientId.get(clientId);
  }

  /** The living client a grant belongs to; undefined once it is deleted, suspended or no longer admitted. */
  findByUid(uid: string): Client | undefined {
    return this.#byUid.get(uid);
  }
}

/** Where the present registry is read from. A request takes `current` once and never again. */
export interface RegistryRef {
  readonly current: Registry;
}
