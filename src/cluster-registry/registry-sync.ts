// From the objects of a cluster to the registry that requests read: judge what changed and nothing else, build the next
// registry, swap one reference. It serves on with what it knows while the API server is away. What is followed is
// registry-sources.ts, what is judged by what admitted-clients.ts, keys are served-key-ring.ts.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DefaultPolicy } from '../admission/kinds/client-policy.ts';
import { admitPolicies } from '../admission/policies/admit-policies.ts';
import type { SingleSecret } from '../admission/references/secret-parts.ts';
import { sourceOf } from '../kubernetes/objects/source-object.ts';
import { labelsOf } from '../kubernetes/watch/namespace-labels.ts';
import type { ObjectChange } from '../kubernetes/watch/object-store.ts';
import { KeyRing } from '../oauth/registry/keys.ts';
import { Registry, type RegistryRef } from '../oauth/registry/registry.ts';
import type { ServedState } from './admitted-client.ts';
import { AdmittedClients, type ClientChange } from './admitted-clients.ts';
import { RegistrySources, type RegistrySourcesOptions } from './registry-sources.ts';
import { ReleaseSecrets, verifiersOf } from './release-secrets.ts';
import { ServedKeyRing, type SigningKeyAge } from './served-key-ring.ts';

/** Changes that come together are judged together. */
const COALESCE_MILLISECONDS = 10;
/** How long clients are judged before others get their turn. */
const SLICE_MILLISECONDS = 8;
/** While much is to be judged anew, what is judged is served so often. */
const PUBLISH_MILLISECONDS = 250;
/** What failed is tried again after so long, whether or not anything changes. */
const RETRY_MILLISECONDS = 1000;
/** The longest that a timer can wait. */
const LONGEST_TIMER = 2 ** 31 - 1;

export interface RegistrySyncOptions extends Omit<RegistrySourcesOptions, 'onChange' | 'onSynced'> {
  readonly defaultPolicy: DefaultPolicy;
  /** Called after each swap. Must not throw. */
  readonly onSwap: (swap: RegistrySwap) => void;
  /** Called when the text of a Secret of which there is one may be another. Must not throw. */
  readonly onSecret: () => void;
}

export interface RegistrySwap {
  /** Whether nothing was served before. */
  readonly isFirst: boolean;
  /** From the first of the changes that were taken together until they were served. */
  readonly seconds: number;
  /** What became of whom. */
  readonly changes: readonly ClientChange[];
}

export class RegistrySync implements RegistryRef {
  readonly #options: RegistrySyncOptions;
  readonly #clients: AdmittedClients;
  readonly #secrets = new ReleaseSecrets();
  readonly #sources: RegistrySources;
  readonly #keys: ServedKeyRing;
  /** Whether all kinds were listed: until then nobody is judged, and then everybody. */
  #isJudging = false;
  /** Those of the first lists that were not judged yet. */
  #listed: Iterator<string> | undefined;
  /** What somebody changed: judged first. */
  readonly #urgent = new Set<string>();
  /** What follows from a change of something else. */
  readonly #later = new Set<string>();
  readonly #firstSwap = Promise.withResolvers<void>();
  #current = new Registry([], new KeyRing([]));
  #policiesChanged = true;
  #served = false;
  /** Of `performance.now()`: the oldest change that is not served yet. */
  #changedAt: number | undefined;
  #publishedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #expiry: NodeJS.Timeout | undefined;
  #working: Promise<void> | undefined;
  #stopped = false;

