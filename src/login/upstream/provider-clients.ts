// The identity providers of now, each with its client: replaced when a provider changes, and discovered again from time to time.

import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { UpstreamProvider } from '../../oauth/ports/upstream-provider.ts';
import type { IdentityProvider } from '../../oauth/registry/identity-provider.ts';
import { issuerOf } from '../../oauth/registry/upstream-providers.ts';
import { exponentialBackoff } from '../../oauth/values/backoff.ts';
import { providerClient } from './index.ts';
import type { Discovery, ProviderClient, Reach } from './provider-client.ts';

/** Between two discoveries of a provider that is reached, in milliseconds. */
const EVERY = 600_000;
/** Between a failed discovery and the next one. */
const RETRY = { first: 5_000, longest: EVERY };
/** How long a provider is relied on whose metadata cannot be fetched again. */
const STALE_MAX = 24 * 3_600_000;
/** How long a sign-in without groups is reported, and the time between two reports of groups that were left out. */
const OVERAGE_REPORTED = 3_600_000;

/** What a server knows of a provider. */
export interface ProviderReport {
  readonly generation: number;
  /** `NotObserved` before the first attempt has ended, and without credentials. */
  readonly reach: Reach | 'NotObserved';
  /** Whether within the last hour a person signed in without groups, because they were too many for its answer. */
  readonly isOverage: boolean;
}

interface Held {
  provider: IdentityProvider;
  /** Undefined without credentials. */
  readonly client: ProviderClient | undefined;
  reach: ProviderReport['reach'];
  /** Why the provider was not reached, or does not accept this client; undefined when all is well. */
  detail: string | undefined;
  failures: number;
  /** When to discover next, and when the provider was reached last; epoch milliseconds. */
  nextAt: number;
  reachedAt: number;
  isDiscovering: boolean;
  /** When a person signed in last whose groups were too many for the answer, since this generation; epoch milliseconds. */
  overageAt: number;
  /** When groups that were left out were reported last; epoch milliseconds. */
  leftOutAt: number;
}

export interface ProviderClientsOptions {
  /** The providers of the registry of now, by the same object while none changes. */
  readonly providers: () => readonly IdentityProvider[];
  readonly clock: Clock;
  /** Called after the calls of a provider for one step. */
  readonly observe: (call: ProviderCall) => void;
  /** Called when what came of reaching a provider differs from before. */
  readonly onDiscovered: (provider: string, discovery: Discovery) => void;
  /**
   * The callback address of a provider, where its credentials are to be tried at once; undefined where the first sign-in
   * shows whether they are right.
   */
  readonly tryCredentials?: ((provider: string) => string) | undefined;
  /** Called when a person signed in without some groups because of their names; once an hour and provider. */
  readonly onGroupsLeftOut: (provider: string, count: number) => void;
}

/** What a provider was called for, and what came of it. */
export interface ProviderCall {
  readonly provider: string;
  readonly step: 'discovery' | 'redemption';
  readonly seconds: number;
  /** Whether there was no answer, or none that can be used. */
  readonly isFailed: boolean;
}

export class ProviderClients {
  readonly #clock: Clock;
  readonly #onDiscovered: ProviderClientsOptions['onDiscovered'];
  readonly #tryCredentials: ProviderClientsOptions['tryCredentials'];
  readonly #observe: ProviderClientsOptions['observe'];
  readonly #onGroupsLeftOut: ProviderClientsOptions['onGroupsLeftOut'];
  readonly #providers: () => readonly IdentityProvider[];
  #followed: readonly IdentityProvider[] = [];
  #held: ReadonlyMap<string, Held> = new Map();

  constructor(options: ProviderClientsOptions) {
    const { providers, clock, observe, onGroupsLeftOut } = options;
    this.#onDiscovered = options.onDiscovered;
    this.#tryCredentials = options.tryCredentials;
    this.#observe = observe;
    this.#onGroupsLeftOut = onGroupsLeftOut;
    this.#providers = providers;
    this.#clock = clock;
  }

  /** Discovers each provider whose time has come; a timer calls it every second. */
  discover(): void {
    const now = this.#clock.now();
    for (const held of this.#now().values()) {
      if (held.client !== undefined && !held.isDiscovering && held.nextAt <= now)
        void this.#discover(held, held.client);
    }
  }

