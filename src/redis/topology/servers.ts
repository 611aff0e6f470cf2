// Which servers there are and which of them has a key: one primary, wherever it is, or the primaries of a Cluster. The
// Cluster's map is our own: that of ioredis sends a request again by itself and keeps requests it has reported as failed.

import type { Clock } from '../../oauth/ports/ports.ts';
import { type Redirection, within } from '../link/redis-errors.ts';
import type { RedisAddress, RedisTarget } from '../link/redis-url.ts';
import { ServerLink } from '../link/server-link.ts';
import type { ConnectionMaker } from './connection-maker.ts';
import { OwnerRefresh } from './owner-refresh.ts';
import { slotOf } from './slot.ts';

/** The servers behind one Redis address. */
export interface Servers {
  /** The primary that has this key; undefined while nobody is known to. */
  ownerOf(key: string): ServerLink | undefined;
  /** Where a redirected request is to be sent next. */
  redirected(redirection: Redirection, from: ServerLink): ServerLink | undefined;
  /** Every primary that is known; empty while none is. */
  primaries(): readonly ServerLink[];
  /** Something did not answer, or not as a primary does: it may be another one by now. */
  doubt(): void;
  /** The last thing that went wrong while connecting. */
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

/** Between two times that Sentinels are asked, each over a new connection; milliseconds. */
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
  // A lost connection asks by itself.
  const refresh =
    target.form === 'sentinel' ? new OwnerRefresh({ ask: connections.doubt, least: LEAST_BETWEEN }) : undefined;
  return {
    ownerOf: () => link,
    redirected: () => undefined,
    primaries: () => [link],
    doubt: () => refresh?.doubt(),
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
  /** The name of the primary that has each slot. */
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
      ask: () => this.#askForMap(),
      isWell: () => this.primaries().length > 0 && this.primaries().every((link) => link.isUp),
    });
  }

  ownerOf(key: string): ServerLink | undefined {
    const owner = this.#owners[slotOf(key)];
    return owner === undefined ? undefined : this.#links.get(owner);
  }

  redirected({ kind, slot, address }: Redirection, from: ServerLink): ServerLink | undefined {
    this.doubt();
    const target = readAddress(address, from.name);
    if (target === undefined) return undefined;
    if (kind === 'MOVED') this.#owners = this.#owners.with(slot, nameOf(target));
    return this.#linkTo(target);
  }

  primaries(): readonly ServerLink[] {
    return [...new Set(this.#owners)].flatMap((name) => (name === undefined ? [] : (this.#links.get(name) ?? [])));
  }

  doubt(): void {
    this.#refresh.doubt();
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

  /** Asks one server after the other for the map; the first that has one is believed until the next time. */
  async #askForMap(): Promise<void> {
    const up = [...this.#links.values()].filter((link) => link.isUp).sort(() => Math.random() - 0.5);
    for (const link of up) {
      const map = await link.send((redis) => redis.cluster('SLOTS'), this.#clock.now() + 300).catch(() => undefined);
      if (this.#adopt(map, link.name)) return;
    }
    for (const seed of this.#seeds) {
      if (this.#isClosed) return;
      const redis = this.#connections.to(seed, false);
      redis.on('error', (error) => {
        this.#lastError = error;
      });
      try {
        await within(700, redis.connect());
        if (this.#adopt(await within(300, redis.cluster('SLOTS')), nameOf(seed))) return;
      } catch (error) {
        this.#lastError ??= error;
      } finally {
        redis.disconnect();
      }
    }
  }

  /** Takes over a map; false when there is nothing in it. Servers without slots are let go. */
  #adopt(map: unknown, answeredBy: string): boolean {
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

/** The primaries of a CLUSTER SLOTS reply; what is no range in it is passed over. */
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

/** `host:port`; an empty or unknown host is that of the server that said so. */
function readAddress(address: string, answeredBy: string): RedisAddress | undefined {
  const [, host = '', port] = /^(.*):(\d{1,5})$/.exec(address) ?? [];
  if (port === undefined) return undefined;
  const own = /^(.*):\d+$/.exec(answeredBy)?.[1] ?? '';
  return { host: host === '' || host === '?' ? own : host, port: Number(port) };
}

function nameOf({ host, port }: RedisAddress): string {
  return `${host}:${port}`;
}
