// Elects one leader among processes that share a Lease. No process relies on the clock of another: a lease has expired
// when it was not observed to change for its whole duration. The leader stops well before a candidate may consider it
// expired.

import type { Logger } from 'pino';
import { type KubernetesApi, KubernetesError, type NewObject } from '../../kubernetes/api/kubernetes-api.ts';
import { microTime } from '../../kubernetes/api/micro-time.ts';
import { sleep } from '../../kubernetes/api/sleep.ts';
import { withTimeout } from '../../kubernetes/api/timeout.ts';
import { type KubernetesObject, LEASES } from '../../kubernetes/objects/resources.ts';
import type { Clock, Random } from '../../oauth/ports/ports.ts';
import { fraction } from '../../oauth/values/backoff.ts';

const LEASE_SECONDS = 15;
/** The leader stops after this long without a renewal. A call that it began before has 5 s to arrive. */
const RENEW_DEADLINE_MILLISECONDS = 10_000;
const RETRY_MILLISECONDS = 2000;
/**
 * Timeout of a call of the leader: a call that began while the lease was valid has ended before another process leads.
 * A slower call for the lease itself is abandoned: the next attempt may still renew in time.
 */
export const LEADER_CALL_MILLISECONDS = 4000;

/** Thrown before a write when this process may no longer be the leader. */
export class LeadershipLostError extends Error {
  constructor() {
    super('another process may be the leader by now');
    this.name = 'LeadershipLostError';
  }
}

export interface Leadership {
  /** Aborted when leadership ends. */
  readonly signal: AbortSignal;
  /** Throws LeadershipLostError unless the lease is still valid. Called before every write (leader-api.ts). */
  readonly assertHeld: () => void;
}

export interface LeaseElectorOptions {
  readonly api: Pick<KubernetesApi, 'get' | 'create' | 'update'>;
  readonly namespace: string;
  readonly name: string;
  /** Different for each process. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  readonly onStartedLeading: (leadership: Leadership) => void;
  readonly onStoppedLeading: () => void;
}

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

/** When this process held the lease for certain, by both clocks: one of them stands still while a machine sleeps. */
interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

/** The Lease as last observed, and when this version was first observed. */
interface ObservedLease {
  /** Undefined when there was none. */
  readonly lease: KubernetesObject | undefined;
  readonly at: number;
  /** How long its holder, or the last holder of a deleted Lease, may consider it valid, from `at`. Milliseconds. */
  readonly heldFor: number;
}

export class LeaseElector {
  readonly #options: LeaseElectorOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #observed: ObservedLease | undefined;
  #renewed: Moment | undefined;
  #leading: AbortController | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #fault: string | undefined;

  constructor(options: LeaseElectorOptions) {
    this.#options = options;
  }

  get isLeading(): boolean {
    return this.#leading !== undefined;
  }

  /** Identity of the leader as last observed; undefined when there is none. */
  get holder(): string | undefined {
    return spec(this.#observed?.lease).holderIdentity || undefined;
  }

  /** The current fault in one line; undefined when there is none. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /** Takes part in the election, until `stop`. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Releases the lease, so that the next leader need not wait until it expires. Stop everything that writes before. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    const wasLeading = this.isLeading;
    this.#stopLeading();
    if (wasLeading) await this.#release().catch((error: unknown) => this.#report(error));
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#attempt();
        this.#fault = undefined;
      } catch (error) {
        this.#report(error);
      }
      // Jitter keeps the candidates from writing at the same moment.
      const wait = RETRY_MILLISECONDS * (this.isLeading ? 1 : 1 + fraction(this.#options.random) * 0.2);
      await sleep(wait, signal);
    }
  }

  /** Tries once to acquire or renew the lease. */
  async #attempt(): Promise<void> {
    const begun = this.#now();
    // The leader need not read it: a write by another process shows as a conflict.
    if (!this.isLeading) await this.#readLease();
    const written = await this.#write();
    if (written === undefined) return;
    this.#observe(written);
    if (!this.#stopping.signal.aborted) this.#hold(begun);
  }

  async #readLease(): Promise<void> {
    const { api, namespace, name } = this.#options;
    this.#observe(await withCallTimeout(api.get(LEASES, { namespace, name })));
  }

