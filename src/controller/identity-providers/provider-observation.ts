// The conditions Programmed and Reachable of an IdentityProvider, from what the replicas reported last. Pure. An
// unresponsive replica revokes neither.

import type { ProviderObservation } from '../../admission/identity-providers/admit-providers.ts';
import type { Reachable } from '../../admission/kinds/conditions.ts';
import type { SourceObject } from '../../admission/kinds/manifest.ts';
import { conditionIn } from '../reconciling/status-conditions.ts';
import { isProgrammedIn, NOT_OBSERVED, namesOf, pendingOn, SERVED } from '../replicas/programmed.ts';
import type { ProviderReports, ReportedProvider } from '../replicas/reported-providers.ts';

/**
 * What the replicas serve and reach of the present generation.
 * @param lastStatus what a former leader observed of this generation applies while replicas do not answer
 */
export function observationOf(
  { uid, generation }: SourceObject,
  reports: ProviderReports,
  lastStatus: unknown,
): ProviderObservation {
  if (reports === 'NotObserved') return { programmed: NOT_OBSERVED, reachable: NOT_TRIED };
  if (reports.length === 0) return { programmed: pendingOn([]), reachable: NOT_TRIED };
  const states = reports.map(({ name, providers }) => {
    const provider = providers?.get(uid);
    return {
      name,
      isSilent: providers === undefined,
      current: provider?.generation === generation ? provider : undefined,
    };
  });
  const behind = states.filter(({ current }) => current === undefined);
  const isOnlySilence = behind.every(({ isSilent }) => isSilent);
  const wasServed = isProgrammedIn(lastStatus, generation) && isOnlySilence;
  const programmed = behind.length === 0 || wasServed ? SERVED : pendingOn(behind.map(({ name }) => name));
  const tries = states.flatMap(({ name, current }) => (current === undefined ? [] : [{ name, ...current }]));
  return { programmed, reachable: reachableBy(tries) ?? lastReachable(lastStatus, generation) ?? NOT_TRIED };
}

type Try = ReportedProvider & { readonly name: string };

/** Undefined where no replica reported. */
function reachableBy(tries: readonly Try[]): Reachable | undefined {
  if (tries.length === 0) return undefined;
  for (const reason of ['IssuerMismatch', 'DiscoveryFailed'] as const) {
    const failed = tries.filter((one) => !one.reachable && one.reason === reason).map(({ name }) => name);
    if (failed.length > 0) return { status: 'False', reason, message: `${SENTENCES[reason]} ${namesOf(failed)}.` };
  }
  return tries.every(({ reachable }) => reachable) ? REACHED : NOT_TRIED;
}

const SENTENCES = {
  IssuerMismatch: 'The discovery document at the issuer is that of another one, as read by',
  DiscoveryFailed: 'The source cannot be reached, or its discovery document cannot be used, by',
} as const;

function lastReachable(lastStatus: unknown, generation: number): Reachable | undefined {
  const { status, reason, message, observedGeneration } = conditionIn(lastStatus, 'Reachable') ?? {};
  if (observedGeneration !== generation || typeof message !== 'string') return undefined;
  if (reason === 'Reachable' && status === 'True') return REACHED;
  const isFailure = reason === 'IssuerMismatch' || reason === 'DiscoveryFailed';
  return isFailure && status === 'False' ? { status, reason, message } : undefined;
}

const REACHED: Reachable = { status: 'True', reason: 'Reachable', message: 'Every replica reaches it.' };
const NOT_TRIED: Reachable = {
  status: 'Unknown',
  reason: 'NotObserved',
  message: 'No replica has reported yet whether it reaches the source.',
};
