// The reasons for which a watch restarts, by their labels in the metrics.

import { KubernetesError } from '../api/kubernetes-api.ts';

/** Why a watch restarted; a label of a metric. */
export type RestartReason =
  | 'ended'
  | 'ended_early'
  | 'expired'
  | 'undecodable'
  | 'deadline'
  | 'idle'
  | 'unauthorized'
  | 'forbidden'
  | 'refused'
  | 'disconnected';

/** A watch that the API server accepted and that failed. */
export class WatchFault extends Error {
  readonly reason: RestartReason;

  constructor(reason: 'ended_early' | 'deadline' | 'idle') {
    super(MESSAGES[reason]);
    this.reason = reason;
  }
}

const MESSAGES = {
  ended_early: 'the API server ended it at once',
  deadline: 'the API server did not end it in time',
  idle: 'the API server fell silent',
};

/** The reason for the restart of a watch that ended with this error. */
export function restartReason(error: unknown): RestartReason {
  if (error instanceof WatchFault) return error.reason;
  if (!(error instanceof KubernetesError)) return 'refused';
  if (isExpired(error)) return 'expired';
  if (error.reason === 'UndecodableFrame') return 'undecodable';
  if (error.status === 401) return 'unauthorized';
  if (error.status === 403) return 'forbidden';
  return error.status === 0 ? 'disconnected' : 'refused';
}

/** Whether a page was larger than the list takes. */
export function isOversized(error: unknown): boolean {
  return error instanceof KubernetesError && error.reason === 'OversizedAnswer';
}

/** Whether the version of a watch, or the continue token of a list, is too old. */
export function isExpired(error: unknown): boolean {
  return error instanceof KubernetesError && error.status === 410;
}
