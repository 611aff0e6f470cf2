// The link to one primary: a connection that reconnects by itself, behind a bound on the requests in flight, a time
// limit and the circuit breaker. It sends each request at most once.

import type { Redis } from 'ioredis';
import type { Clock } from '../../oauth/ports/ports.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import { MIN_WAIT_FOR_BREAKER_MS } from './deadline.ts';
import { LeasedConnections, type LeaseLimits } from './leased-connections.ts';
import { isLate, isReply, UnansweredError, type UnavailableReason, unavailableReason, within } from './redis-errors.ts';
import { ServerClock } from './server-clock.ts';

/** The most requests that may wait for one server. Beyond it they are refused at once. */
const MOST_IN_FLIGHT = 1000;

/** The time limit of each step of a probe, in milliseconds. */
const PROBE_MS = 500;

export interface ServerLinkParts {
  /** `host:port`, or the name of the primary where Sentinels know the address. */
  readonly name: string;
  /** Makes a lasting connection, which reconnects by itself, or one for a lease, which does not. */
  readonly connect: (lasting: boolean) => Redis;
  /** Called whenever the server is reached, the first time included. */
  readonly onReady: (link: ServerLink) => void;
  readonly clock: Clock;
}

/** Sends on a connection of the server whose clock it is. */
type Request<Reply> = (redis: Redis, clock: ServerClock) => Promise<Reply>;

export class ServerLink {
  readonly name: string;
  /** The last error of the connection. */
  lastError: unknown;
  readonly #redis: Redis;
  readonly #connect: ServerLinkParts['connect'];
  readonly #circuit: CircuitBreaker;
  readonly #clock: Clock;
  readonly #serverClock: ServerClock;
  readonly #leases: LeasedConnections;
  /** One for each connection, which may lead to the server that was the primary before. */
  #leasedClocks = new WeakMap<Redis, ServerClock>();
  #inFlight = 0;

  constructor({ name, connect, onReady, clock }: ServerLinkParts) {
    this.name = name;
    this.#clock = clock;
    this.#connect = connect;
    this.#circuit = new CircuitBreaker({ clock });
    this.#redis = connect(true);
    this.#serverClock = this.#clockOf(this.#redis);
    const lease = () => {
      // The shared connection may be lost by the time of the lease: until it is connected again, the primary is not known.
      this.#requireShared();
      return connect(false);
    };
    this.#leases = new LeasedConnections({ connect: lease, clock });
    this.#redis.on('error', (error) => {
      this.lastError = error;
    });
    this.#redis.on('ready', () => {
      this.#circuit.answered();
      this.#serverClock.refresh();
      onReady(this);
    });
    // A leased connection may lead to the server that was the primary before.
    this.#redis.on('close', () => {
      this.#leases.clear();
      this.#serverClock.forget();
    });
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
  send<Reply>(request: Request<Reply>, deadline: number): Promise<Reply> {
    return this.#guard(() => {
      gatherWrites(this.#redis.stream);
      this.#serverClock.refresh();
      return within(deadline - this.#clock.now(), request(this.#redis, this.#serverClock));
    });
  }

  /** Sends once, on a connection that no other request uses meanwhile. @throws as `send` */
  sendLeased<Reply>(request: Request<Reply>, limits: LeaseLimits): Promise<Reply> {
    return this.#guard(() =>
      this.#leases.use(limits, (redis) => {
        const clock = this.#leasedClocks.get(redis) ?? this.#clockOf(redis);
        this.#leasedClocks.set(redis, clock);
        return request(redis, clock);
      }),
    );
  }

  /**
   * Whether the server reads this key for a client that does not authenticate: asked on a connection of its own, which
   * RESET signs out. False where the server does not answer that. Never throws.
   */
  async admitsUnauthenticated(key: string): Promise<boolean> {
    const redis = this.#connect(false);
    redis.on('error', () => {});
    try {
      await within(PROBE_MS, redis.connect());
      await within(PROBE_MS, redis.call('RESET'));
      await within(PROBE_MS, redis.exists(key));
      return true;
    } catch (error) {
      // A Cluster redirects only commands that the client has the right to send.
      return error instanceof Error && error.message.startsWith('MOVED ');
    } finally {
      redis.disconnect();
    }
  }

  async #guard<Reply>(request: () => Promise<Reply>): Promise<Reply> {
    this.#requireShared();
    if (this.#inFlight >= MOST_IN_FLIGHT) throw new UnansweredError('too_many_in_flight');
    if (!this.#circuit.admits()) throw new UnansweredError('circuit_open');
    this.#inFlight += 1;
    const begin = this.#clock.now();
    try {
      const reply = await request();
      this.#circuit.answered();
      return reply;
    } catch (error) {
      if (isReply(error)) this.#circuit.answered();
      else if (this.#isInconclusive(unavailableReason(error), begin)) this.#circuit.notSent();
      else this.#circuit.unanswered();
      if (isLate(error)) this.#forgetTime();
      throw error;
    } finally {
      this.#inFlight -= 1;
    }
  }

  /** @throws UnansweredError while the shared connection is lost */
  #requireShared(): void {
    if (this.#redis.status !== 'ready') throw new UnansweredError('disconnected', this.lastError);
  }

  /** Whether a failure says nothing about the server: the request was not sent, or had too little time for an answer. */
  #isInconclusive(reason: UnavailableReason | undefined, begin: number): boolean {
    return (
      reason === 'too_many_in_flight' || (reason === 'timeout' && this.#clock.now() - begin < MIN_WAIT_FOR_BREAKER_MS)
    );
  }

  // Late by the server's clock and not by the local one: the server's clock was set.
  #forgetTime(): void {
    this.#serverClock.forget();
    this.#leasedClocks = new WeakMap();
  }

  #clockOf(redis: Redis): ServerClock {
    const ask = async () => {
      const [seconds, microseconds] = (await redis.time()).map(Number);
      return (seconds ?? 0) * 1000 + (microseconds ?? 0) / 1000;
    };
    return new ServerClock({ clock: this.#clock, ask });
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
