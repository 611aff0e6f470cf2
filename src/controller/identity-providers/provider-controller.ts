// Reconciles the status of all IdentityProviders of the release namespace while this process leads. There are few, and a
// change of one may alter the verdict on others: each reconcile admits all.

import type { Logger } from 'pino';
import { admitProviders, type ProviderVerdict } from '../../admission/identity-providers/admit-providers.ts';
import type { ProviderSecret } from '../../admission/identity-providers/provider-secret.ts';
import { fieldsOf, type SourceObject } from '../../admission/kinds/manifest.ts';
import type { KubernetesApi } from '../../kubernetes/api/kubernetes-api.ts';
import { IDENTITY_PROVIDERS, objectKey, SECRETS } from '../../kubernetes/objects/resources.ts';
import { sourceOf } from '../../kubernetes/objects/source-object.ts';
import type { ObjectSource } from '../../kubernetes/watch/shared-reflector.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { forEachOf } from '../reconciling/for-each-of.ts';
import { KindController } from '../reconciling/kind-controller.ts';
import { StatusReport } from '../reconciling/status-report.ts';
import type { ReconcileMetrics } from '../reconciling/work-queue.ts';
import { REPORT_AFTER_MILLISECONDS } from '../replicas/programmed.ts';
import type { ProviderReports, ReportedProviders } from '../replicas/reported-providers.ts';
import { observationOf } from './provider-observation.ts';
import { providerStatus } from './provider-status.ts';

export interface ProviderControllerOptions {
  readonly api: LeaderApi;
  /** Lists without a lease, as the watches do. */
  readonly reader: Pick<KubernetesApi, 'list'>;
  /** The watches; each has completed its first list. */
  readonly sources: {
    /** IdentityProviders of the release namespace. */
    readonly providers: ObjectSource;
    /** The Secrets there of the type for identity providers, and no others. */
    readonly providerSecrets: ObjectSource;
  };
  readonly install: { readonly issuer: string; readonly releaseNamespace: string };
  readonly reported: Pick<ReportedProviders, 'latest' | 'listen' | 'pollSoon'>;
  readonly record: (event: EventFacts) => void;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'error'>;
  readonly metrics: ReconcileMetrics;
}

/** The only key of the queue: each reconcile covers all providers. */
const ALL = 'all';
/** How long changes are batched. */
const GATHERING_MILLISECONDS = 20;
/** How long they are polled for it more often than otherwise. */
const HURRY_MILLISECONDS = 10_000;
/** Between two Events about groups of one provider that were left out. */
const OVERAGE_EVERY_MILLISECONDS = 3_600_000;

export class ProviderController extends KindController {
  readonly #options: ProviderControllerOptions;
  readonly #statuses: StatusReport;
  /** Since when replicas are behind, by uid and generation. */
  #behindSince: ReadonlyMap<string, number> = new Map();
  /** When the last Event about groups that were left out was recorded, by uid. */
  #overageEvents: ReadonlyMap<string, number> = new Map();

  constructor(options: ProviderControllerOptions) {
    super({ kind: 'IdentityProvider', log: options.log, metrics: options.metrics });
    this.#options = options;
    this.#statuses = new StatusReport(options, IDENTITY_PROVIDERS);
  }

