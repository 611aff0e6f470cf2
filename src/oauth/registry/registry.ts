// The immutable snapshot that every request reads once: the admitted clients and the signing keys.
// Sources (`manifests/`, `kubernetes/`) make a new one and swap the reference; nothing that a request holds is ever patched.

import type { Client } from './client.ts';
import type { KeyRing } from './keys.ts';
import { type MapDraft, ShardedMap } from './sharded-map.ts';

/** One consistent world: clients by id and by uid, CORS origins, signing keys. */
export class Registry {
  readonly keys: KeyRing;
  /** The union of all clients' `allowedCorsOrigins`; a preflight names no client. */
  readonly corsOrigins: ReadonlySet<string>;
  readonly #byClientId: ShardedMap<Client>;
  readonly #byUid: ShardedMap<Client>;

  /** @param clients admitted and not suspended; client ids are unique (the judge saw to that). */
  constructor(clients: readonly Client[], keys: KeyRing);
  /** Of a {@link RegistryDraft}. */
  constructor(content: RegistryContent, keys: KeyRing);
  constructor(clients: readonly Client[] | RegistryContent, keys: KeyRing) {
    const content = 'byUid' in clients ? clients : contentOf(clients);
    this.keys = keys;
    this.#byClientId = content.byClientId;
    this.#byUid = content.byUid;
    this.corsOrigins = content.corsOrigins;
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

  /** The next registry in the making: this one stays as it is. */
  draft(): RegistryDraft {
    return new RegistryDraft({ byClientId: this.#byClientId, byUid: this.#byUid, corsOrigins: this.corsOrigins });
  }
}

interface RegistryContent {
  readonly byClientId: ShardedMap<Client>;
  readonly byUid: ShardedMap<Client>;
  readonly corsOrigins: ReadonlySet<string>;
}

function contentOf(clients: readonly Client[]): RegistryContent {
  const nothing = { byClientId: ShardedMap.empty<Client>(), byUid: ShardedMap.empty<Client>() };
  const draft = new RegistryDraft({ ...nothing, corsOrigins: new Set() });
  for (const client of clients) draft.put(client);
  return draft.content();
}

/** Changes on their way to the next registry. They cost what they change, however many clients there are. */
export class RegistryDraft {
  readonly #byClientId: MapDraft<Client>;
  readonly #byUid: MapDraft<Client>;
  readonly #origins: Set<string>;
  /** Whether an origin may have lost its last client. */
  #isOriginGone = false;

  constructor({ byClientId, byUid, corsOrigins }: RegistryContent) {
    this.#byClientId = byClientId.draft();
    this.#byUid = byUid.draft();
    this.#origins = new Set(corsOrigins);
  }

  /** Adds a client, or replaces what its uid was. Whoever had its client id has to be removed or replaced too. */
  put(client: Client): void {
    this.remove(client.uid);
    this.#byUid.set(client.uid, client);
    this.#byClientId.set(client.clientId, client);
    for (const origin of client.allowedCorsOrigins) this.#origins.add(origin);
  }

  remove(uid: string): void {
    const before = this.#byUid.get(uid);
    if (before === undefined) return;
    this.#byUid.delete(uid);
    // Its id may be another's already.
    if (this.#byClientId.get(before.clientId) === before) this.#byClientId.delete(before.clientId);
    if (before.allowedCorsOrigins.length > 0) this.#isOriginGone = true;
  }

  /** The registry that the changes come to. The draft must not be used any more. */
  finish(keys: KeyRing): Registry {
    return new Registry(this.content(), keys);
  }

  /** What {@link finish} is made of. */
  content(): RegistryContent {
    const byUid = this.#byUid.finish();
    return { byClientId: this.#byClientId.finish(), byUid, corsOrigins: this.#originsOf(byUid) };
  }

  #originsOf(clients: ShardedMap<Client>): ReadonlySet<string> {
    if (!this.#isOriginGone) return this.#origins;
    const origins = new Set<string>();
    for (const { allowedCorsOrigins } of clients.values()) {
      for (const origin of allowedCorsOrigins) origins.add(origin);
    }
    return origins;
  }
}

/** Where the present registry is read from. A request takes `current` once and never again. */
export interface RegistryRef {
  readonly current: Registry;
}
