// What it means that the API server refuses a call: some of it passes, some of it is for the owner of a client to know, some
// of it for whoever installed grantry.

import type { Fault } from '../../admission/kinds/conditions.ts';
import { KubernetesError } from '../../kubernetes/api/kubernetes-api.ts';
import { resourceName, SECRETS } from '../../kubernetes/objects/resources.ts';

/** Whether the API server takes nothing more into a namespace that is on its way out. */
export function isTerminating(error: unknown): boolean {
  return error instanceof KubernetesError && error.status === 403 && error.causes.includes('NamespaceTerminating');
}

/**
 * Whether RBAC refused it: a quota, an admission webhook and a namespace that is on its way out answer 403 as well. Only the
 * words tell, which are the API server's own and the same for whatever authorizes.
 */
export function isRightMissing(error: unknown): error is KubernetesError {
  return error instanceof KubernetesError && error.status === 403 && MISSING.test(error.message);
}

const MISSING = / is forbidden: User "[^"]*" cannot /;

/** Whether somebody was faster. */
export function isTaken(error: unknown): boolean {
  return error instanceof KubernetesError && error.reason === 'AlreadyExists';
}

/** What the owner is to know of a Secret that was not written. @throws the error itself when it is not for the owner */
export function writeFault(error: unknown, advice: string): Fault {
  if (!(error instanceof KubernetesError) || error.reason === 'Conflict' || isTerminating(error)) throw error;
  if (error.status === 403) return forbidden(error, advice);
  if (![400, 422].includes(error.status)) throw error;
  const message = `The API server refuses the Secret (${error.status} ${error.reason}).${advice}`;
  return { path: SECRET_PATH, reason: 'RotationFailed', message };
}

/**
 * What the owner is to know of a Secret of a namespace that may not be read or removed.
 * @throws the error itself when it is not for the owner
 */
export function accessFault(error: unknown, namespace: string): Fault {
  const isAccess = error instanceof KubernetesError && error.status === 403 && !isTerminating(error);
  if (!isAccess || error.resource !== SECRETS || error.namespace !== namespace) throw error;
  return forbidden(error, ' What is accepted stays so meanwhile.');
}

const SECRET_PATH: Fault['path'] = ['spec', 'auth', 'clientSecret'];

/** Without the words of the API server: an admission webhook may say anything. */
function forbidden({ verb, resource, namespace, user, status, reason }: KubernetesError, advice: string): Fault {
  return {
    path: SECRET_PATH,
    reason: verb === 'get' ? 'SecretNotReadable' : 'SecretWriteForbidden',
    message: `The API server refuses to ${verb} ${resourceName(resource)} in namespace ${namespace} as ${user} (${status} ${reason}): a right is missing, or a quota or a policy forbids it.${advice}`,
  };
}
