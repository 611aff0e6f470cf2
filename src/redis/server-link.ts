// The link to one primary: a connection that comes back by itself, in front of it a bound on what is in flight, a time
// limit and the circuit. It sends everything at most once.

import type { Redis } from 'ioredis';
import type { Clock } from '../oauth/ports.ts';
import { Circuit } from './circuit.ts';
import { LeasedConnections, type LeaseLimits } from './leased-connections.ts';
import { isReply, UnansweredError, unavailableReason, within } from './unanswered.ts';

/** The most requests that may wait for one server. Beyond it they are refused at once. */
const MOST_IN_FLIGHT = 1000;

export interface ServerLinkParts {
  /** `host:port`, or the name of the primary where Sentinels know the address. */
  readonly name: string;
  /** Makes a connection that comes back by itself, or one for a lease, which does not. */
  readonly connect: (lasting: boolean) => Redis;
  /** Called whenever the server is reached, the first time included. */
  readonly onReady: (link: ServerLink) => void;
  readonly clock: Clock;
}

export class ServerLink {
  readonly name: string;
  /** What the connection last failed with. */
  lastError: unknown;
  readonly #redis: Redis;
  readonly #circuit: Circuit;
  readonly #clock: Clock;
  readonly #leases: LeasedConnections;
  #inFlight = 0;

  constructor({ name, connect, onReady, clock }: ServerLinkParts) {
    this.name = name;
    this.#clock = clock;
    this.#circuit = new Circuit({ clock });
    this.#redis = connect(true);
    this.#leases = new LeasedConnections({ connect: () => connect(false), clock });
    this.#redis.on('error', (error) => {
      this.lastError = error;
    });
    this.#redis.on('ready', () => {
      this.#circuit.answered();
      onReady(this);
    });
    // A leased connection may lead to the server that was the primary before.
    this.#redis.on('close', () => this.#leases.clear());
  }

  /** Whether requests would be sent now. */
  get isUp(): boolean {
    return this.#redis.status === 'ready' && !this.#circuit.isOpen;
  }

  /**
   * Sends once, on the shared connection.
   * @param deadline of the clock, in milliseconds
   * @throws UnansweredError, or the error that Redis answered with
   */
  async send<Reply>(request: (redis: Redis) => Promise<Reply>, deadline: number): Promise<Reply> {
    return await this.#guard(() => {
      gatherWrites(this.#redis.stream);
      return within(deadline - this.#clock.now(), request(this.#redis));
    });
  }

  /** Sends once, on a connection that nobody else uses meanwhile. @throws as `send` */
  async sendLeased<Reply>(request: (redis: Redis) => Promise<Reply>, limits: LeaseLimits): Promise<Reply> {
    return await this.#guard(() => this.#leases.use(limits, request));
  }

  async #guard<Reply>(request: () => Promise<Reply>): Promise<Reply> {
    if (this.#redis.status !== 'ready') throw new UnansweredError('disconnected', this.lastError);
    if (this.#inFlight >= MOST_IN_FLIGHT) throw new UnansweredError('too_many_in_flight');
    if (!this.#circuit.admits()) throw new UnansweredError('circuit_open');
    this.#inFlight += 1;
    try {
      const reply = await request();
      this.#circuit.answered();
      return reply;
    } catch (error) {
      if (isReply(error)) this.#circuit.answered();
      else if (unavailableReason(error) === 'too_many_in_flight') this.#circuit.notSent();
      else this.#circuit.unanswered();
      throw error;
    } finally {
      this.#inFlight -= 1;
    }
  }

  close(): void {
    this.#leases.clear();
    this.#redis.disconnect();
  }
}

/** What is written in this turn of the event loop goes out in one piece at its end: a write costs more than a request. */
function gatherWrites(stream: Redis['stream']): void {
  if (stream.writableCorked > 0) return;
  stream.cork();
  setImmediate(() => stream.uncork());
}
