// The servers behind a Redis address, and the owner of each key: one primary, wherever it is, or the primaries of a
// Cluster. The slot map of a Cluster is kept here: that of ioredis resends requests by itself and keeps requests it has
// reported as failed.

import type { Clock } from '../../oauth/ports/ports.ts';
import { type Redirection, within } from '../link/redis-errors.ts';
import type { RedisAddress, RedisTarget } from '../link/redis-url.ts';
import { ServerLink } from '../link/server-link.ts';
import type { ConnectionMaker } from './connection-maker.ts';
import { OwnerRefresh } from './owner-refresh.ts';
import { slotOf } from './slot.ts';

/** The servers behind one Redis address. */
export interface Servers {
  /** The primary that owns this key; undefined while none is known. */
  ownerOf(key: string): ServerLink | undefined;
  /** The server that a redirected request is to be sent to. */
  redirected(redirection: Redirection, from: ServerLink): ServerLink | undefined;
  /** Every primary that is known; empty while none is. */
  primaries(): readonly ServerLink[];
  /** Reports that a server did not answer, or not as a primary: what is known of the owners may be stale. */
  suspectStale(): void;
  /** The last error of a connection. */
  lastError(): unknown;
  close(): void;
}

export interface ServersParts {
  readonly target: RedisTarget;
  readonly connections: ConnectionMaker;
  readonly clock: Clock;
  /** Called whenever a primary is reached, the first time included. */
  readonly onReady: () => void;
}

/** The least time between two queries of the Sentinels, each over a new connection; milliseconds. */
const LEAST_BETWEEN = 500;

/** Starts to connect. */
export function openServers({ target, connections, clock, onReady }: ServersParts): Servers {
  if (target.form === 'cluster') return new ClusterServers({ seeds: target.seeds, connections, clock, onReady });
  const link = new ServerLink({
    name: target.form === 'sentinel' ? target.primary : nameOf(target.address),
    connect: (lasting) =>
      target.form === 'sentinel' ? connections.toPrimary(target, lasting) : connections.to(target.address, lasting),
    clock,
    onReady,
  });
  // A lost connection asks the Sentinels by itself.
  const refresh =
    target.form === 'sentinel' ? new OwnerRefresh({ ask: connections.verifyPrimary, least: LEAST_BETWEEN }) : undefined;
  return {
    ownerOf: () => link,
    redirected: () => undefined,
    primaries: () => [link],
    suspectStale: () => refresh?.suspectStale(),
    lastError: () => link.lastError,
    close() {
      refresh?.stop();
      link.close();
    },
  };
}

class ClusterServers implements Servers {
  readonly #seeds: readonly RedisAddress[];
  readonly #connections: ConnectionMaker;
  readonly #clock: Clock;
  readonly #onReady: () => void;
  readonly #links = new Map<string, ServerLink>();
  /** The name of the primary that owns each slot. */
  #owners: readonly (string | undefined)[] = [];
  readonly #refresh: OwnerRefresh;
  #isClosed = false;
  #lastError: unknown;