  protected listen() {
    const { sources, reported } = this.#options;
    return [
      sources.providers.listen(() => this.queue.addAfter(ALL, GATHERING_MILLISECONDS)),
      sources.providerSecrets.listen(() => this.queue.addAfter(ALL, GATHERING_MILLISECONDS)),
      // Also for the Secrets of other types, whose changes are not followed.
      reported.listen(() => {
        if (this.#hasProviders) this.queue.add(ALL);
      }),
    ];
  }

  protected begin(): void {
    this.queue.add(ALL);
  }

  get #hasProviders(): boolean {
    for (const _ of this.#options.sources.providers.objects()) return true;
    return false;
  }

  protected async reconcile(): Promise<undefined> {
    const { sources, install, reported } = this.#options;
    const objects = [...sources.providers.objects()].map(sourceOf);
    const others = await this.#secretsOfOtherTypes(objects.map(({ manifest }) => nameOfSecret(manifest)));
    const reports = reported.latest ?? [];
    const verdicts = admitProviders(objects, {
      unknownFields: 'ignore',
      releaseNamespace: install.releaseNamespace,
      secret: (namespace, name): ProviderSecret =>
        sources.providerSecrets.get(objectKey({ namespace, name })) ?? (others.has(name) ? 'other_type' : undefined),
      observed: (object) => observationOf(object, reports, sources.providers.get(objectKey(object))?.status),
    });
    this.#noteBehind(verdicts);
    this.#recordOverage(objects, reports);
    await forEachOf(verdicts, async (verdict) => {
      if (this.#isDue(verdict)) await this.#report(verdict);
    });
    return undefined;
  }

  /** The names that a Secret of another type has: existence alone is asked for, and nothing of the Secret is read. */
  async #secretsOfOtherTypes(names: readonly (string | undefined)[]): Promise<ReadonlySet<string>> {
    const { reader, sources, install } = this.#options;
    const namespace = install.releaseNamespace;
    const others = new Set<string>();
    for (const name of new Set(names)) {
      if (name === undefined || sources.providerSecrets.get(objectKey({ namespace, name })) !== undefined) continue;
      // The watch may be behind: one of the right type is then no other.
      const named = { namespace, fieldSelector: `metadata.name=${name}`, metadataOnly: true };
      const { items } = await reader.list(SECRETS, named);
      if (items.length > 0 && sources.providerSecrets.get(objectKey({ namespace, name })) === undefined)
        others.add(name);
    }
    return others;
  }

  /** Has the replicas polled soon while they are behind. */
  #noteBehind(verdicts: readonly ProviderVerdict[]): void {
    const { clock, reported } = this.#options;
    const now = clock.now();
    const behind = verdicts.filter(({ conditions }) => {
      const { status, reason } = conditions.find(({ type }) => type === 'Programmed') ?? {};
      return status === 'False' && reason === 'Pending';
    });
    const keys = behind.map(({ object }) => generationKey(object));
    this.#behindSince = new Map(keys.map((key) => [key, this.#behindSince.get(key) ?? now]));
    const isNew = [...this.#behindSince.values()].some((since) => now - since < HURRY_MILLISECONDS);
    if (isNew) reported.pollSoon();
  }

  #isDue({ object, conditions }: ProviderVerdict): boolean {
    // Before the first poll nothing is known of what is served.
    const isRefused = conditions.some(({ type, status }) => type === 'Accepted' && status === 'False');
    if (this.#options.reported.latest === undefined) return isRefused;
    const since = this.#behindSince.get(generationKey(object));
    return since === undefined || this.#options.clock.now() - since >= REPORT_AFTER_MILLISECONDS;
  }

  /** One Event an hour and provider, as long as people sign in whose groups are left out. */
  #recordOverage(objects: readonly SourceObject[], reports: ProviderReports): void {
    const { sources, clock, record } = this.#options;
    const now = clock.now();
    const recorded = new Map<string, number>();
    for (const { uid, generation, namespace, name } of objects) {
      const last = this.#overageEvents.get(uid);
      if (last !== undefined) recorded.set(uid, last);
      const object = sources.providers.get(objectKey({ namespace, name }));
      if (object?.metadata.uid !== uid || !isOverage(reports, { uid, generation })) continue;
      if (last !== undefined && now - last < OVERAGE_EVERY_MILLISECONDS) continue;
      recorded.set(uid, now);
      record({ regarding: object, type: 'Warning', reason: 'GroupsOverage', action: 'SignIn', note: OVERAGE_NOTE });
    }
    this.#overageEvents = recorded;
  }

  async #report(verdict: ProviderVerdict): Promise<void> {
    const { sources, install, clock } = this.#options;
    const object = sources.providers.get(objectKey(verdict.object));
    if (object?.metadata.uid !== verdict.object.uid) return;
    const facts = { issuer: install.issuer, before: object.status, now: clock.now() };
    const status = providerStatus(verdict, facts);
    await this.#statuses.report(object, status, verdict.conditions);
  }
}

const OVERAGE_NOTE =
  'People signed in without groups: each of them has more than the answer of the provider lists. Have it send fewer.';

function isOverage(
  reports: ProviderReports,
  { uid, generation }: { readonly uid: string; readonly generation: number },
): boolean {
  if (reports === 'NotObserved') return false;
  const found = reports.map(({ providers }) => providers?.get(uid));
  return found.some((provider) => provider?.generation === generation && provider.isOverage === true);
}

function generationKey({ uid, generation }: { readonly uid: string; readonly generation: number }): string {
  return `${uid} ${generation}`;
}

function nameOfSecret(manifest: unknown): string | undefined {
  const { name } = fieldsOf(fieldsOf(fieldsOf(manifest).spec).clientSecretRef);
  return typeof name === 'string' ? name : undefined;
}
