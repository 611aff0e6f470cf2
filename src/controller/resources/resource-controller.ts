// Reconciles the status of all ProtectedResources of an install while this process leads, and answers what clients are
// granted of them. A change may alter the verdict on others: an identifier becomes free, a place in a namespace.

import type { Logger } from 'pino';
import type { DefaultPolicy } from '../../admission/kinds/client-policy.ts';
import type { Condition } from '../../admission/kinds/conditions.ts';
import type { SourceObject } from '../../admission/kinds/manifest.ts';
import type { ProtectedResourceStatus } from '../../admission/kinds/protected-resource.ts';
import { printed } from '../../admission/kinds/quoted.ts';
import { admitPolicies } from '../../admission/policies/admit-policies.ts';
import type { OwnerOf } from '../../admission/policies/policy-violations.ts';
import type { ResourceVerdict } from '../../admission/resources/admit-resource.ts';
import { AdmittedResources } from '../../admission/resources/admitted-resources.ts';
import {
  grantsCondition,
  type ReferringClient,
  ungrantedReferences,
} from '../../admission/resources/resource-grants.ts';
import { type KubernetesObject, PROTECTED_RESOURCES } from '../../kubernetes/objects/resources.ts';
import { sourceOf } from '../../kubernetes/objects/source-object.ts';
import { hasSameLabels, labelsOf } from '../../kubernetes/watch/namespace-labels.ts';
import type { ObjectChange } from '../../kubernetes/watch/object-store.ts';
import type { ObjectSource } from '../../kubernetes/watch/shared-reflector.ts';
import { unlessSame } from '../../kubernetes/watch/unless-same.ts';
import { resourceMetadataUrl } from '../../oauth/endpoints/resource-metadata.ts';
import type { Clock, Random } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { KindController } from '../reconciling/kind-controller.ts';
import { withTime } from '../reconciling/status-conditions.ts';
import { StatusReport } from '../reconciling/status-report.ts';
import { type ReconcileMetrics, WorkQueue } from '../reconciling/work-queue.ts';
import type { ObservedReplicas } from '../replicas/observed-replicas.ts';
import { isProgrammedIn, ProgrammedObjects, type StoredVersion } from '../replicas/programmed.ts';

export interface ResourceControllerOptions {
  readonly api: LeaderApi;
  /** The watches; each has completed its first list. */
  readonly sources: {
    readonly resources: ObjectSource;
    readonly policies: ObjectSource;
    readonly namespaces: ObjectSource;
    /** Of the replicas; undefined where their addresses are fixed or not configured. */
    readonly endpointSlices?: ObjectSource | undefined;
  };
  readonly install: {
    readonly issuer: string;
    readonly className: string;
    readonly releaseNamespace: string;
    readonly defaultPolicy: DefaultPolicy;
  };
  readonly observed: ObservedReplicas;
  /** Called with the keys of resources whose grants may have changed. */
  readonly onGrantsChanged: (keys: readonly string[]) => void;
  readonly record: (event: EventFacts) => void;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Pick<Logger, 'error'>;
  readonly metrics: ReconcileMetrics;
}

/** The only key of the ranking: it covers all resources. */
const ALL = 'all';
/** How long changes are batched. */
const GATHERING_MILLISECONDS = 20;
const WORKERS = 8;
const WORKERS_PER_NAMESPACE = WORKERS / 4;

export class ResourceController extends KindController {
  readonly #options: ResourceControllerOptions;
  readonly #resources: AdmittedResources<SourceObject>;
  readonly #programmed: ProgrammedObjects;
  readonly #statuses: StatusReport;
  readonly #rankings: WorkQueue;

