// The status of an OAuthClient: everything that is known of it, as it is applied as a whole, and whether what is there
// already says so. Pure. Status is a report: nothing is ever decided by it.

import { clientSecretName, hasGeneratedSecret } from '../../admission/client-secrets/client-secret-manifest.ts';
import type { ClientVerdict } from '../../admission/clients/admit-client.ts';
import type { Condition } from '../../admission/kinds/conditions.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import { SECRET_METHODS } from '../../oauth/client-auth/index.ts';
import { nextRotation } from '../client-secrets/client-rotation.ts';
import type { CredentialState } from '../client-secrets/credential-state.ts';

/** What status is made of. */
export interface ClientReport {
  readonly verdict: ClientVerdict;
  /** Undefined while the client has no credentials. */
  readonly credentials: CredentialState | undefined;
  /** What the replicas met with: `Denied`, `Alert`. */
  readonly notices: readonly Condition[];
  /** The day on which the client last got a token, `2026-01-31`. */
  readonly lastUsed: string | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/** Reasons beside those of `Accepted` that only the owner can do something about. */
const FOR_THE_OWNER = [
  ...['WeakSecret', 'SecretNotOwned', 'InvalidSecretTemplate', 'RotationFailed', 'SecretContested'],
  ...['InvalidJwks', 'SubjectConflict'],
];

/**
 * The whole status.
 * @param before the status that is there: a condition that says the same keeps its time
 * @param now epoch milliseconds
 */
export function clientStatus(report: ClientReport, before: unknown, now: number): Fields {
  const { verdict, credentials, notices, lastUsed } = report;
  const { object, manifest, clientId, policy } = verdict;
  const conditions = [...verdict.conditions, ...progressConditions(verdict.conditions), ...notices];
  const spec = manifest?.spec;
  return withoutUndefined({
    observedGeneration: object.generation,
    clientId,
    policy,
    grants: spec?.grantTypes.join(','),
    conditions: conditions.map((condition) => withTime(condition, before, now)),
    lastHandledRotateAt: credentials?.handled.rotateAt,
    lastUsedTime: lastUsed === undefined ? undefined : `${lastUsed}T00:00:00Z`,
    ...(spec !== undefined &&
      credentials !== undefined &&
      SECRET_METHODS.includes(spec.auth.method) && {
        secret: secretStatus(verdict, credentials),
        binding: { name: clientSecretName(object.name, spec) },
      }),
  });
}

function secretStatus({ object, manifest }: ClientVerdict, credentials: CredentialState): Fields {
  const [newest, previous] = credentials.verifiers;
  const spec = manifest?.spec;
  const isGenerated = spec !== undefined && hasGeneratedSecret(spec);
  const intervalSeconds = spec?.auth.clientSecret?.rotation.interval;
  // A rotation has begun and nobody has the new secret yet: it is not the client's before that.
  const current = isGenerated && previous !== undefined && previous.expiresAt === undefined ? previous : newest;
  return withoutUndefined({
    name: spec && clientSecretName(object.name, spec),
    revision: current?.revision,
    // Of 256 random bits nothing can be guessed by it. What an owner chose might be.
    fingerprint: isGenerated && current ? Buffer.from(current.verifier).toString('hex').slice(0, 12) : undefined,
    lastRotationTime: seconds(credentials.rotatedAt),
    nextRotationTime: isGenerated ? seconds(nextRotation({ intervalSeconds }, credentials)) : undefined,
    previousExpiresAt: seconds(previous?.expiresAt),
  });
}

/** What kstatus reads: `Stalled` when only the owner can go on, else `Reconciling` until it is ready. */
function progressConditions(conditions: readonly Condition[]): readonly Condition[] {
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready === undefined || ready.status === 'True') return [];
  const isRefused = conditions.some(({ type, status }) => type === 'Accepted' && status === 'False');
  const stalled = conditions.find(({ status, reason }) => status === 'False' && FOR_THE_OWNER.includes(reason));
  const { reason, message, observedGeneration } = stalled !== undefined && !isRefused ? stalled : ready;
  const type = isRefused || stalled !== undefined ? 'Stalled' : 'Reconciling';
  return [{ type, status: 'True', reason, message, observedGeneration }];
}

export function withTime(condition: Condition, before: unknown, now: number): Condition & Fields {
  const known = conditionIn(before, condition.type);
  // What the schema puts there was observed of no generation.
  const isObserved = typeof known?.observedGeneration === 'number' && typeof known.lastTransitionTime === 'string';
  const isSame = isObserved && known.status === condition.status;
  return { ...condition, lastTransitionTime: isSame ? known.lastTransitionTime : seconds(now) };
}

/** The condition of a type in a status that may be anything. */
export function conditionIn(status: unknown, type: string): Fields | undefined {
  const { conditions } = fieldsOf(status);
  const list: readonly unknown[] = Array.isArray(conditions) ? conditions : [];
  return list.map(fieldsOf).find((condition) => condition.type === type);
}

export function seconds(time: number | undefined): string | undefined {
  return time === undefined ? undefined : new Date(time).toISOString().replace(/\.\d+Z$/, 'Z');
}

export function withoutUndefined(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Whether two statuses say the same: the order of fields and conditions is nobody's. */
export function isSameStatus(one: unknown, other: unknown): boolean {
  return JSON.stringify(canonical(one)) === JSON.stringify(canonical(other));
}

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical).sort(byType);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, canonical(member)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function byType(one: unknown, other: unknown): number {
  return String(fieldsOf(one).type) < String(fieldsOf(other).type) ? -1 : 1;
}
