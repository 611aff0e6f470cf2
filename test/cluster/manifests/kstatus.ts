// What kstatus says of a custom resource: the rules that Flux, Helm 4 and kpt wait by, as its `Compute` goes through them.

import type { Manifest } from '../setup/cluster.ts';

export type KstatusResult = 'Current' | 'InProgress' | 'Failed' | 'Terminating';

interface Condition {
  readonly type: string;
  readonly status: string;
}

export function kstatus({ metadata, status }: Manifest): KstatusResult {
  if (metadata.deletionTimestamp !== undefined) return 'Terminating';
  const { observedGeneration, conditions = [] } = (status ?? {}) as {
    readonly observedGeneration?: number;
    readonly conditions?: readonly Condition[];
  };
  if (observedGeneration !== undefined && observedGeneration !== metadata.generation) return 'InProgress';
  for (const condition of conditions) {
    if (condition.status !== 'True') continue;
    if (condition.type === 'Reconciling') return 'InProgress';
    if (condition.type === 'Stalled') return 'Failed';
  }
  const ready = conditions.find(({ type }) => type === 'Ready');
  return ready === undefined || ready.status === 'True' ? 'Current' : 'InProgress';
}
