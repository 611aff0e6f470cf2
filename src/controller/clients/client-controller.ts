// Reconciles all OAuthClients of an install while this process leads: maps each change to the clients that it queues,
// and removes the verifier Secrets of deleted clients. One client is reconciled in client-reconciler.ts.

import type { Logger } from 'pino';
import { VERIFIER_SECRET_TYPE } from '../../admission/client-secrets/client-verifier.ts';
import { type ClientFacts, ClientSet, isServed } from '../../admission/clients/client-set.ts';
import type { DefaultPolicy } from '../../admission/kinds/client-policy.ts';
import type { Condition } from '../../admission/kinds/conditions.ts';
import type { SourceObject } from '../../admission/kinds/manifest.ts';
import type { OAuthClientSpec } from '../../admission/kinds/oauth-client.ts';
import { admitPolicies } from '../../admission/policies/admit-policies.ts';
import type { OwnerOf, Policy } from '../../admission/policies/policy-violations.ts';
import { TokenBucket } from '../../kubernetes/api/token-bucket.ts';
import { type KubernetesObject, objectKey, splitKey } from '../../kubernetes/objects/resources.ts';
import { type ClusterSource, sourceOf } from '../../kubernetes/objects/source-object.ts';
import { hasSameLabels, labelsOf } from '../../kubernetes/watch/namespace-labels.ts';
import type { ObjectChange } from '../../kubernetes/watch/object-store.ts';
import type { ObjectSource } from '../../kubernetes/watch/shared-reflector.ts';
import { unlessSame } from '../../kubernetes/watch/unless-same.ts';
import type { Clock, Random } from '../../oauth/ports/ports.ts';
import { labelledClient } from '../client-secrets/client-secret-object.ts';
import { ClientSecrets } from '../client-secrets/client-secrets.ts';
import { accountUids } from '../client-secrets/identity-credentials.ts';
import { uidOfVerifierSecret, VerifierSecrets } from '../client-secrets/verifier-secrets.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { KindController } from '../reconciling/kind-controller.ts';
import { type ReconcileMetrics, WorkQueue } from '../reconciling/work-queue.ts';
import type { ObservedReplicas } from '../replicas/observed-replicas.ts';
import { ProgrammedObjects } from '../replicas/programmed.ts';
import { ReplicaReports } from '../replicas/replica-reports.ts';
import type { Replicas } from '../replicas/replicas.ts';
import type { ReportedProviders } from '../replicas/reported-providers.ts';
import { ClientReconciler } from './client-reconciler.ts';
import { mayPublishSecret, storedClient } from './programmed.ts';
import { type ReferredKind, ReferringClients } from './referring-clients.ts';

/** The watches; each has completed its first list. */
export interface ClientSources {
  readonly clients: ObjectSource;
  readonly policies: ObjectSource;
  readonly namespaces: ObjectSource;
  /** Metadata of the Secrets in the namespaces of clients. */
  readonly secrets: ObjectSource;
  /** Metadata of the ConfigMaps there. */
  readonly configMaps: ObjectSource;
  /** Metadata of the ServiceAccounts there. */
  readonly serviceAccounts: ObjectSource;
  /** Those Secrets of the release namespace that are parts of grantry. */
  readonly releaseSecrets: ObjectSource;
  /** Of the replicas; undefined where their addresses are fixed or not configured. */
  readonly endpointSlices?: ObjectSource | undefined;
}

/** The settings of an install. */
export interface Install {
  readonly issuer: string;
  readonly className: string;
  readonly releaseNamespace: string;
  readonly defaultPolicy: DefaultPolicy;
  /** The wire names of the client authentication methods that this install has. */
  readonly supportedAuthMethods: readonly string[];
  /** Undefined: all. */
  readonly watchNamespaces: readonly string[] | undefined;
}

export interface ClientControllerOptions {
  readonly api: LeaderApi;
  readonly sources: ClientSources;
  readonly install: Install;
  readonly replicas: Pick<Replicas, 'find' | 'ask'>;
  readonly observed: ObservedReplicas;
  /** `ResourcesGranted` of a client; undefined for one that refers to no resource. */
  readonly grantsOf: (client: SourceObject, spec: OAuthClientSpec) => Condition | undefined;
  readonly ownerOf: OwnerOf;
  readonly record: (event: EventFacts) => void;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Pick<Logger, 'error'>;
  readonly metrics: ReconcileMetrics;
}

