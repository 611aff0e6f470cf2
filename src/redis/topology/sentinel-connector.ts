// Finds the primary by what the Sentinels say. All of them are asked: one that has not heard of a fail-over yet, or is cut off
// from the others, goes on naming the old primary, which may be back by then, empty. Each fail-over has an epoch, and the
// answer with the latest one counts. They are asked at every connect, and now and then about the primary that was reached: one
// that nobody could tell of a fail-over goes on being a primary in its own eyes.

import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Redis } from 'ioredis';
import { Connector, type ConnectorParts } from '../link/connector.ts';
import { reconnectDelay } from '../link/reconnect-delay.ts';
import type { RedisAddress } from '../link/redis-url.ts';

/** How long the other Sentinels have after the first that answers, in milliseconds. */
const OTHERS = 100;

/** How the error begins that says that no Sentinel tells where the primary is; why stands behind it. */
export const NO_SENTINEL = 'no Sentinel names the primary';

export interface SentinelConnectorParts extends ConnectorParts {
  readonly sentinels: readonly RedisAddress[];
  /** What the Sentinels call the primary. */
  readonly primary: string;
  /** Makes a connection to one Sentinel that is not yet connected and does not come back by itself. */
  readonly toSentinel: (address: RedisAddress) => Redis;
  /** Whether it tries again while no Sentinel answers. */
  readonly lasting: boolean;
}

/** What one Sentinel says. */
interface Answer {
  readonly address: RedisAddress;
  /** Of the fail-over that made it so; 0 where the Sentinel does not tell. */
  readonly epoch: number;
}

export class SentinelConnector extends Connector {
  readonly #parts: SentinelConnectorParts;
  /** Where the socket leads, or led. */
  #reached: Answer | undefined;

  constructor(parts: SentinelConnectorParts) {
    super(parts);
    this.#parts = parts;
  }

  /** Whether the server that was reached is a primary in its own eyes, by its INFO. */
  override check(info: { readonly role?: string }): boolean {
    return super.check(info) && (info.role === undefined || info.role === 'master');
  }

  /** Where the socket leads, or led; undefined before there was one. */
  get address(): RedisAddress | undefined {
    return this.#reached?.address;
  }

  /** @param report told of each try that failed @throws when none may follow, or the connection was closed meanwhile */
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
   * Asks the Sentinels: the socket ends where they tell of a later fail-over to another primary, upon which the client connects
   * again. Until then, and where they do not, it goes on serving. Without a socket `connect` is asking them. Never throws.
   */
  async doubt(): Promise<void> {
    const [reached, socket] = [this.#reached, this.stream];
    if (reached === undefined || socket === undefined || socket.destroyed) return;
    const { latest } = await this.#ask();
    const [first] = latest;
    if (first === undefined || this.#reached !== reached) return;
    const others = latest.filter(({ address }) => !isDeepStrictEqual(address, reached.address));
    const isNamed = others.length < latest.length;
    // One that was cut off may be the only one to answer in time.
    if (first.epoch > reached.epoch) {
      if (isNamed) this.#reached = { ...reached, epoch: first.epoch };
      else socket.destroy();
    }
    // Where no fail-over is told of, most of those that answer are right.
    else if (reached.epoch === 0 && others.length > latest.length / 2) socket.destroy();
  }

  /** The latest that the Sentinels say which answer in time, the first of them first; why not, where none does. */
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

  /** @throws why this one does not say */
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

/** Of the names and values that `SENTINEL MASTER` answers in turn; 0 where they do not tell. */
function epochIn(state: readonly string[]): number {
  const at = state.indexOf('config-epoch');
  const epoch = at < 0 ? 0 : Number(state[at + 1]);
  return Number.isSafeInteger(epoch) ? epoch : 0;
}