  /** Whether an attempt to reach a provider is running. */
  get isDiscovering(): boolean {
    return [...this.#held.values()].some(({ isDiscovering }) => isDiscovering);
  }

  /** How many there are, suspended ones too. */
  get count(): number {
    return this.#now().size;
  }

  /** The provider of a name; undefined where there is none. */
  provider(name: string): IdentityProvider | undefined {
    return this.#now().get(name)?.provider;
  }

  /** Where people of a provider sign in; undefined while it is suspended, absent, or has no credentials. */
  upstream(name: string): UpstreamProvider | undefined {
    const held = this.#now().get(name);
    if (held?.client === undefined || held.provider.isSuspended) return undefined;
    const { client, provider } = held;
    return {
      begin: (request) => client.begin(request),
      finish: async (returned) => {
        const started = performance.now();
        const answer = await client.finish(returned);
        const isFailed = answer.outcome === 'unavailable' || answer.outcome === 'invalid';
        this.#note(provider, 'redemption', { started, isFailed });
        if (answer.outcome === 'asserted') this.#recordGroups(held, answer);
        return answer;
      },
    };
  }

  /** Why a provider was not reached at the last attempt; undefined where it was. */
  faultOf(name: string): string | undefined {
    return this.#now().get(name)?.detail;
  }

  /** The providers that are not suspended, in their order. */
  list(): readonly IdentityProvider[] {
    return [...this.#now().values()].map(({ provider }) => provider).filter(({ isSuspended }) => !isSuspended);
  }

  /** The state of each provider, by uid. */
  reports(): ReadonlyMap<string, ProviderReport> {
    const now = this.#clock.now();
    return new Map(
      [...this.#now().values()].map(({ provider: { uid, generation }, reach, overageAt }) => [
        uid,
        { generation, reach, isOverage: now - overageAt < OVERAGE_REPORTED },
      ]),
    );
  }

  /** Closes all connections. */
  close(): void {
    for (const { client } of this.#held.values()) client?.close();
  }

  /** By name, suspended ones too. A provider that is reached as before keeps its client, and the discovered metadata. */
  #now(): ReadonlyMap<string, Held> {
    const providers = this.#providers();
    if (providers === this.#followed) return this.#held;
    const former = this.#held;
    this.#followed = providers;
    this.#held = new Map(
      providers.map((provider) => {
        const held = former.get(provider.name);
        const isKept = held !== undefined && isReachedAlike(held.provider, provider);
        return [provider.name, isKept ? follow(held, provider) : this.#hold(provider)];
      }),
    );
    const kept = new Set(this.#held.values());
    for (const held of former.values()) if (!kept.has(held)) held.client?.close();
    this.discover();
    return this.#held;
  }

  #hold(provider: IdentityProvider): Held {
    const { credentials, name } = provider;
    const isClaimedElsewhere = (domain: string) => this.#isClaimedBeside(name, domain);
    const client = credentials && providerClient(provider, { credentials, isClaimedElsewhere });
    const begun = { failures: 0, nextAt: 0, reachedAt: 0, isDiscovering: false };
    return Object.assign(begun, {
      provider,
      client,
      reach: 'NotObserved' as const,
      detail: undefined,
      overageAt: Number.NEGATIVE_INFINITY,
      leftOutAt: Number.NEGATIVE_INFINITY,
    });
  }

  /** A suspended provider keeps the addresses of its domains from others. */
  #isClaimedBeside(name: string, domain: string): boolean {
    return [...this.#held.values()].some(
      ({ provider }) => provider.name !== name && provider.allow.emailDomains.includes(domain),
    );
  }

  #recordGroups(
    held: Held,
    { isOverage, groupsLeftOut }: { readonly isOverage: boolean; readonly groupsLeftOut: number },
  ): void {
    const now = this.#clock.now();
    if (isOverage) held.overageAt = now;
    if (groupsLeftOut === 0 || now - held.leftOutAt < OVERAGE_REPORTED) return;
    held.leftOutAt = now;
    this.#onGroupsLeftOut(held.provider.name, groupsLeftOut);
  }

  #note(
    { name }: IdentityProvider,
    step: ProviderCall['step'],
    { started, isFailed }: { readonly started: number; readonly isFailed: boolean },
  ): void {
    this.#observe({ provider: name, step, seconds: (performance.now() - started) / 1000, isFailed });
  }

  async #discover(held: Held, client: ProviderClient): Promise<void> {
    held.isDiscovering = true;
    const started = performance.now();
    const { reach, detail } = await this.#reached(held, client);
    this.#note(held.provider, 'discovery', { started, isFailed: reach !== 'Reachable' });
    held.isDiscovering = false;
    const now = this.#clock.now();
    const isReached = reach === 'Reachable';
    held.nextAt = now + (isReached ? EVERY : exponentialBackoff(RETRY, held.failures));
    held.failures = isReached ? 0 : held.failures + 1;
    if (isReached) held.reachedAt = now;
    // Another issuer may be another party: nothing known of the former one is used.
    else if (reach === 'IssuerMismatch' || now - held.reachedAt > STALE_MAX) client.forget();
    const isNews = reach !== held.reach || detail !== held.detail;
    held.reach = reach;
    held.detail = detail;
    if (isNews) this.#onDiscovered(held.provider.name, { reach, detail });
  }

  /** The credentials are tried with the first discovery that succeeds, and again until they are accepted. */
  async #reached(held: Held, client: ProviderClient): Promise<Discovery> {
    const discovery = await client.discover();
    const isTried = held.reach === 'Reachable' && held.detail === undefined;
    if (discovery.reach !== 'Reachable' || this.#tryCredentials === undefined || isTried) return discovery;
    return { reach: 'Reachable', detail: await client.verifyCredentials(this.#tryCredentials(held.provider.name)) };
  }
}

/** Whether discovery of two providers, and calls to them, are the same. */
function isReachedAlike(one: IdentityProvider, other: IdentityProvider): boolean {
  return isDeepStrictEqual(reachOf(one), reachOf(other));
}

function reachOf(provider: IdentityProvider): readonly unknown[] {
  const { type, uid, credentials } = provider;
  return [type, uid, issuerOf(provider), credentials, provider.type === 'OIDC' ? provider.clientAuth : undefined];
}

function follow(held: Held, provider: IdentityProvider): Held {
  if (held.provider.generation !== provider.generation) held.overageAt = Number.NEGATIVE_INFINITY;
  // The edit may mend what kept it from being reached.
  if (held.reach !== 'Reachable') held.nextAt = 0;
  held.provider = provider;
  held.client?.follow(provider);
  return held;
}
