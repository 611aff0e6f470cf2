// Classifies calls that the API server refused: transient conditions, faults to report to the owner of a client, and
// missing rights, which the installer of grantry grants.

import type { Fault } from '../../admission/kinds/conditions.ts';
import { KubernetesError } from '../../kubernetes/api/kubernetes-api.ts';
import { resourceName, SECRETS } from '../../kubernetes/objects/resources.ts';

/** Whether the API server refused to create an object because the namespace is terminating. */
export function isTerminating(error: unknown): boolean {
  return error instanceof KubernetesError && error.status === 403 && error.causes.includes('NamespaceTerminating');
}

/**
 * Whether the call failed authorization. A quota, an admission webhook and a terminating namespace answer 403 as well;
 * only the message distinguishes them, which is the API server's own and the same for every authorizer.
 */
export function isDeniedByRbac(error: unknown): error is KubernetesError {
  return error instanceof KubernetesError && error.status === 403 && MISSING.test(error.message);
}

const MISSING = / is forbidden: User "[^"]*" cannot /;

/** Whether the object does not exist. */
export function isAbsent(error: unknown): boolean {
  return error instanceof KubernetesError && error.status === 404;
}

/** Whether the object exists already: another writer created it first. */
export function isAlreadyExists(error: unknown): boolean {
  return error instanceof KubernetesError && error.reason === 'AlreadyExists';
}

/**
 * The fault to report to the owner of a Secret that was not written.
 * @throws the error itself when it is not for the owner
 */
export function writeFault(error: unknown, advice: string): Fault {
  if (!(error instanceof KubernetesError) || error.reason === 'Conflict' || isTerminating(error)) throw error;
  if (error.status === 403) return forbidden(error, advice);
  if (![400, 422].includes(error.status)) throw error;
  const message = `The API server refuses the Secret (${error.status} ${error.reason}).${advice}`;
  return { path: SECRET_PATH, reason: 'RotationFailed', message };
}

/**
 * The fault to report to the owner when a Secret of a namespace may not be read or removed.
 * @throws the error itself when it is not for the owner
 */
export function accessFault(error: unknown, namespace: string): Fault {
  const isAccess = error instanceof KubernetesError && error.status === 403 && !isTerminating(error);
  if (!isAccess || error.resource !== SECRETS || error.namespace !== namespace) throw error;
  return forbidden(error, ' What is accepted stays so meanwhile.');
}

const SECRET_PATH: Fault['path'] = ['spec', 'auth', 'clientSecret'];

/** Leaves out the API server's message: an admission webhook may put anything into it. */
function forbidden({ verb, resource, namespace, user, status, reason }: KubernetesError, advice: string): Fault {
  return {
    path: SECRET_PATH,
    reason: verb === 'get' ? 'SecretNotReadable' : 'SecretWriteForbidden',
    message: `The API server refuses to ${verb} ${resourceName(resource)} in namespace ${namespace} as ${user} (${status} ${reason}): a right is missing, or a quota or a policy forbids it.${advice}`,
  };
}
