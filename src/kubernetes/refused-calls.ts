// What it means for a client that the API server refuses a call about its Secret: some of it passes, some of it is for its
// owner to know.

import type { Fault } from '../admission/conditions.ts';
import { KubernetesError } from './client.ts';

/** Whether the API server takes nothing more into a namespace that is on its way out. */
export function isTerminating(error: unknown): boolean {
  return error instanceof KubernetesError && error.status === 403 && error.causes.includes('NamespaceTerminating');
}

/** Whether somebody was faster. */
export function isTaken(error: unknown): boolean {
  return error instanceof KubernetesError && error.reason === 'AlreadyExists';
}

/** What the owner is to know of a Secret that was not written. @throws the error itself when it is not for the owner */
export function writeFault(error: unknown, advice: string): Fault {
  if (!(error instanceof KubernetesError) || error.reason === 'Conflict' || isTerminating(error)) throw error;
  if (![400, 403, 422].includes(error.status)) throw error;
  return {
    path: ['spec', 'auth', 'clientSecret'],
    reason: error.status === 403 ? 'SecretWriteForbidden' : 'RotationFailed',
    message: `The API server refuses the Secret (${error.status} ${error.reason}).${advice}`,
  };
}
