// The rights that a leader found it lacks: each call that the API server last refused for want of one. It is tried again
// like any other call that failed; here it is remembered, so that it can be said until the same kind of call goes through,
// or nobody wants it any more.

import type { Logger } from 'pino';
import { KubernetesError } from '../../kubernetes/api/kubernetes-api.ts';
import { type Resource, resourceName } from '../../kubernetes/objects/resources.ts';
import type { SharedReflector } from '../../kubernetes/watch/shared-reflector.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import { isRightMissing } from './refused-calls.ts';

/** What a call takes. */
export interface Right {
  readonly verb: 'get' | 'create' | 'patch' | 'delete';
  readonly resource: Resource;
  readonly subresource?: 'status' | undefined;
  readonly namespace?: string | undefined;
}

export interface RbacDenialsOptions {
  /** Whoever is refused in a namespace that is gone is not refused any more. */
  readonly namespaces: Pick<SharedReflector, 'listen'>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn' | 'info'>;
}

/** What the API server said last, and when: epoch milliseconds. */
interface Refusal {
  readonly message: string;
  readonly at: number;
}

/** What is still wanted is tried again within five minutes. */
const REMEMBERED_MILLISECONDS = 10 * 60_000;

/** Of a cluster-scoped kind. */
const NO_NAMESPACE = '';

export class RbacDenials {
  readonly #log: RbacDenialsOptions['log'];
  readonly #clock: Clock;
  /** By kind of call and then by namespace. */
  readonly #refused = new Map<string, Map<string, Refusal>>();
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

  /** Every kind of call that is refused, one namespace of each in the words of the API server; undefined: none is. */
  get fault(): string | undefined {
    const said = [...this.#refused.values()].flatMap((byNamespace) => {
      const [first, ...more] = [...byNamespace.values()].filter((refusal) => this.#counts(refusal));
      if (first === undefined) return [];
      return more.length === 0 ? first.message : `${first.message}, and in ${more.length} more namespaces`;
    });
    return said.length === 0 ? undefined : said.join('; ');
  }

  /** Takes in what became of a call. @param error undefined: it went through */
  answered(right: Right, error?: unknown): void {
    const { namespace = NO_NAMESPACE } = right;
    const kind = kindOf(right);
    const refused = this.#refused.get(kind) ?? new Map<string, Refusal>();
    if (isRightMissing(error)) {
      if (!this.#counts(refused.get(namespace))) this.#log.warn({}, error.message);
      this.#refused.set(kind, refused.set(namespace, { message: error.message, at: this.#clock.now() }));
    } else if (isPermitted(error) && this.#forget(kind, namespace)) {
      const where = right.namespace === undefined ? '' : ` in namespace ${right.namespace}`;
      this.#log.info({}, `${kind}${where}: the right is there now`);
    }
  }

  /** Whoever wanted it may be gone, or never try again: then no call tells that the right is there. */
  #counts(refusal: Refusal | undefined): boolean {
    return refusal !== undefined && this.#clock.now() - refusal.at < REMEMBERED_MILLISECONDS;
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

/** Whether the API server looked at more than rights: they are the first it looks at. */
function isPermitted(error: unknown): boolean {
  if (error === undefined) return true;
  return error instanceof KubernetesError && [400, 403, 404, 409, 422].includes(error.status);
}
