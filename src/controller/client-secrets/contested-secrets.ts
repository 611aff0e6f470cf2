// Exponential backoff for Secrets that another writer keeps changing. The controller counts its repairs of each Secret,
// and delays the repairs that follow the first few. Without the delay, each change by the other writer could cause a
// new client secret. The counts are only in memory, so a new leader starts from zero.

import type { Fault } from '../../admission/kinds/conditions.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import { quoted } from '../../admission/kinds/quoted.ts';
import { FIELD_MANAGER } from '../../kubernetes/api/kubernetes-api.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import { exponentialBackoff } from '../../oauth/values/backoff.ts';

/** The number of repairs of a Secret that are made without delay. */
const IMMEDIATE_REPAIRS = 3;
/** The delays of the repairs after those, in milliseconds. */
const REPAIR = { first: 10_000, longest: 10 * 60_000 };
/** After this time without a repair the count of a Secret starts from zero again. */
const BACKOFF_RESET_MILLISECONDS = 2 * REPAIR.longest;

interface Contest {
  readonly times: number;
  /** Epoch milliseconds. */
  readonly last: number;
}

/** The repairs of each client's Secret, by uid of the client. */
export class ContestedSecrets {
  readonly #clock: Clock;
  readonly #contests = new Map<string, Contest>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** To be called after a Secret was repaired. */
  recordRepair(uid: string): void {
    const { times } = this.#contest(uid) ?? { times: 0 };
    this.#contests.set(uid, { times: times + 1, last: this.#clock.now() });
  }

  forget(uid: string): void {
    this.#contests.delete(uid);
  }

  /** The repairs so far, and when the next one is allowed (epoch milliseconds); undefined when it is allowed now. */
  backoffUntil(uid: string): { readonly times: number; readonly until: number } | undefined {
    const { times, last } = this.#contest(uid) ?? { times: 0, last: 0 };
    if (times < IMMEDIATE_REPAIRS) return undefined;
    const until = last + exponentialBackoff(REPAIR, times - IMMEDIATE_REPAIRS);
    return until <= this.#clock.now() ? undefined : { times, until };
  }

  #contest(uid: string): Contest | undefined {
    const contest = this.#contests.get(uid);
    if (contest === undefined || this.#clock.now() - contest.last < BACKOFF_RESET_MILLISECONDS) return contest;
    this.#contests.delete(uid);
    return undefined;
  }
}

/** The fault that reports to the owner that the repair of a Secret is delayed. @param present the Secret as it is */
export function contestFault(
  name: string,
  present: KubernetesObject | undefined,
  { times, until }: { readonly times: number; readonly until: number },
): Fault {
  const manager = present && lastOtherManager(present);
  const lastWriter = manager === undefined ? '' : ` Its last other field manager is ${quoted(manager)}.`;
  return {
    path: ['spec', 'auth', 'clientSecret'],
    reason: 'SecretContested',
    message: `Another writer keeps changing or deleting the Secret ${quoted(name)}: it was restored ${times} times, and will be restored again after ${new Date(until).toISOString()}.${lastWriter} Stop that writer, or name another Secret.`,
  };
}

/** The last field manager of an object other than the controller; undefined where `managedFields` names none. */
function lastOtherManager({ metadata }: KubernetesObject): string | undefined {
  const { managedFields } = fieldsOf(metadata);
  const entries = (Array.isArray(managedFields) ? managedFields : []).map(fieldsOf);
  const others = entries.filter(({ manager }) => typeof manager === 'string' && manager !== FIELD_MANAGER);
  const [last] = others.sort((one, other) => (String(one.time) < String(other.time) ? 1 : -1));
  return last === undefined ? undefined : String(last.manager);
}
