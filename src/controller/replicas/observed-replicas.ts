// Observes what the replicas serve: a change is programmed, and a new secret or key usable, only when every
// replica that takes requests has it. A removed replica is left out; a new one lists before it is ready, so it
// cannot be behind.

import { z } from 'zod';
import type { Replica, Replicas } from './replicas.ts';

/** What one replica serves. */
export interface ServedState {
  /** Of the clients in the query for which it has a verdict, by uid. */
  readonly clients: ReadonlyMap<string, ServedClient>;
  /** Of the resources in the query, by uid. */
  readonly resources: ReadonlyMap<string, { readonly generation: number }>;
  /** Every key in its JWKS. */
  readonly keyIds: ReadonlySet<string>;
}

export interface ServedClient {
  readonly generation: number;
  /** `revision` of the verifiers it accepts; undefined while it has none. */
  readonly secretRevision: number | undefined;
}

/** The result of a query to all replicas. */
export type Observation =
  /** No addresses of replicas are configured. */
  | { readonly outcome: 'NotObserved' }
  /** No replica takes requests, so none can be behind. */
  | { readonly outcome: 'NoReplicas' }
  | {
      readonly outcome: 'Observed';
      readonly replicas: readonly {
        readonly name: string;
        /** Undefined when it did not answer in time. */
        readonly state: ServedState | undefined;
      }[];
    };

/** The port through which reconcilers observe the replicas. */
export interface ObservedReplicas {
  /**
   * Queries every replica for these clients and resources, and its keys. Never throws.
   * @param uids of OAuthClients and ProtectedResources; none when only the keys matter
   */
  observe(uids: readonly string[]): Promise<Observation>;
}

/** The names of the replicas that do not have it yet, or did not answer; empty when there is none to wait for. */
export function replicasBehind(observation: Observation, has: (state: ServedState) => boolean): readonly string[] {
  if (observation.outcome !== 'Observed') return [];
  return observation.replicas.filter(({ state }) => state === undefined || !has(state)).map(({ name }) => name);
}

const ANSWER = z.object({
  clients: z.record(z.string(), z.object({ generation: z.int(), secretRevision: z.int().optional() })),
  // A replica of an earlier version reports none.
  resources: z.record(z.string(), z.object({ generation: z.int() })).optional(),
  keyIds: z.array(z.string()),
});

/** The most clients in one request. */
const UIDS_PER_REQUEST = 1000;
/** Observations within this window share one query to each replica. */
const BATCH_WINDOW_MILLISECONDS = 20;

/** A replica that fails after this long is unresponsive; one that refuses at once is not, as it delays no reconcile. */
const UNRESPONSIVE_AFTER_MILLISECONDS = 1000;
/** Negative cache: for this long an unresponsive replica is treated as behind, and only a background probe queries it. */
const NEGATIVE_CACHE_MILLISECONDS = 5000;

interface Batch {
  readonly uids: Set<string>;
  readonly observation: Promise<Observation>;
}

/**
 * Polls the replicas over HTTP. Concurrent observations share a query, and an unresponsive replica does not delay the
 * observation of the others.
 */
export class PolledReplicas implements ObservedReplicas {
  readonly #replicas: Pick<Replicas, 'find' | 'ask'>;
  /** Until when a replica is treated as unresponsive, by address. Monotonic milliseconds. */
  readonly #unresponsive = new Map<string, number>();
  readonly #probing = new Set<string>();
  #openBatch: Batch | undefined;

  constructor(replicas: Pick<Replicas, 'find' | 'ask'>) {
    this.#replicas = replicas;
  }

  observe(uids: readonly string[]): Promise<Observation> {
    const batch = this.#openBatch ?? this.#newBatch();
    for (const uid of uids) batch.uids.add(uid);
    if (batch.uids.size >= UIDS_PER_REQUEST) this.#openBatch = undefined;
    return batch.observation;
  }

  #newBatch(): Batch {
    const uids = new Set<string>();
    const observation = new Promise<Observation>((resolve) => {
      setTimeout(() => {
        if (this.#openBatch?.uids === uids) this.#openBatch = undefined;
        resolve(this.#ask([...uids]));
      }, BATCH_WINDOW_MILLISECONDS);
    });
    this.#openBatch = { uids, observation };
    return this.#openBatch;
  }

  async #ask(uids: readonly string[]): Promise<Observation> {
    const found = this.#replicas.find();
    if (found === undefined) return { outcome: 'NotObserved' };
    if (found.length === 0) return { outcome: 'NoReplicas' };
    for (const url of this.#unresponsive.keys()) {
      if (!found.some((replica) => replica.url === url)) this.#unresponsive.delete(url);
    }
    const replicas = await Promise.all(
      found.map(async (replica) => ({ name: replica.name, state: await this.#stateOf(replica, uids) })),
    );
    return { outcome: 'Observed', replicas };
  }

  #stateOf(replica: Replica, uids: readonly string[]): Promise<ServedState | undefined> | undefined {
    const isUnresponsive = performance.now() < (this.#unresponsive.get(replica.url) ?? 0);
    if (!isUnresponsive) return this.#query(replica, uids);
    if (!this.#probing.has(replica.url)) void this.#probe(replica);
    return undefined;
  }

  async #probe(replica: Replica): Promise<void> {
    this.#probing.add(replica.url);
    await this.#query(replica, []);
    this.#probing.delete(replica.url);
  }

  async #query(replica: Replica, uids: readonly string[]): Promise<ServedState | undefined> {
    const begun = performance.now();
    const state = await this.#fetchState(replica, uids);
    const now = performance.now();
    const isUnresponsive = state === undefined && now - begun >= UNRESPONSIVE_AFTER_MILLISECONDS;
    if (isUnresponsive) this.#unresponsive.set(replica.url, now + NEGATIVE_CACHE_MILLISECONDS);
    else this.#unresponsive.delete(replica.url);
    return state;
  }

  async #fetchState(replica: Replica, uids: readonly string[]): Promise<ServedState | undefined> {
    const clients = new Map<string, ServedClient>();
    const resources = new Map<string, { readonly generation: number }>();
    let keyIds: readonly string[] = [];
    for (let from = 0; from === 0 || from < uids.length; from += UIDS_PER_REQUEST) {
      const request = { uids: uids.slice(from, from + UIDS_PER_REQUEST) };
      const answer = await this.#replicas.ask(replica, '/registry/observed', request, ANSWER);
      if (answer === undefined) return undefined;
      keyIds = answer.keyIds;
      for (const [uid, { generation, secretRevision }] of Object.entries(answer.clients)) {
        clients.set(uid, { generation, secretRevision });
      }
      for (const [uid, served] of Object.entries(answer.resources ?? {})) resources.set(uid, served);
    }
    return { clients, resources, keyIds: new Set(keyIds) };
  }
}