  constructor(options: RegistrySyncOptions) {
    this.#options = options;
    const { releaseNamespace, defaultPolicy, clock } = options;
    this.#clients = new AdmittedClients({
      releaseNamespace,
      defaultPolicy,
      clock,
      labelsOf: (namespace) => labelsOf(this.#sources.namespaces, namespace),
      verifiersOf: (uid) => verifiersOf(this.#sources.secrets, releaseNamespace, uid),
    });
    this.#sources = new RegistrySources({
      ...options,
      onChange: {
        client: (change) => this.#clientChanged(change),
        policy: () => this.#policyChanged(),
        namespace: (change) => this.#namespaceChanged(change),
        signingKey: () => this.#signingKeyChanged(),
        secret: (change) => this.#secretChanged(change),
      },
      onSynced: () => this.#workSoon(),
    });
    const { signingKeys } = this.#sources;
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

  /** Why nothing is served yet; undefined once something is, whatever happens to the API server then. */
  get startFault(): string | undefined {
    return this.#served ? undefined : (this.#sources.startFault ?? 'judging the clients');
  }

  /** What keeps it from hearing of changes; undefined when all is well. */
  get watchFault(): string | undefined {
    return this.#sources.watchFault;
  }

  /** Epoch milliseconds up to which nothing was missed. */
  get lastProgress(): number {
    return this.#sources.lastProgress;
  }

  /** What of a client is served or refused, by uid. */
  servedState(uid: string): ServedState | undefined {
    return this.#served ? this.#clients.servedState(uid) : undefined;
  }

  /** The text of a Secret of which there is one; undefined while it is not there. */
  textOf(secret: SingleSecret): string | undefined {
    return this.#secrets.textOf(secret);
  }

  start(): void {
    this.#sources.start();
  }

  /** Once something is served. */
  whenServing(): Promise<void> {
    return this.#firstSwap.promise;
  }

  /** Nothing changes after the promise is fulfilled. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#expiry);
    await this.#sources.stop();
    await this.#working;
  }

  #clientChanged({ type, object }: ObjectChange): void {
    const { uid } = object.metadata;
    if (type === 'delete') this.#clients.delete(uid);
    else {
      this.#clients.put(object);
      if (this.#isJudging) this.#urgent.add(uid);
    }
    this.#workSoon();
  }

  #policyChanged(): void {
    this.#policiesChanged = true;
    this.#workSoon();
  }

  #namespaceChanged({ type, object }: ObjectChange): void {
    // One that goes takes its clients along, each of which is told by itself.
    if (type === 'delete' || !this.#isJudging) return;
    for (const uid of this.#clients.relabelled(object.metadata.name)) this.#later.add(uid);
    this.#workSoon();
  }

  #signingKeyChanged(): void {
    this.#keys.changed();
    this.#workSoon();
  }

  #secretChanged(change: ObjectChange): void {
    const taken = this.#secrets.take(change);
    if (taken.part === 'none') return;
    if (taken.part === 'verifier') {
      if (this.#isJudging) this.#urgent.add(taken.uid);
    } else if (taken.part === 'signing-key') this.#keys.changed();
    else this.#options.onSecret();
    this.#workSoon();
  }

  /** A verifier counts no longer when its time has come, whether anybody writes that or not. */
  #awaitExpiry(): void {
    clearTimeout(this.#expiry);
    const { clock } = this.#options;
    const next = this.#secrets.nextExpiry;
    if (next === undefined || this.#stopped) return;
    this.#expiry = setTimeout(
      () => {
        for (const uid of this.#secrets.takeExpired(clock.now())) this.#urgent.add(uid);
        this.#awaitExpiry();
        this.#workSoon();
      },
      Math.min(Math.max(0, next - clock.now()), LONGEST_TIMER),
    );
  }

  #workSoon(wait = COALESCE_MILLISECONDS): void {
    this.#changedAt ??= performance.now();
    if (this.#timer !== undefined || this.#working !== undefined || this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#working = this.#attempt();
    }, wait);
  }

  async #attempt(): Promise<void> {
    let wait = COALESCE_MILLISECONDS;
    try {
      await this.#work();
    } catch (error) {
      this.#options.log.error({ err: error }, 'changes could not be served');
      wait = RETRY_MILLISECONDS;
    }
    this.#working = undefined;
    if (this.#changedAt !== undefined && this.#sources.synced) this.#workSoon(wait);
  }

  async #work(): Promise<void> {
    // What is half known would be refused first and accepted a moment later.
    if (!this.#sources.synced) return;
    for (;;) {
      if (this.#policiesChanged) this.#takePolicies();
      if (!this.#isJudging) this.#listed = this.#clients.uids()[Symbol.iterator]();
      this.#isJudging = true;
      if (this.#keys.isChanged) await this.#keys.renew();
      this.#judgeSlice();
      const isJudged = !this.#hasWork;
      const isDue = this.#served && performance.now() - this.#publishedAt > PUBLISH_MILLISECONDS;
      const mayPublish = isJudged || (isDue && this.#urgent.size === 0);
      // At first it is everybody; later what was judged since the last time is little, and told of with the swap.
      const isReady = mayPublish && (this.#served || this.#clients.serveUntil(performance.now() + SLICE_MILLISECONDS));
      if (isReady) this.#publish(isJudged);
      if ((isReady && isJudged) || this.#stopped) return;
      await nextTurn();
    }
  }

  /** More may have changed while material of keys was read. */
  get #hasWork(): boolean {
    return (
      this.#listed !== undefined ||
      this.#urgent.size > 0 ||
      this.#later.size > 0 ||
      this.#policiesChanged ||
      this.#keys.isChanged
    );
  }

  #judgeSlice(): void {
    const end = performance.now() + SLICE_MILLISECONDS;
    while (this.#listed !== undefined && performance.now() <= end) {
      const { done, value } = this.#listed.next();
      if (done) this.#listed = undefined;
      else this.#judge(value);
    }
    for (const lane of [this.#urgent, this.#later]) {
      for (const uid of lane) {
        if (performance.now() > end) break;
        lane.delete(uid);
        this.#judge(uid);
      }
    }
    this.#clients.settle();
  }

  /** The judge throws for no manifest; should it all the same, that is one client's misfortune and nobody else's. */
  #judge(uid: string): void {
    try {
      this.#clients.judge(uid);
    } catch (error) {
      this.#options.log.error({ uid, err: error }, 'a client could not be judged and is not served');
      this.#clients.delete(uid);
    }
  }

  #takePolicies(): void {
    const verdicts = admitPolicies({
      className: this.#options.className,
      unknownFields: 'ignore',
      policies: [...this.#sources.policies.objects()].map(sourceOf),
    });
    const policies = verdicts.flatMap(({ policy }) => policy ?? []);
    const concerned = this.#clients.setPolicies(policies);
    if (this.#isJudging) for (const uid of concerned) this.#later.add(uid);
    this.#policiesChanged = false;
  }

  #publish(isDone: boolean): void {
    const { registry, changes } = this.#clients.publish(this.#keys.current);
    this.#current = registry;
    this.#publishedAt = performance.now();
    const isFirst = !this.#served;
    const seconds = (this.#publishedAt - (this.#changedAt ?? this.#publishedAt)) / 1000;
    if (isDone) this.#changedAt = undefined;
    this.#served = true;
    this.#firstSwap.resolve();
    this.#awaitExpiry();
    this.#options.onSwap({ isFirst, seconds, changes });
  }
}