const WORKERS = 16;
/** The most that reconcile clients of one namespace: a quarter. */
const WORKERS_PER_NAMESPACE = WORKERS / 4;
/** How often verifier Secrets without a client are looked for: one may arrive after its client was deleted. */
const CLEAN_UP_MILLISECONDS = 30_000;
const LAST_USED_PER_SECOND = 5;

/** The claims of a client need no more; its verdict has the others. */
const NO_FACTS: Omit<ClientFacts, 'serviceAccountUid'> = {
  secret: () => 'withheld',
  configMap: () => 'withheld',
  verifiersOf: () => [],
  jwksOf: () => undefined,
  programmed: { status: 'Unknown', reason: 'Pending', message: '' },
};

export class ClientController extends KindController {
  readonly #options: ClientControllerOptions;
  readonly #clients: ClientSet<ClusterSource>;
  readonly #programmed: ProgrammedObjects;
  readonly #reconciler: ClientReconciler;
  readonly #verifiers: VerifierSecrets;
  readonly #reports: ReplicaReports;
  /** Keys by uid, of the clients of every class. */
  readonly #keys = new Map<string, string>();
  readonly #referring = new ReferringClients();
  readonly #cleanUps: WorkQueue;
  #cleaning: NodeJS.Timeout | undefined;

