// Keeps the registry that requests read in sync with the objects of the cluster: it validates only what
// changed, builds the next registry, and swaps one reference. While the API server is unavailable it serves the last one.
// registry-sources.ts watches, validated-clients.ts validates, served-key-ring.ts has the keys.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { DefaultPolicy } from '../admission/kinds/client-policy.ts';
import { admitPolicies } from '../admission/policies/admit-policies.ts';
import type { Policy } from '../admission/policies/policy-violations.ts';
import type { SingleSecret } from '../admission/references/secret-parts.ts';
import type { KubernetesObject } from '../kubernetes/objects/resources.ts';
import { sourceOf } from '../kubernetes/objects/source-object.ts';
import { labelsOf } from '../kubernetes/watch/namespace-labels.ts';
import type { ObjectChange } from '../kubernetes/watch/object-store.ts';
import { KeyRing } from '../oauth/registry/keys.ts';
import { Registry, type RegistryRef } from '../oauth/registry/registry.ts';
import { RegistrySources, type RegistrySourcesOptions } from './registry-sources.ts';
import { ReleaseSecrets, verifiersOf } from './release-secrets.ts';
import type { ClientChange } from './served-clients.ts';
import { ServedKeyRing, type SigningKeyAge } from './served-key-ring.ts';
import { type ServedProviderState, ServedProviders } from './served-providers.ts';
import { type ServedResourceState, ServedResources } from './served-resources.ts';
import { type ServedState, ValidatedClients } from './validated-clients.ts';

/** Changes within this time are served together. */
const COALESCE_MILLISECONDS = 10;
/** How long it validates clients before it yields to the event loop. */
const SLICE_MILLISECONDS = 8;
/** How often it publishes the validated clients while the validation of others is pending. */
const PUBLISH_MILLISECONDS = 250;
/** A failed sync is retried after this time, also without a change. */
const RETRY_MILLISECONDS = 1000;
/** The longest delay of a timer, in milliseconds. */
const LONGEST_TIMER = 2 ** 31 - 1;

export interface RegistrySyncOptions extends Omit<RegistrySourcesOptions, 'onChange' | 'onSynced'> {
  readonly defaultPolicy: DefaultPolicy;
}

/** Must not throw. */
export interface RegistryListeners {
  /** Called after each swap. */
  readonly onSwap: (swap: RegistrySwap) => void;
  /** Called when the Secret of a part with a single Secret may have changed. */
  readonly onSecret: () => void;
  /** Called when a Secret with users changed, once a registry is served. */
  readonly onUsers: () => void;
}

export interface RegistrySwap {
  /** Whether this is the first registry that is served. */
  readonly isFirst: boolean;
  /** From the first change in this swap until it is served. */
  readonly seconds: number;
  /** The clients that are served, refused or removed since the previous swap. */
  readonly changes: readonly ClientChange[];
}

