// Secrets that somebody else changes again and again: each time one is put back counts, and after a few the next time is
// put off ever longer. Two writers that disagree would else make a new client secret with every turn. Kept in this process
// only: who takes over begins anew.

import type { Fault } from '../../admission/kinds/conditions.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import { quoted } from '../../admission/kinds/quoted.ts';
import { FIELD_MANAGER } from '../../kubernetes/api/kubernetes-api.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import type { Clock } from '../../oauth/ports/ports.ts';
import { exponentialBackoff } from '../../oauth/values/backoff.ts';

/** So often a Secret is put back at once. */
const IMMEDIATE_REPAIRS = 3;
const REPAIR = { first: 10_000, longest: 10 * 60_000 };
/** What was left alone for so long is contested no more. */
const BACKOFF_RESET_MILLISECONDS = 2 * REPAIR.longest;

interface Contest {
  readonly times: number;
  /** Epoch milliseconds. */
  readonly last: number;
}

/** By uid of the client. */
export class ContestedSecrets {
  readonly #clock: Clock;
  readonly #contests = new Map<string, Contest>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** To be called when a Secret was put back. */
  recordRepair(uid: string): void {
    const { times } = this.#contest(uid) ?? { times: 0 };
    this.#contests.set(uid, { times: times + 1, last: this.#clock.now() });
  }

  forget(uid: string): void {
    this.#contests.delete(uid);
  }

  /** What there is to wait for before it may be put back again; undefined: nothing. */
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

/** What the owner is to know of a Secret that is not put back for a while. @param present the Secret as it is */
export function contestFault(
  name: string,
  present: KubernetesObject | undefined,
  { times, until }: { readonly times: number; readonly until: number },
): Fault {
  const manager = present && lastOtherManager(present);
  const who = manager === undefined ? '' : ` The API server names ${quoted(manager)} as who wrote it last.`;
  return {
    path: ['spec', 'auth', 'clientSecret'],
    reason: 'SecretContested',
    message: `Something else keeps changing or deleting the Secret ${quoted(name)}: it was put back ${times} times, and is again after ${new Date(until).toISOString()}.${who} Stop that, or name another Secret.`,
  };
}

/** The field manager that wrote an object last, beside this one; undefined where the object does not tell. */
function lastOtherManager({ metadata }: KubernetesObject): string | undefined {
  const { managedFields } = fieldsOf(metadata);
  const entries = (Array.isArray(managedFields) ? managedFields : []).map(fieldsOf);
  const others = entries.filter(({ manager }) => typeof manager === 'string' && manager !== FIELD_MANAGER);
  const [last] = others.sort((one, other) => (String(one.time) < String(other.time) ? 1 : -1));
  return last === undefined ? undefined : String(last.manager);
}
