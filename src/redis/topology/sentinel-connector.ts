// Finds the primary by asking all Sentinels: one that has not observed a fail-over yet, or is cut off from the others,
// still names the old primary, which may run again by then, empty. Each fail-over has an epoch, and the answer with the
// latest one counts. The connector asks at every connect, and from time to time about the primary that it has reached:
// an old primary that no Sentinel can reach still reports itself as a primary.

import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Redis } from 'ioredis';
import { Connector, type ConnectorParts } from '../link/connector.ts';
import { reconnectDelay } from '../link/reconnect-delay.ts';
import type { RedisAddress } from '../link/redis-url.ts';

/** How long the other Sentinels have after the first that answers, in milliseconds. */
const OTHERS = 100;

/** How the error message begins where no Sentinel names the primary; the cause follows. */
export const NO_SENTINEL = 'no Sentinel names the primary';

export interface SentinelConnectorParts extends ConnectorParts {
  readonly sentinels: readonly RedisAddress[];
  /** What the Sentinels call the primary. */
  readonly primary: string;
  /** Makes a connection to one Sentinel that is not yet connected and does not reconnect by itself. */
  readonly toSentinel: (address: RedisAddress) => Redis;
  /** Whether it retries while no Sentinel answers. */
  readonly lasting: boolean;
}

/** The answer of one Sentinel. */
interface Answer {
  readonly address: RedisAddress;
  /** The epoch of the fail-over to this primary; 0 where the Sentinel does not report one. */
  readonly epoch: number;
}

export class SentinelConnector extends Connector {
  readonly #parts: SentinelConnectorParts;
  /** The primary that the socket is or was connected to. */
  #reached: Answer | undefined;

  constructor(parts: SentinelConnectorParts) {
    super(parts);
    this.#parts = parts;
  }

  /** Whether the server that was reached reports itself as a primary, by its INFO. */
  override check(info: { readonly role?: string }): boolean {
    return super.check(info) && (info.role === undefined || info.role === 'master');
  }

  /** The server that the socket is or was connected to; undefined before there was a socket. */
  get address(): RedisAddress | undefined {
    return this.#reached?.address;
  }

  /** @param report called for each failed attempt @throws when none may follow, or the connection was closed meanwhile */
  override async connect(report: (event: string, error: Error) => void): Promise<Socket> {
    this.connecting = true;
    for (let attempt = 1; ; attempt++) {
      const { latest, error } = await this.#ask();
      if (!this.connecting) throw new Error('the connection was closed');
      const [first] = latest;
      if (first !== undefined) {
        this.#reached = first;
        return this.dial(first.address);
      }
      const fault = new Error(`${NO_SENTINEL}: ${error instanceof Error ? error.message : 'no answer in time'}`);
      if (!this.#parts.lasting) throw fault;
      report('error', fault);
      await sleep(reconnectDelay(attempt), undefined, { ref: false });
      if (!this.connecting) throw new Error('the connection was closed');
    }
  }

  /**
   * Asks the Sentinels, and ends the socket where they report a later fail-over to another primary; ioredis then
   * reconnects. Otherwise the socket stays in use. Without a socket, `connect` is asking them already. Never throws.
   */
  async verifyPrimary(): Promise<void> {
    const [reached, socket] = [this.#reached, this.stream];
    if (reached === undefined || socket === undefined || socket.destroyed) return;
    const { latest } = await this.#ask();
    const [first] = latest;
    if (first === undefined || this.#reached !== reached) return;
    const others = latest.filter(({ address }) => !isDeepStrictEqual(address, reached.address));
    const isNamed = others.length < latest.length;
    // A Sentinel that was cut off may be the only one to answer in time.
    if (first.epoch > reached.epoch) {
      if (isNamed) this.#reached = { ...reached, epoch: first.epoch };
      else socket.destroy();
    }
    // Where no epoch is reported, the majority of the answers counts.
    else if (reached.epoch === 0 && others.length > latest.length / 2) socket.destroy();
  }

  /** The answers in time that have the latest epoch, in the order of arrival; the error where there is none. */
  async #ask(): Promise<{ readonly latest: readonly Answer[]; readonly error?: unknown }> {
    const answers: Answer[] = [];
    const asked = this.#parts.sentinels.map(async (sentinel) => {
      answers.push(await this.#askOne(sentinel));
    });
    try {
      await Promise.any(asked);
    } catch (error) {
      return { latest: [], error: (error as AggregateError).errors[0] };
    }
    await Promise.race([Promise.allSettled(asked), sleep(OTHERS)]);
    const newest = Math.max(...answers.map(({ epoch }) => epoch));
    return { latest: answers.filter(({ epoch }) => epoch === newest) };
  }

  /** @throws why this Sentinel does not name a primary */
  async #askOne(sentinel: RedisAddress): Promise<Answer> {
    const { primary, toSentinel } = this.#parts;
    const redis = toSentinel(sentinel);
    let fault: unknown;
    redis.on('error', (error) => {
      fault = error;
    });
    try {
      await redis.connect();
      // A user of the Sentinels may be allowed to ask for the address only.
      const [address, state] = await Promise.all([
        redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', primary),
        redis.call('SENTINEL', 'MASTER', primary).catch(() => []),
      ]);
      const [host, port] = (address ?? []) as readonly string[];
      if (host === undefined) throw new Error(`${primary} is not known there`);
      return { address: { host, port: Number(port) }, epoch: epochIn(state as readonly string[]) };
    } catch (error) {
      throw fault ?? error;
    } finally {
      redis.disconnect();
    }
  }
}

/** The epoch in the alternating names and values of a `SENTINEL MASTER` reply; 0 where it holds none. */
function epochIn(state: readonly string[]): number {
  const at = state.indexOf('config-epoch');
  const epoch = at < 0 ? 0 : Number(state[at + 1]);
  return Number.isSafeInteger(epoch) ? epoch : 0;
}