  constructor(options: ClientControllerOptions) {
    const { api, sources, install, clock, random, log, metrics, record } = options;
    super({ kind: 'OAuthClient', log, metrics, workers: WORKERS, workersPerNamespace: WORKERS_PER_NAMESPACE });
    this.#options = options;
    const clientExists = (uid: string) => this.#keys.has(uid);
    const serviceAccountUid = accountUids(sources.serviceAccounts);
    this.#clients = new ClientSet({
      ...install,
      unknownFields: 'ignore',
      reservedNamespace: install.releaseNamespace,
      ownerOf: options.ownerOf,
      policies: () => this.#policies(),
      namespaceLabels: (namespace) => labelsOf(sources.namespaces, namespace),
      factsOf: () => ({ ...NO_FACTS, serviceAccountUid }),
    });
    this.#verifiers = new VerifierSecrets({ api, view: sources.releaseSecrets, clientExists, ...install });
    this.#reports = new ReplicaReports({
      replicas: options.replicas,
      releaseNamespace: install.releaseNamespace,
      record,
      clock,
      clientOf: (uid) => this.#clientOf(uid),
      onChange: ({ metadata }) => this.queue.add(objectKey(metadata)),
    });
    const programmed = new ProgrammedObjects({ replicas: options.observed, clock, random });
    this.#programmed = programmed;
    const shared = { api, clients: this.#clients, clock };
    const credentials = new ClientSecrets({
      ...shared,
      serviceAccountUid,
      verifiers: this.#verifiers,
      issuer: install.issuer,
      secrets: sources.secrets,
      configMaps: sources.configMaps,
      clientExists,
      random,
      record,
      isServed: async (object, state, since) =>
        mayPublishSecret(await programmed.of(storedClient(object, state)), clock.now() - since),
    });
    this.#reconciler = new ClientReconciler({
      ...shared,
      credentials,
      programmed,
      reports: this.#reports,
      grantsOf: options.grantsOf,
      record,
      lastUsedRate: new TokenBucket({ perSecond: LAST_USED_PER_SECOND, burst: LAST_USED_PER_SECOND }),
    });
    this.#cleanUps = new WorkQueue({
      kind: 'verifier',
      log,
      metrics,
      reconcile: async (uid) => {
        if (!clientExists(uid)) await this.#verifiers.removeOrphan(uid);
        return undefined;
      },
    });
    this.companions = [this.#cleanUps, this.#reports];
  }

  /** What the replicas report of IdentityProviders: they are polled for clients and providers at once. */
  get reportedProviders(): ReportedProviders {
    return this.#reports.providers;
  }

  protected listen() {
    const { clients, policies, namespaces, secrets, configMaps, serviceAccounts, releaseSecrets, endpointSlices } =
      this.#options.sources;
    return [
      clients.listen((change) => this.#clientChanged(change)),
      policies.listen(() => this.#queue(this.#clients.revalidate())),
      namespaces.listen(unlessSame(hasSameLabels, ({ key }) => this.#queue(this.#clients.revalidate(key)))),
      secrets.listen((change) => this.#secretChanged(change)),
      configMaps.listen(({ key }) => this.#queueReferring('ConfigMap', key)),
      serviceAccounts.listen(({ key }) => this.#queueReferring('ServiceAccount', key)),
      releaseSecrets.listen((change) => this.#releaseSecretChanged(change)),
      ...(endpointSlices === undefined ? [] : [endpointSlices.listen(() => this.#replicasChanged())]),
    ];
  }

  protected begin(): void {
    // The claims of all clients must be known before the first client is admitted.
    for (const object of this.#options.sources.clients.objects()) this.#index(object);
    this.#recompute();
    for (const key of this.#clients.keys()) this.queue.add(key);
    this.#cleanUp();
    this.#cleaning = setInterval(() => this.#cleanUp(), CLEAN_UP_MILLISECONDS);
  }

  override async stop(): Promise<void> {
    clearInterval(this.#cleaning);
    await super.stop();
  }

  /** To be called when the grants of resources changed. @param keys of the resources */
  grantsChanged(keys: readonly string[]): void {
    for (const key of keys) this.#queueReferring('ProtectedResource', key);
    for (const namespace of new Set(keys.map((key) => splitKey(key)[0])))
      this.#queueReferring('Identifiers', namespace);
  }

  protected async reconcile(key: string): Promise<number | undefined> {
    // Policies and namespaces may have changed since it was indexed.
    if (this.#clients.get(key) !== undefined) this.#clients.validate(key);
    this.#recompute();
    return await this.#reconciler.reconcile(key);
  }

  /** The client of a replica's report; undefined when it was deleted or its namespace is terminating. */
  #clientOf(uid: string): KubernetesObject | undefined {
    const key = this.#keys.get(uid);
    return key === undefined || this.#reconciler.isNamespaceTerminating(uid)
      ? undefined
      : this.#clients.get(key)?.manifest;
  }

  #index(object: KubernetesObject): void {
    const key = objectKey(object.metadata);
    this.#keys.set(object.metadata.uid, key);
    this.#referring.add(key, object);
    const source = sourceOf(object);
    if (isServed(source, this.#options.install.className)) {
      this.#clients.put(source);
      this.#clients.validate(key);
    } else this.#clients.delete(key);
  }

  #recompute(): void {
    this.#queue(this.#clients.recompute());
  }

  #queue(clients: readonly ClusterSource[]): void {
    for (const { manifest } of clients) this.queue.add(objectKey(manifest.metadata));
  }

  #policies(): readonly Policy[] {
    const { install, sources } = this.#options;
    const policies = [...sources.policies.objects()].map(sourceOf);
    const { className } = install;
    return admitPolicies({ className, unknownFields: 'ignore', policies }).map(({ policy }) => policy);
  }

  #clientChanged({ type, key, object, before }: ObjectChange): void {
    const outdated = type === 'delete' ? object : before;
    if (outdated !== undefined) this.#referring.delete(key, outdated);
    if (type === 'put') {
      this.#index(object);
      this.queue.add(key);
    } else {
      const { uid } = object.metadata;
      this.#keys.delete(uid);
      this.#clients.delete(key);
      this.#reconciler.forget(uid);
      this.#reports.forget(uid);
      this.#cleanUps.add(uid);
    }
    this.#recompute();
  }

  #secretChanged({ key, object, before }: ObjectChange): void {
    this.#queueReferring('Secret', key);
    // The Secret may have an earlier name of the client that its labels name. A tenant can label any Secret, so only
    // the recorded names are followed.
    const labelled = labelledClient(object.metadata) ?? (before && labelledClient(before.metadata));
    const client = labelled && this.#keys.get(labelled.uid);
    if (labelled === undefined || client === undefined) return;
    const [namespace] = splitKey(client);
    const isHere = (name: string) => key === `${namespace}/${name}`;
    if (this.#verifiers.of({ ...labelled, namespace }).secretNames.some(isHere)) this.queue.add(client);
  }

  #queueReferring(kind: ReferredKind, key: string): void {
    for (const client of this.#referring.to(kind, key)) this.queue.add(client);
  }

  #releaseSecretChanged({ object }: ObjectChange): void {
    const uid = object.type === VERIFIER_SECRET_TYPE ? uidOfVerifierSecret(object) : undefined;
    const client = uid === undefined ? undefined : this.#keys.get(uid);
    if (client !== undefined) this.queue.add(client);
  }

  #replicasChanged(): void {
    for (const uid of this.#programmed.replicasChanged()) {
      const client = this.#keys.get(uid);
      if (client !== undefined) this.queue.add(client);
    }
  }

  #cleanUp(): void {
    const { watchNamespaces } = this.#options.install;
    const isWatched = (namespace: string) => watchNamespaces?.includes(namespace) ?? true;
    for (const uid of this.#verifiers.orphanedUids((each) => this.#keys.has(each), isWatched)) this.#cleanUps.add(uid);
  }
}
