// Reconciles the status of all ClientPolicies of an install: whether each is accepted, which client ids its namespaces
// share, how many namespaces it selects, and how many clients are in those. A count reads all objects, so changes are batched.

import type { Logger } from 'pino';
import { isServed } from '../../admission/clients/client-set.ts';
import type { ClientPolicyStatus } from '../../admission/kinds/client-policy.ts';
import { admitPolicies, type PolicyVerdict } from '../../admission/policies/admit-policies.ts';
import { ambiguityCondition, ambiguousClientIds } from '../../admission/policies/ambiguous-client-ids.ts';
import { matchesSelector } from '../../admission/policies/label-selector.ts';
import { CLIENT_POLICIES, type KubernetesObject } from '../../kubernetes/objects/resources.ts';
import { sourceOf } from '../../kubernetes/objects/source-object.ts';
import type { ObjectSource } from '../../kubernetes/watch/shared-reflector.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import type { LeaderApi } from '../leadership/leader-api.ts';
import type { EventFacts } from '../reconciling/events.ts';
import { forEachOf } from '../reconciling/for-each-of.ts';
import { KindController } from '../reconciling/kind-controller.ts';
import { withTime } from '../reconciling/status-conditions.ts';
import { StatusReport } from '../reconciling/status-report.ts';
import type { ReconcileMetrics } from '../reconciling/work-queue.ts';

export interface PolicyControllerOptions {
  readonly api: LeaderApi;
  /** The watches; each has completed its first list. */
  readonly sources: {
    readonly policies: ObjectSource;
    readonly namespaces: ObjectSource;
    readonly clients: ObjectSource;
  };
  readonly className: string;
  readonly record: (event: EventFacts) => void;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'error'>;
  readonly metrics: ReconcileMetrics;
}

/** The only key of the queue: each reconcile covers all policies. */
const ALL = 'all';
/** How long changes of clients and namespaces are batched. */
const GATHERING_MILLISECONDS = 1000;

export class PolicyController extends KindController {
  readonly #options: PolicyControllerOptions;
  readonly #statuses: StatusReport;

  constructor(options: PolicyControllerOptions) {
    super({ kind: 'ClientPolicy', log: options.log, metrics: options.metrics });
    this.#options = options;
    this.#statuses = new StatusReport(options, CLIENT_POLICIES);
  }

  protected listen() {
    const { policies, namespaces, clients } = this.#options.sources;
    const later = () => this.queue.addAfter(ALL, GATHERING_MILLISECONDS);
    return [
      policies.listen(() => this.queue.add(ALL)),
      namespaces.listen(later),
      // An update of a client does not change the counts.
      clients.listen(({ before }) => (before === undefined ? later() : undefined)),
    ];
  }

  protected begin(): void {
    this.queue.add(ALL);
  }

  protected async reconcile(): Promise<undefined> {
    const { sources, className } = this.#options;
    const objects = new Map([...sources.policies.objects()].map((object) => [object.metadata.uid, object]));
    const policies = [...objects.values()].map(sourceOf);
    const verdicts = admitPolicies({ className, unknownFields: 'ignore', policies });
    const clients = this.#clientsByNamespace();
    await forEachOf(verdicts, async (verdict) => {
      const object = objects.get(verdict.object.uid);
      if (object !== undefined) await this.#report(object, verdict, clients);
    });
    return undefined;
  }

  #clientsByNamespace(): ReadonlyMap<string, number> {
    const { sources, className } = this.#options;
    const counts = new Map<string, number>();
    for (const object of sources.clients.objects()) {
      const { namespace = '' } = object.metadata;
      if (isServed({ manifest: object }, className)) counts.set(namespace, (counts.get(namespace) ?? 0) + 1);
    }
    return counts;
  }

  async #report(object: KubernetesObject, verdict: PolicyVerdict, clients: ReadonlyMap<string, number>): Promise<void> {
    const { sources, clock } = this.#options;
    const before = object.status;
    const status = policyStatus({ verdict, namespaces: sources.namespaces.objects(), clients }, before, clock.now());
    await this.#statuses.report(object, status, verdict.conditions);
  }
}

/**
 * The whole status.
 * @param before the present status: a condition with the same status keeps its time
 */
function policyStatus(
  facts: {
    readonly verdict: PolicyVerdict;
    readonly namespaces: Iterable<KubernetesObject>;
    /** How many clients of the class each namespace has. */
    readonly clients: ReadonlyMap<string, number>;
  },
  before: unknown,
  now: number,
): ClientPolicyStatus {
  const { object, policy, conditions } = facts.verdict;
  const [refused] = conditions.filter(({ status }) => status === 'False');
  // A policy waits for no other object: when it is not ready, only its owner can fix it.
  const stalled = refused === undefined ? [] : [{ ...refused, type: 'Stalled', status: 'True' as const }];
  let [matchedNamespaces, matchedClients] = [0, 0];
  for (const { metadata } of facts.namespaces) {
    if (!matchesSelector(policy.namespaceSelector, metadata.labels ?? {})) continue;
    matchedNamespaces++;
    matchedClients += facts.clients.get(metadata.name) ?? 0;
  }
  // Beside Ready: the policy applies all the same.
  const ambiguity = ambiguityCondition(ambiguousClientIds(policy, matchedNamespaces), object.generation) ?? [];
  return {
    observedGeneration: object.generation,
    conditions: [...conditions, ...stalled].concat(ambiguity).map((condition) => withTime(condition, before, now)),
    matchedNamespaces,
    matchedClients,
  };
}
