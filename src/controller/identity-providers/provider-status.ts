// The status of an IdentityProvider: its callback address, and the conditions with their times. Pure.

import type { ProviderVerdict } from '../../admission/identity-providers/admit-providers.ts';
import type { Condition } from '../../admission/kinds/conditions.ts';
import type { IdentityProviderStatus } from '../../admission/kinds/identity-provider.ts';
import { withTime } from '../reconciling/status-conditions.ts';

interface StatusFacts {
  readonly issuer: string;
  /** The present status: a condition with the same status keeps its time. */
  readonly before: unknown;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** A Secret that is missing is waited for; what is wrong with one that is there only its owner can fix. */
const STALLING = ['SecretTypeMismatch', 'SecretKeyMissing', 'InvalidCertificate'];

/** The whole status. */
export function providerStatus(
  { object, conditions }: ProviderVerdict,
  { issuer, before, now }: StatusFacts,
): IdentityProviderStatus {
  const isStalled = conditions.some(
    ({ type, status, reason }) => (type === 'Accepted' && status === 'False') || STALLING.includes(reason),
  );
  const unready = conditions.find(({ type, status }) => type === 'Ready' && status !== 'True');
  const progress: readonly Condition[] =
    unready === undefined ? [] : [{ ...unready, type: isStalled ? 'Stalled' : 'Reconciling', status: 'True' }];
  return {
    observedGeneration: object.generation,
    callbackUrl: `${issuer}/login/callback/${object.name}`,
    conditions: [...conditions, ...progress].map((condition) => withTime(condition, before, now)),
  };
}
