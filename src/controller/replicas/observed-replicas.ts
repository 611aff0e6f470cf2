// What the replicas serve at this moment: a change counts as programmed, and a new secret or key as usable, only when every
// replica that takes requests has it. A replica that leaves no longer counts; a new one lists before it is ready, so it
// cannot be behind.

import { z } from 'zod';
import type { Replica, Replicas } from './replicas.ts';

/** What one replica serves. */
export interface ServedState {
  /** By uid: what it has judged of the clients it was asked about. */
  readonly clients: ReadonlyMap<string, ServedClient>;
  /** Every key in its JWKS. */
  readonly keyIds: ReadonlySet<string>;
}

export interface ServedClient {
  readonly generation: number;
  /** `revision` of the verifiers it accepts; undefined while it has none. */
  readonly secretRevision: number | undefined;
}

/** What was found. */
export type Observation =
  /** Nobody told where the replicas are. */
  | { readonly outcome: 'NotObserved' }
  /** None takes requests: so none can be behind. */
  | { readonly outcome: 'NoReplicas' }
  | {
      readonly outcome: 'Observed';
      readonly replicas: readonly {
        readonly name: string;
        /** Undefined when it did not answer in time. */
        readonly state: ServedState | undefined;
      }[];
    };

/** The port through which reconcilers see the replicas. */
export interface ObservedReplicas {
  /**
   * Asks every replica about these clients and its keys. Never throws.
   * @param uids of OAuthClients; none when only the keys matter
   */
  observe(uids: readonly string[]): Promise<Observation>;
}

/** The names of the replicas that do not have it yet, or did not answer; empty when nothing need be waited for. */
export function replicasBehind(observation: Observation, has: (state: ServedState) => boolean): readonly string[] {
  if (observation.outcome !== 'Observed') return [];
  return observation.replicas.filter(({ state }) => state === undefined || !has(state)).map(({ name }) => name);
}

const ANSWER = z.object({
  clients: z.record(z.string(), z.object({ generation: z.int(), secretRevision: z.int().optional() })),
  keyIds: z.array(z.string()),
});

/** So many clients are asked about in one request. */
const UIDS_PER_REQUEST = 1000;
/** So long others' questions are waited for: all of that time go out as one. */
const GATHERING_MILLISECONDS = 20;

/** Who kept askers waiting this long and said nothing is silent: one that refuses at once keeps nobody waiting. */
const SILENT_AFTER_MILLISECONDS = 1000;
/** So long a silent replica counts as behind without being waited for. */
const SILENT_MILLISECONDS = 5000;

interface Round {
  readonly uids: Set<string>;
  readonly observation: Promise<Observation>;
}

/**
 * The replicas over HTTP. Questions that come together are asked together, and one replica that is silent does not hold up
 * every look at what the others serve.
 */
export class AskedReplicas implements ObservedReplicas {
  readonly #replicas: Pick<Replicas, 'find' | 'ask'>;
  /** Until when a replica counts as silent, by address. Monotonic milliseconds. */
  readonly #silent = new Map<string, number>();
  readonly #probed = new Set<string>();
  #gathering: Round | undefined;

  constructor(replicas: Pick<Replicas, 'find' | 'ask'>) {
    this.#replicas = replicas;
  }

  observe(uids: readonly string[]): Promise<Observation> {
    const round = this.#gathering ?? this.#newRound();
    for (const uid of uids) round.uids.add(uid);
    if (round.uids.size >= UIDS_PER_REQUEST) this.#gathering = undefined;
    return round.observation;
  }

  #newRound(): Round {
    const uids = new Set<string>();
    const observation = new Promise<Observation>((resolve) => {
      setTimeout(() => {
        if (this.#gathering?.uids === uids) this.#gathering = undefined;
        resolve(this.#ask([...uids]));
      }, GATHERING_MILLISECONDS);
    });
    this.#gathering = { uids, observation };
    return this.#gathering;
  }

  async #ask(uids: readonly string[]): Promise<Observation> {
    const found = this.#replicas.find();
    if (found === undefined) return { outcome: 'NotObserved' };
    if (found.length === 0) return { outcome: 'NoReplicas' };
    for (const url of this.#silent.keys()) {
      if (!found.some((replica) => replica.url === url)) this.#silent.delete(url);
    }
    const replicas = await Promise.all(
      found.map(async (replica) => ({ name: replica.name, state: await this.#stateOf(replica, uids) })),
    );
    return { outcome: 'Observed', replicas };
  }

  #stateOf(replica: Replica, uids: readonly string[]): Promise<ServedState | undefined> | undefined {
    const isSilent = performance.now() < (this.#silent.get(replica.url) ?? 0);
    if (!isSilent) return this.#listenTo(replica, uids);
    if (!this.#probed.has(replica.url)) void this.#probe(replica);
    return undefined;
  }

  async #probe(replica: Replica): Promise<void> {
    this.#probed.add(replica.url);
    await this.#listenTo(replica, []);
    this.#probed.delete(replica.url);
  }

  async #listenTo(replica: Replica, uids: readonly string[]): Promise<ServedState | undefined> {
    const begun = performance.now();
    const state = await this.#servedBy(replica, uids);
    const now = performance.now();
    const isSilent = state === undefined && now - begun >= SILENT_AFTER_MILLISECONDS;
    if (isSilent) this.#silent.set(replica.url, now + SILENT_MILLISECONDS);
    else this.#silent.delete(replica.url);
    return state;
  }

  async #servedBy(replica: Replica, uids: readonly string[]): Promise<ServedState | undefined> {
    const clients = new Map<string, ServedClient>();
    let keyIds: readonly string[] = [];
    for (let from = 0; from === 0 || from < uids.length; from += UIDS_PER_REQUEST) {
      const question = { uids: uids.slice(from, from + UIDS_PER_REQUEST) };
      const answer = await this.#replicas.ask(replica, '/registry/observed', question, ANSWER);
      if (answer === undefined) return undefined;
      keyIds = answer.keyIds;
      for (const [uid, { generation, secretRevision }] of Object.entries(answer.clients)) {
        clients.set(uid, { generation, secretRevision });
      }
    }
    return { clients, keyIds: new Set(keyIds) };
  }
}
