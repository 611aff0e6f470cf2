// The immutable snapshot that every request reads once: the admitted clients, the signing keys, the
// resources and the identity providers.
// Sources (`manifests/`, `cluster-registry/`) build a new snapshot and swap the reference; no snapshot changes in
// place.

import type { Client } from './client.ts';
import type { IdentityProvider } from './identity-provider.ts';
import type { KeyRing } from './keys.ts';
import { Resources } from './resources.ts';
import { type MapDraft, ShardedMap } from './sharded-map.ts';

/** The refused clients of a source, as they are now: for logs only. */
export interface RefusedClients {
  /** The reason of the condition that refuses the client with this id; undefined when there is none. */
  reasonOf(clientId: string): string | undefined;
}

const NO_PROVIDERS: readonly IdentityProvider[] = [];
const NONE_REFUSED: RefusedClients = { reasonOf: () => undefined };

/** What a registry has beside clients and keys. */
export interface RegistryParts {
  readonly resources: Resources;
  /** Oldest first; suspended ones and those without credentials, too. One that does not change is the same object. */
  readonly providers: readonly IdentityProvider[];
}

/** One consistent snapshot: clients by id and by uid, CORS origins, signing keys, resources, identity providers. */
export class Registry {
  readonly keys: KeyRing;
  readonly resources: Resources;
  /** See {@link RegistryParts}. */
  readonly providers: readonly IdentityProvider[];
  /** The union of all clients' `allowedCorsOrigins`; a preflight names no client. */
  readonly corsOrigins: ReadonlySet<string>;
  readonly refused: RefusedClients;
  readonly #byClientId: ShardedMap<Client>;
  readonly #byUid: ShardedMap<Client>;

  /** @param clients admitted and not suspended; client ids are unique (`admission/` ensures that). */
  constructor(
    clients: readonly Client[],
    keys: KeyRing,
    parts?: Partial<RegistryParts> & { readonly refused?: RefusedClients },
  );
  /** From a {@link RegistryDraft}. */
  constructor(content: RegistryContent, keys: KeyRing, parts: RegistryParts & { readonly refused: RefusedClients });
  constructor(
    clients: readonly Client[] | RegistryContent,
    keys: KeyRing,
    parts: Partial<RegistryParts> & { readonly refused?: RefusedClients } = {},
  ) {
    const { resources = Resources.NONE, providers = NO_PROVIDERS, refused = NONE_REFUSED } = parts;
    const content = 'byUid' in clients ? clients : contentOf(clients);
    this.keys = keys;
    this.resources = resources;
    this.providers = providers;
    this.refused = refused;
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

  /** The client a grant belongs to; undefined once it is deleted, suspended or no longer admitted. */
  findByUid(uid: string): Client | undefined {
    return this.#byUid.get(uid);
  }

  /** A draft of the next registry; this one does not change. */
  draft(): RegistryDraft {
    const content = { byClientId: this.#byClientId, byUid: this.#byUid, corsOrigins: this.corsOrigins };
    return new RegistryDraft(content, this.refused);
  }
}

interface RegistryContent {
  readonly byClientId: ShardedMap<Client>;
  readonly byUid: ShardedMap<Client>;
  readonly corsOrigins: ReadonlySet<string>;
}

function contentOf(clients: readonly Client[]): RegistryContent {
  const nothing = { byClientId: ShardedMap.empty<Client>(), byUid: ShardedMap.empty<Client>() };
  const draft = new RegistryDraft({ ...nothing, corsOrigins: new Set() }, NONE_REFUSED);
  for (const client of clients) draft.put(client);
  return draft.content();
}

/**
 * A builder of the next registry. Its cost grows with the changes; only a removed CORS origin makes it read all
 * clients.
 */
export class RegistryDraft {
  readonly #byClientId: MapDraft<Client>;
  readonly #byUid: MapDraft<Client>;
  readonly #origins: Set<string>;
  readonly #refused: RefusedClients;
  /** Whether an origin may have lost its last client. */
  #isOriginGone = false;

  constructor({ byClientId, byUid, corsOrigins }: RegistryContent, refused: RefusedClients) {
    this.#refused = refused;
    this.#byClientId = byClientId.draft();
    this.#byUid = byUid.draft();
    this.#origins = new Set(corsOrigins);
  }

  /**
   * Adds a client, or replaces the one with its uid. The caller also removes or replaces any other client with its
   * client id.
   */
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
    // Another client may have its client id already.
    if (this.#byClientId.get(before.clientId) === before) this.#byClientId.delete(before.clientId);
    if (before.allowedCorsOrigins.length > 0) this.#isOriginGone = true;
  }

  /** The client with this uid in the next registry. */
  findByUid(uid: string): Client | undefined {
    return this.#byUid.get(uid);
  }

  /** Builds the next registry. The draft must not be used afterwards. */
  finish(keys: KeyRing, { resources, providers }: RegistryParts): Registry {
    return new Registry(this.content(), keys, { resources, providers, refused: this.#refused });
  }

  /** The content of the registry that {@link finish} builds. */
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

/** A reference to the current registry. A request reads `current` exactly once. */
export interface RegistryRef {
  readonly current: Registry;
}
