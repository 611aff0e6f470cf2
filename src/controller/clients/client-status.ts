// Computes the status of an OAuthClient, which is applied as a whole. Pure. Status is a report: no credential of a
// client depends on it.

import { clientSecretName, hasGeneratedSecret } from '../../admission/client-secrets/client-secret-manifest.ts';
import type { ClientVerdict } from '../../admission/clients/admit-client.ts';
import { revokedUntilCondition } from '../../admission/clients/revoked-until.ts';
import type { Condition } from '../../admission/kinds/conditions.ts';
import type { OAuthClientStatus } from '../../admission/kinds/oauth-client.ts';
import { printed } from '../../admission/kinds/quoted.ts';
import { SECRET_METHODS } from '../../oauth/client-auth/index.ts';
import { nextRotation } from '../client-secrets/client-rotation.ts';
import type { CredentialState } from '../client-secrets/credential-state.ts';
import { seconds, withoutUndefined, withTime } from '../reconciling/status-conditions.ts';

/** The inputs of the status. */
export interface ClientReport {
  readonly verdict: ClientVerdict;
  /** Undefined while the client has no credentials. */
  readonly credentials: CredentialState | undefined;
  /** From the reports of the replicas: `Denied`, `Alert`. */
  readonly notices: readonly Condition[];
  /** `ResourcesGranted`; undefined for a client that refers to no resource. */
  readonly grants: Condition | undefined;
  /** The day on which the client last got a token, `2026-01-31`. */
  readonly lastUsed: string | undefined;
}

/** Reasons beside those of `Accepted` that only the owner can fix. */
const FOR_THE_OWNER = [
  ...['WeakSecret', 'SecretNotOwned', 'InvalidSecretTemplate', 'RotationFailed', 'SecretContested'],
  ...['InvalidJwks', 'SubjectConflict'],
];

/**
 * The whole status.
 * @param before the present status: a condition with the same status keeps its time
 * @param now epoch milliseconds
 */
export function clientStatus(report: ClientReport, before: unknown, now: number): OAuthClientStatus {
  const { verdict, credentials, notices, grants, lastUsed } = report;
  const { object, manifest, clientId, policy } = verdict;
  const spec = manifest?.spec;
  const revoked = spec && revokedUntilCondition(spec, now, object.generation);
  const conditions = [
    ...verdict.conditions,
    ...progressConditions(verdict.conditions),
    ...notices,
    ...(grants ? [grants] : []),
    ...(revoked ? [revoked] : []),
  ];
  const handled = credentials?.handled.rotateAt;
  return withoutUndefined({
    observedGeneration: object.generation,
    clientId,
    policy,
    grants: spec?.grantTypes.map((grantType) => printed(grantType)).join(','),
    conditions: conditions.map((condition) => withTime(condition, before, now)),
    lastHandledRotateAt: handled === undefined ? undefined : printed(handled),
    lastUsedTime: lastUsed === undefined ? undefined : `${lastUsed}T00:00:00Z`,
    ...(spec !== undefined &&
      credentials !== undefined &&
      SECRET_METHODS.includes(spec.auth.method) && {
        secret: secretStatus(verdict, credentials),
        binding: { name: clientSecretName(object.name, spec) },
      }),
  });
}

function secretStatus({ object, manifest }: ClientVerdict, credentials: CredentialState): OAuthClientStatus['secret'] {
  const [newest, previous] = credentials.verifiers;
  const spec = manifest?.spec;
  const isGenerated = spec !== undefined && hasGeneratedSecret(spec);
  const intervalSeconds = spec?.auth.clientSecret?.rotation.interval;
  // While a rotation is pending, the new secret is not published yet, and the previous one is current.
  const current = credentials.begunAt === undefined ? newest : previous;
  return withoutUndefined({
    name: spec && clientSecretName(object.name, spec),
    revision: current?.revision,
    // A fingerprint reveals nothing of 256 random bits. A secret that the owner chose could be guessed by it.
    fingerprint: isGenerated && current ? Buffer.from(current.verifier).toString('hex').slice(0, 12) : undefined,
    lastRotationTime: seconds(credentials.rotatedAt),
    nextRotationTime: isGenerated ? seconds(nextRotation({ intervalSeconds }, credentials)) : undefined,
    previousExpiresAt: seconds(previous?.expiresAt),
  });
}

/** What kstatus reads: `Stalled` when only the owner can fix it, else `Reconciling` until it is ready. */
function progressConditions(conditions: readonly Condition[]): readonly Condition[] {
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready === undefined || ready.status === 'True') return [];
  const isRefused = conditions.some(({ type, status }) => type === 'Accepted' && status === 'False');
  const stalled = conditions.find(({ status, reason }) => status === 'False' && FOR_THE_OWNER.includes(reason));
  const { reason, message, observedGeneration } = stalled !== undefined && !isRefused ? stalled : ready;
  const type = isRefused || stalled !== undefined ? 'Stalled' : 'Reconciling';
  return [{ type, status: 'True', reason, message, observedGeneration }];
}