  constructor(options: ResourceControllerOptions) {
    const { sources, install, log, metrics, observed: replicas, clock, random } = options;
    super({ kind: 'ProtectedResource', log, metrics, workers: WORKERS, workersPerNamespace: WORKERS_PER_NAMESPACE });
    this.#options = options;
    this.#resources = new AdmittedResources({
      className: install.className,
      issuer: install.issuer,
      defaultPolicy: install.defaultPolicy,
      unknownFields: 'ignore',
      reservedNamespace: install.releaseNamespace,
      policies: () => this.#policies(),
      namespaceLabels: (namespace) => labelsOf(sources.namespaces, namespace),
    });
    this.#programmed = new ProgrammedObjects({ replicas, clock, random });
    this.#statuses = new StatusReport(options, PROTECTED_RESOURCES);
    this.#rankings = new WorkQueue({
      kind: 'resource-ranking',
      log,
      metrics,
      reconcile: async () => {
        this.#recompute();
        return undefined;
      },
    });
    this.companions = [this.#rankings];
  }

  /** See {@link AdmittedResources.ownerOf}. */
  readonly ownerOf: OwnerOf = (identifier) => this.#resources.ownerOf(identifier);

  /** `ResourcesGranted` of a client; undefined for one that refers to no resource. */
  conditionFor(client: SourceObject, spec: ReferringClient['spec']): Condition | undefined {
    if (spec.resources.length === 0) return undefined;
    const { namespace, name, generation } = client;
    const namespaceLabels = labelsOf(this.#options.sources.namespaces, namespace);
    const referring = { namespace, name, namespaceLabels, spec };
    return grantsCondition(referring, ungrantedReferences(referring, this.#resources.accepted), generation);
  }

  protected listen() {
    const { resources, policies, namespaces, endpointSlices } = this.#options.sources;
    return [
      resources.listen((change) => this.#resourceChanged(change)),
      policies.listen(() => this.#revalidate()),
      namespaces.listen(unlessSame(hasSameLabels, ({ key }) => this.#revalidate(key))),
      ...(endpointSlices === undefined ? [] : [endpointSlices.listen(() => this.#replicasChanged())]),
    ];
  }

  protected begin(): void {
    for (const object of this.#options.sources.resources.objects()) this.#resources.put(sourceOf(object));
    this.#recompute();
  }

  #resourceChanged({ type, key, object, before }: ObjectChange): void {
    // A status that this process or another one wrote: it is compared, and no resource is validated again.
    if (type === 'put' && before !== undefined && isOfSameSpec(object, before)) {
      this.queue.add(key);
      return;
    }
    if (type === 'delete') {
      this.#resources.delete(key);
      this.#programmed.forget(object.metadata.uid);
    } else this.#resources.put(sourceOf(object));
    this.#rankings.addAfter(ALL, GATHERING_MILLISECONDS);
  }

  #replicasChanged(): void {
    const waiting = new Set(this.#programmed.replicasChanged());
    if (waiting.size === 0) return;
    for (const key of this.#resources.keys()) {
      if (waiting.has(this.#resources.get(key)?.uid ?? '')) this.queue.add(key);
    }
  }

  #revalidate(namespace?: string): void {
    this.#resources.revalidate(namespace);
    this.#rankings.addAfter(ALL, GATHERING_MILLISECONDS);
  }

  #recompute(): void {
    const { verdicts, granting } = this.#resources.recompute();
    for (const key of verdicts) this.queue.add(key);
    if (granting.length > 0) this.#options.onGrantsChanged(granting);
  }

  #policies() {
    const { sources, install } = this.#options;
    const policies = [...sources.policies.objects()].map(sourceOf);
    const verdicts = admitPolicies({ className: install.className, unknownFields: 'ignore', policies });
    return verdicts.map(({ policy }) => policy);
  }

  protected async reconcile(key: string): Promise<number | undefined> {
    const object = this.#resources.get(key);
    const unserved = this.#resources.verdict(key);
    if (object === undefined || unserved === undefined) return undefined;
    if (unserved.resource === undefined) {
      this.#programmed.forget(object.uid);
      await this.#report(key, unserved);
      return undefined;
    }
    const lastStatus = this.#options.sources.resources.get(key)?.status;
    const { programmed, requeueAfter, isDue } = await this.#programmed.report(storedResource(object, lastStatus));
    const verdict = this.#resources.verdict(key, programmed);
    // Changed meanwhile: it is queued again.
    if (verdict?.object !== object) return undefined;
    if (isDue) await this.#report(key, verdict);
    return requeueAfter;
  }

  async #report(key: string, verdict: ResourceVerdict): Promise<void> {
    const { sources, install, clock } = this.#options;
    const object = sources.resources.get(key);
    if (object?.metadata.uid !== verdict.object.uid) return;
    const before = object.status;
    const status = resourceStatus(verdict, { issuer: install.issuer, before, now: clock.now() });
    await this.#statuses.report(object, status, verdict.conditions);
  }
}

function storedResource({ uid, generation }: SourceObject, lastStatus: unknown): StoredVersion {
  return {
    uid,
    version: `${generation}`,
    isServedBy: ({ resources }) => resources.get(uid)?.generation === generation,
    wasProgrammed: isProgrammedIn(lastStatus, generation),
  };
}

function isOfSameSpec({ metadata: now }: KubernetesObject, { metadata: then }: KubernetesObject): boolean {
  const isSame = now.uid === then.uid && now.generation === then.generation;
  return isSame && now.deletionTimestamp === then.deletionTimestamp;
}

interface StatusFacts {
  readonly issuer: string;
  /** The present status: a condition with the same status keeps its time. */
  readonly before: unknown;
  readonly now: number;
}

/** The whole status. */
function resourceStatus(
  { object, identifier, resource, conditions }: ResourceVerdict,
  { issuer, before, now }: StatusFacts,
): ProtectedResourceStatus {
  const refused = conditions.find(({ type, status }) => type === 'Accepted' && status === 'False');
  const unready = conditions.find(({ type, status }) => type === 'Ready' && status !== 'True');
  // Only the owner can fix what is refused; all else comes by itself.
  const progress: readonly Condition[] =
    unready === undefined
      ? []
      : [{ ...unready, type: refused === undefined ? 'Reconciling' : 'Stalled', status: 'True' }];
  const metadataUrl =
    resource && resourceMetadataUrl(issuer, { ...resource, isDiscoverable: resource.spec.discovery === 'Public' });
  return {
    observedGeneration: object.generation,
    resource: printed(identifier, LONGEST_IDENTIFIER),
    ...(metadataUrl !== undefined && { metadataUrl }),
    conditions: [...conditions, ...progress].map((condition) => withTime(condition, before, now)),
  };
}

const LONGEST_IDENTIFIER = 512;