export class RegistrySync implements RegistryRef {
  readonly #options: RegistrySyncOptions;
  readonly #clients: ValidatedClients;
  readonly #resources: ServedResources;
  readonly #providers: ServedProviders;
  readonly #secrets = new ReleaseSecrets();
  readonly #sources: RegistrySources;
  readonly #keys: ServedKeyRing;
  #listeners: RegistryListeners | undefined;
  /** Whether every kind is listed, and clients are validated. */
  #isValidating = false;
  /** The clients of the first lists whose validation is pending. */
  #listed: Iterator<string> | undefined;
  /** Clients whose own objects changed; they are validated first. */
  readonly #urgent = new Set<string>();
  /** Clients that a change of a policy or a namespace affects. */
  readonly #later = new Set<string>();
  readonly #firstSwap = Promise.withResolvers<void>();
  #current = new Registry([], new KeyRing([]));
  #policies: readonly Policy[] = [];
  #policiesChanged = true;
  #served = false;
  /** The time of the oldest change that is not served yet, on the clock of `performance.now()`. */
  #changedAt: number | undefined;
  #publishedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #expiry: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(options: RegistrySyncOptions) {
    this.#options = options;
    const { issuer, releaseNamespace, defaultPolicy, supportedAuthMethods, clock } = options;
    this.#clients = new ValidatedClients({
      issuer,
      releaseNamespace,
      defaultPolicy,
      supportedAuthMethods,
      clock,
      ownerOf: (identifier) => this.#resources.ownerOf(identifier),
      policies: () => this.#policies,
      namespaceLabels: (namespace) => labelsOf(this.#sources.namespaces, namespace),
      verifiersOf: (uid) => verifiersOf(this.#sources.secrets, releaseNamespace, uid),
    });
    this.#resources = new ServedResources({
      issuer,
      className: options.className,
      defaultPolicy,
      reservedNamespace: releaseNamespace,
      policies: () => this.#policies,
      namespaceLabels: (namespace) => labelsOf(this.#sources.namespaces, namespace),
    });
    this.#sources = new RegistrySources({
      ...options,
      onChange: {
        client: (change) => this.#clientChanged(change),
        resource: (change) => this.#resourceChanged(change),
        policy: () => this.#policyChanged(),
        namespace: (change) => this.#namespaceChanged(change),
        signingKey: () => this.#signingKeyChanged(),
        provider: () => this.#providersChanged(),
        providerSecret: () => this.#providersChanged(),
        usersSecret: () => this.#usersChanged(),
        secret: (change) => this.#secretChanged(change),
      },
      onSynced: () => this.#scheduleSync(),
    });
    const { signingKeys, providers, providerSecrets } = this.#sources;
    this.#providers = new ServedProviders({ releaseNamespace, providers, secrets: providerSecrets });
    this.#keys = new ServedKeyRing({ releaseNamespace, signingKeys, secrets: this.#secrets, log: options.log });
  }

  get current(): Registry {
    return this.#current;
  }

  get refusedClients(): number {
    return this.#clients.refused;
  }

  /** The key that signs, for metrics; undefined while there is none. */
  get signingKey(): SigningKeyAge | undefined {
    return this.#keys.signingKey;
  }

  /** Why no registry is served yet; undefined once one is, even if the API server becomes unavailable. */
  get startFault(): string | undefined {
    return this.#served ? undefined : (this.#sources.startFault ?? 'validating the clients');
  }

  /** The present faults of the watches; undefined without one. */
  get watchFault(): string | undefined {
    return this.#sources.watchFault;
  }

  /** Epoch milliseconds up to which nothing was missed. */
  get lastProgress(): number {
    return this.#sources.lastProgress;
  }

  /** The state of a client in the registry, by uid; undefined before the first swap. */
  servedState(uid: string): ServedState | undefined {
    return this.#served ? this.#clients.servedState(uid) : undefined;
  }

  /** The state of a resource, by uid; undefined before the first swap. */
  servedResource(uid: string): ServedResourceState | undefined {
    return this.#served ? this.#resources.servedState(uid) : undefined;
  }

  /** The state of every IdentityProvider, by uid; none before the first swap. */
  get servedProviders(): ReadonlyMap<string, ServedProviderState> {
    return this.#served ? this.#providers.served : new Map();
  }

  /** Epoch milliseconds up to which no change of these Secrets was missed. */
  get usersFollowedUntil(): number {
    return this.#sources.usersSecrets.lastProgress;
  }

  /** The Secrets with users of the release namespace; all of them once a registry is served. */
  usersSecrets(): Iterable<KubernetesObject> {
    return this.#sources.usersSecrets.objects();
  }

  /** The text of a part's single Secret; undefined while it is missing. */
  textOf(secret: SingleSecret): string | undefined {
    return this.#secrets.textOf(secret);
  }

  start(listeners: RegistryListeners): void {
    this.#listeners = listeners;
    this.#sources.start();
  }

  /** Fulfilled once a registry is served. */
  whenServing(): Promise<void> {
    return this.#firstSwap.promise;
  }

  /** No swap happens after the promise is fulfilled. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#expiry);
    await this.#sources.stop();
    await this.#running;
  }

  #clientChanged({ type, object }: ObjectChange): void {
    const { uid } = object.metadata;
    if (type === 'delete') this.#clients.delete(uid);
    else {
      this.#clients.put(object);
      if (this.#isValidating) this.#urgent.add(uid);
    }
    this.#scheduleSync();
  }

  #resourceChanged(change: ObjectChange): void {
    this.#resources.changed(change);
    this.#scheduleSync();
  }

  #policyChanged(): void {
    this.#policiesChanged = true;
    this.#scheduleSync();
  }

  #namespaceChanged({ type, object }: ObjectChange): void {
    // The clients of a deleted namespace are deleted too, each with a change of its own.
    if (type === 'delete' || !this.#isValidating) return;
    this.#resources.relabelled(object.metadata.name);
    for (const uid of this.#clients.revalidate(object.metadata.name)) this.#later.add(uid);
    this.#scheduleSync();
  }

  #signingKeyChanged(): void {
    this.#keys.changed();
    this.#scheduleSync();
  }

  #providersChanged(): void {
    this.#providers.changed();
    this.#scheduleSync();
  }

  #usersChanged(): void {
    if (this.#served) this.#listeners?.onUsers();
  }

  #secretChanged(change: ObjectChange): void {
    const applied = this.#secrets.apply(change);
    if (applied.part === 'none') return;
    if (applied.part === 'verifier') {
      if (this.#isValidating) this.#urgent.add(applied.uid);
    } else if (applied.part === 'signing-key') this.#keys.changed();
    else this.#listeners?.onSecret();
    this.#scheduleSync();
  }

  /** Schedules the validation of clients at the expiry of their verifiers, which changes no object. */
  #scheduleExpiry(): void {
    clearTimeout(this.#expiry);
    const { clock } = this.#options;
    const next = this.#secrets.nextExpiry;
    if (next === undefined || this.#stopped) return;
    this.#expiry = setTimeout(
      () => {
        for (const uid of this.#secrets.takeExpired(clock.now())) this.#urgent.add(uid);
        this.#scheduleExpiry();
        this.#scheduleSync();
      },
      Math.min(Math.max(0, next - clock.now()), LONGEST_TIMER),
    );
  }

  #scheduleSync(wait = COALESCE_MILLISECONDS): void {
    this.#changedAt ??= performance.now();
    if (this.#timer !== undefined || this.#running !== undefined || this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#running = this.#runSync();
    }, wait);
  }

  async #runSync(): Promise<void> {
    let wait = COALESCE_MILLISECONDS;
    try {
      await this.#sync();
    } catch (error) {
      this.#options.log.error({ err: error }, 'changes could not be served');
      wait = RETRY_MILLISECONDS;
    }
    this.#running = undefined;
    if (this.#changedAt !== undefined && this.#sources.synced) this.#scheduleSync(wait);
  }

  async #sync(): Promise<void> {
    // With an incomplete cache clients would be refused first and accepted a moment later.
    if (!this.#sources.synced) return;
    for (;;) {
      if (this.#policiesChanged) this.#updatePolicies();
      if (!this.#isValidating) this.#listed = this.#clients.uids()[Symbol.iterator]();
      this.#isValidating = true;
      this.#recomputeResources();
      this.#providers.recompute();
      if (this.#keys.isChanged) await this.#keys.renew();
      this.#validateSlice();
      const isDone = !this.#hasWork;
      const isDue = this.#served && performance.now() - this.#publishedAt > PUBLISH_MILLISECONDS;
      const mayPublish = isDone || (isDue && this.#urgent.size === 0);
      // The first draft holds every client and is built in slices; later ones are small, and the swap builds them.
      const isReady = mayPublish && (this.#served || this.#clients.serveUntil(performance.now() + SLICE_MILLISECONDS));
      if (isReady) this.#publish(isDone);
      if ((isReady && isDone) || this.#stopped) return;
      await yieldToEventLoop();
    }
  }

  /** Whether more is to be done: objects may have changed while key material was read. */
  get #hasWork(): boolean {
    return (
      this.#listed !== undefined ||
      this.#urgent.size > 0 ||
      this.#later.size > 0 ||
      this.#policiesChanged ||
      this.#resources.isChanged ||
      this.#providers.isChanged ||
      this.#keys.isChanged
    );
  }

  #validateSlice(): void {
    const end = performance.now() + SLICE_MILLISECONDS;
    while (this.#listed !== undefined && performance.now() <= end) {
      const { done, value } = this.#listed.next();
      if (done) this.#listed = undefined;
      else this.#validate(value);
    }
    for (const queue of [this.#urgent, this.#later]) {
      for (const uid of queue) {
        if (performance.now() > end) break;
        queue.delete(uid);
        this.#validate(uid);
      }
    }
    this.#clients.recompute();
  }

  /** Validation throws for no manifest. Should it throw all the same, the failure is isolated to that client. */
  #validate(uid: string): void {
    try {
      this.#clients.validate(uid);
    } catch (error) {
      this.#options.log.error({ uid, err: error }, 'a client could not be validated and is not served');
      this.#clients.delete(uid);
    }
  }

  #updatePolicies(): void {
    const verdicts = admitPolicies({
      className: this.#options.className,
      unknownFields: 'ignore',
      policies: [...this.#sources.policies.objects()].map(sourceOf),
    });
    this.#policies = verdicts.map(({ policy }) => policy);
    this.#resources.revalidate();
    const concerned = this.#clients.revalidate();
    if (this.#isValidating) for (const uid of concerned) this.#later.add(uid);
    this.#policiesChanged = false;
  }

  #recomputeResources(): void {
    // No registry with these resources is served before the clients that depend on them are validated.
    for (const uid of this.#clients.resourcesChanged(this.#resources.recompute())) this.#urgent.add(uid);
  }

  #publish(isDone: boolean): void {
    const { registry, changes } = this.#clients.publish(this.#keys.current, {
      resources: this.#resources.publish(),
      providers: this.#providers.publish(),
    });
    this.#current = registry;
    this.#publishedAt = performance.now();
    const isFirst = !this.#served;
    const seconds = (this.#publishedAt - (this.#changedAt ?? this.#publishedAt)) / 1000;
    if (isDone) this.#changedAt = undefined;
    this.#served = true;
    this.#firstSwap.resolve();
    this.#scheduleExpiry();
    this.#listeners?.onSwap({ isFirst, seconds, changes });
  }
}