  constructor({
    seeds,
    connections,
    clock,
    onReady,
  }: Omit<ServersParts, 'target'> & { seeds: readonly RedisAddress[] }) {
    this.#seeds = seeds;
    this.#connections = connections;
    this.#clock = clock;
    this.#onReady = onReady;
    this.#refresh = new OwnerRefresh({
      ask: () => this.#fetchSlots(),
      isHealthy: () => this.primaries().length > 0 && this.primaries().every((link) => link.isUp),
    });
  }

  ownerOf(key: string): ServerLink | undefined {
    const owner = this.#owners[slotOf(key)];
    return owner === undefined ? undefined : this.#links.get(owner);
  }

  redirected({ kind, slot, address }: Redirection, from: ServerLink): ServerLink | undefined {
    this.suspectStale();
    const target = readAddress(address, from.name);
    if (target === undefined) return undefined;
    if (kind === 'MOVED') this.#owners = this.#owners.with(slot, nameOf(target));
    return this.#linkTo(target);
  }

  primaries(): readonly ServerLink[] {
    return [...new Set(this.#owners)].flatMap((name) => (name === undefined ? [] : (this.#links.get(name) ?? [])));
  }

  suspectStale(): void {
    this.#refresh.suspectStale();
  }

  lastError(): unknown {
    return this.primaries().find((link) => !link.isUp)?.lastError ?? this.#lastError;
  }

  close(): void {
    this.#refresh.stop();
    this.#isClosed = true;
    for (const link of this.#links.values()) link.close();
  }

  #linkTo(address: RedisAddress): ServerLink {
    const name = nameOf(address);
    const known = this.#links.get(name);
    if (known !== undefined) return known;
    const link = new ServerLink({
      name,
      connect: (lasting) => this.#connections.to(address, lasting),
      clock: this.#clock,
      onReady: this.#onReady,
    });
    this.#links.set(name, link);
    return link;
  }

  /** Asks one server after the other for the slot map, and applies the first one. */
  async #fetchSlots(): Promise<void> {
    const up = [...this.#links.values()].filter((link) => link.isUp).sort(() => Math.random() - 0.5);
    for (const link of up) {
      const map = await link.send((redis) => redis.cluster('SLOTS'), this.#clock.now() + 300).catch(() => undefined);
      if (this.#applySlots(map, link.name)) return;
    }
    for (const seed of this.#seeds) {
      if (this.#isClosed) return;
      const redis = this.#connections.to(seed, false);
      redis.on('error', (error) => {
        this.#lastError = error;
      });
      try {
        await within(700, redis.connect());
        if (this.#applySlots(await within(300, redis.cluster('SLOTS')), nameOf(seed))) return;
      } catch (error) {
        this.#lastError ??= error;
      } finally {
        redis.disconnect();
      }
    }
  }

  /** Applies a slot map; false when it is empty. Closes the links to servers without slots. */
  #applySlots(map: unknown, answeredBy: string): boolean {
    const ranges = readSlots(map, answeredBy);
    if (ranges.length === 0 || this.#isClosed) return false;
    this.#lastError = undefined;
    const owners = new Array<string | undefined>(16_384).fill(undefined);
    for (const { first, last, owner } of ranges) {
      owners.fill(nameOf(owner), first, last + 1);
      this.#linkTo(owner);
    }
    this.#owners = owners;
    const named = new Set(owners);
    for (const [name, link] of this.#links) {
      if (named.has(name)) continue;
      this.#links.delete(name);
      link.close();
    }
    return true;
  }
}

interface SlotRange {
  readonly first: number;
  readonly last: number;
  readonly owner: RedisAddress;
}

/** The primaries of a CLUSTER SLOTS reply; what is no range in it is ignored. */
function readSlots(reply: unknown, answeredBy: string): readonly SlotRange[] {
  return listOf(reply).flatMap((range) => {
    const [first, last, primary] = listOf(range);
    const [host, port] = listOf(primary);
    const owner = readAddress(`${host ?? ''}:${port}`, answeredBy);
    if (typeof first !== 'number' || typeof last !== 'number' || owner === undefined) return [];
    return { first, last, owner };
  });
}

function listOf(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : [];
}

/** `host:port`; an empty or unknown host is that of the server that answered. */
function readAddress(address: string, answeredBy: string): RedisAddress | undefined {
  const [, host = '', port] = /^(.*):(\d{1,5})$/.exec(address) ?? [];
  if (port === undefined) return undefined;
  const own = /^(.*):\d+$/.exec(answeredBy)?.[1] ?? '';
  return { host: host === '' || host === '?' ? own : host, port: Number(port) };
}

function nameOf({ host, port }: RedisAddress): string {
  return `${host}:${port}`;
}