  #observe(lease: KubernetesObject | undefined): void {
    const { lease: before, heldFor = 0 } = this.#observed ?? {};
    if (this.#observed !== undefined && before?.metadata.resourceVersion === lease?.metadata.resourceVersion) return;
    const { holderIdentity, leaseDurationSeconds = LEASE_SECONDS } = spec(lease);
    const length = holderIdentity ? leaseDurationSeconds * 1000 : 0;
    this.#observed = { lease, at: performance.now(), heldFor: lease === undefined ? heldFor : length };
  }

  /** @returns the lease as written; undefined when another process holds it or wrote first */
  async #write(): Promise<KubernetesObject | undefined> {
    const { api, identity } = this.#options;
    const { lease, at = 0, heldFor = 0 } = this.#observed ?? {};
    const isOurs = lease === undefined ? this.isLeading : this.holder === identity;
    if (!isOurs && performance.now() - at < heldFor) {
      this.#stopLeading();
      return undefined;
    }
    try {
      const body = this.#lease(lease);
      return await withCallTimeout(lease === undefined ? api.create(LEASES, body) : api.update(LEASES, body));
    } catch (error) {
      if (!(error instanceof KubernetesError) || ![404, 409].includes(error.status)) throw error;
      // Another process wrote first, the Lease was deleted, or a response was lost: its present state decides.
      await this.#readLease();
      if (this.holder !== undefined && this.holder !== identity) this.#stopLeading();
      return undefined;
    }
  }

  #lease(before: KubernetesObject | undefined): NewObject {
    const { namespace, name, identity, clock } = this.#options;
    const now = microTime(clock.now());
    const old = spec(before);
    const isRenewal = old.holderIdentity === identity;
    const resourceVersion = before === undefined ? {} : { resourceVersion: before.metadata.resourceVersion };
    return {
      metadata: { namespace, name, ...resourceVersion },
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: LEASE_SECONDS,
        acquireTime: isRenewal ? (old.acquireTime ?? now) : now,
        renewTime: now,
        leaseTransitions: (old.leaseTransitions ?? 0) + (isRenewal || before === undefined ? 0 : 1),
      },
    };
  }

  /** This process holds the lease, counted from before the request was sent. */
  #hold(begun: Moment): void {
    this.#renewed = begun;
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => this.#stopLeading(), this.#timeLeft());
    if (this.#leading !== undefined) return;
    const leading = new AbortController();
    this.#leading = leading;
    this.#options.log.info({ identity: this.#options.identity }, 'leading');
    this.#options.onStartedLeading({
      signal: leading.signal,
      assertHeld: () => {
        if (leading.signal.aborted || this.#timeLeft() <= 0) throw new LeadershipLostError();
      },
    });
  }

  #timeLeft(): number {
    if (this.#renewed === undefined) return 0;
    const { monotonic, wall } = this.#now();
    return RENEW_DEADLINE_MILLISECONDS - Math.max(monotonic - this.#renewed.monotonic, wall - this.#renewed.wall);
  }

  #stopLeading(): void {
    clearTimeout(this.#deadline);
    const leading = this.#leading;
    if (leading === undefined) return;
    this.#leading = undefined;
    this.#renewed = undefined;
    leading.abort();
    this.#options.log.info({ identity: this.#options.identity }, 'not leading any more');
    this.#options.onStoppedLeading();
  }

  async #release(): Promise<void> {
    if (this.#observed?.lease === undefined) return;
    const { metadata, spec: held } = this.#lease(this.#observed.lease);
    const released = { ...(held as LeaseSpec), holderIdentity: '', leaseDurationSeconds: 1 };
    await withCallTimeout(this.#options.api.update(LEASES, { metadata, spec: released }));
  }

  #report(error: unknown): void {
    const { message } = error as Error;
    if (this.#fault === message) return;
    this.#fault = message;
    this.#options.log.warn({ lease: this.#options.name }, message);
  }

  #now(): Moment {
    return { monotonic: performance.now(), wall: this.#options.clock.now() };
  }
}

function withCallTimeout<Answer>(answer: Promise<Answer>): Promise<Answer> {
  return withTimeout(answer, LEADER_CALL_MILLISECONDS, 'the API server takes too long');
}

function spec(lease: KubernetesObject | undefined): LeaseSpec {
  return (lease?.spec ?? {}) as LeaseSpec;
}
