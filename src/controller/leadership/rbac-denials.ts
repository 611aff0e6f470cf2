// The RBAC denials of the leader, by kind of call and namespace. A denied call is retried like any other that failed;
// the denial is kept here, so that it can be reported until the same kind of call is permitted, the namespace is
// deleted, or the denial expires because the call is not repeated.

import type { Logger } from 'pino';
import { KubernetesError } from '../../kubernetes/api/kubernetes-api.ts';
import { type Resource, resourceName } from '../../kubernetes/objects/resources.ts';
import type { SharedReflector } from '../../kubernetes/watch/shared-reflector.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import { isDeniedByRbac } from './refused-calls.ts';

/** The right that a call requires. */
export interface Right {
  readonly verb: 'get' | 'create' | 'patch' | 'delete';
  readonly resource: Resource;
  readonly subresource?: 'status' | undefined;
  readonly namespace?: string | undefined;
}

export interface RbacDenialsOptions {
  /** The denials of a deleted namespace are dropped. */
  readonly namespaces: Pick<SharedReflector, 'listen'>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn' | 'info'>;
}

/** The last message of the API server and its time, epoch milliseconds. */
interface RbacDenial {
  readonly message: string;
  readonly at: number;
}

/** A call that is still needed is retried within five minutes. */
const DENIAL_TTL_MILLISECONDS = 10 * 60_000;

/** The namespace of a cluster-scoped kind. */
const NO_NAMESPACE = '';

export class RbacDenials {
  readonly #log: RbacDenialsOptions['log'];
  readonly #clock: Clock;
  /** By kind of call and then by namespace. */
  readonly #refused = new Map<string, Map<string, RbacDenial>>();
  readonly #endListening: () => void;

  constructor({ namespaces, clock, log }: RbacDenialsOptions) {
    [this.#clock, this.#log] = [clock, log];
    this.#endListening = namespaces.listen(({ type, key }) => {
      if (type === 'delete') for (const kind of this.#refused.keys()) this.#forget(kind, key);
    });
  }

  stop(): void {
    this.#endListening();
    this.#refused.clear();
  }

  /**
   * Every kind of call that is denied, with the API server's message for one namespace; undefined when there is none.
   */
  get fault(): string | undefined {
    const messages = [...this.#refused.values()].flatMap((byNamespace) => {
      const [first, ...more] = [...byNamespace.values()].filter((denial) => this.#isCurrent(denial));
      if (first === undefined) return [];
      return more.length === 0 ? first.message : `${first.message}, and in ${more.length} more namespaces`;
    });
    return messages.length === 0 ? undefined : messages.join('; ');
  }

  /** Records the result of a call. @param error undefined when the call succeeded */
  recordResult(right: Right, error?: unknown): void {
    const { namespace = NO_NAMESPACE } = right;
    const kind = kindOf(right);
    const refused = this.#refused.get(kind) ?? new Map<string, RbacDenial>();
    if (isDeniedByRbac(error)) {
      if (!this.#isCurrent(refused.get(namespace))) this.#log.warn({}, error.message);
      this.#refused.set(kind, refused.set(namespace, { message: error.message, at: this.#clock.now() }));
    } else if (isPermitted(error) && this.#forget(kind, namespace)) {
      const where = right.namespace === undefined ? '' : ` in namespace ${right.namespace}`;
      this.#log.info({}, `${kind}${where}: the right is there now`);
    }
  }

  /** A denial expires: a call that is never repeated cannot show that the right was granted. */
  #isCurrent(denial: RbacDenial | undefined): boolean {
    return denial !== undefined && this.#clock.now() - denial.at < DENIAL_TTL_MILLISECONDS;
  }

  #forget(kind: string, namespace: string): boolean {
    const refused = this.#refused.get(kind);
    if (refused?.delete(namespace) !== true) return false;
    if (refused.size === 0) this.#refused.delete(kind);
    return true;
  }
}

function kindOf({ verb, resource, subresource }: Right): string {
  return `${verb} ${resourceName(resource)}${subresource === undefined ? '' : `/${subresource}`}`;
}

/** Whether the call passed authorization: the API server does that first, and these statuses come from later checks. */
function isPermitted(error: unknown): boolean {
  if (error === undefined) return true;
  return error instanceof KubernetesError && [400, 403, 404, 409, 422].includes(error.status);
}
