// The stored state of one client's credentials, in its verifier Secret in the release namespace: the verifiers that
// replicas accept (admission/client-secrets/client-verifier.ts) and, in annotations, the progress of their rotation and
// the names of the Secrets that the controller wrote for the client.
// This Secret is authoritative; the status of the client only reports it. Pure: converts between the Secret and the
// state.

import {
  type ClientVerifiers,
  readVerifierSecret,
  VERIFIER_SECRET_TYPE,
  verifierSecretData,
  verifierSecretName,
} from '../../admission/client-secrets/client-verifier.ts';
import { fieldsOf } from '../../admission/kinds/manifest.ts';
import { PART_LABEL } from '../../admission/references/secret-parts.ts';
import type { NewObject } from '../../kubernetes/api/kubernetes-api.ts';
import type { RotationRequests } from '../reconciling/rotation-requests.ts';

export const CLASS_LABEL = 'grantry.dev/class';
export const CLIENT_NAMESPACE_LABEL = 'grantry.dev/client-namespace';
export const CLIENT_LABEL = 'grantry.dev/client';
const ROTATED_AT = 'grantry.dev/rotated-at';
const BEGUN_AT = 'grantry.dev/rotation-begun-at';
const HANDLED_ROTATE_AT = 'grantry.dev/handled-rotate-requested-at';
const HANDLED_ROTATE_NOW = 'grantry.dev/handled-rotate-now';
const SECRET_NAMES = 'grantry.dev/secret-names';
/** Bounds the reads of a reconcile: each name that the client does not give any more is one. */
const SECRET_NAMES_MAX = 8;

/** The state of one client's credentials. Times are epoch milliseconds. */
export interface CredentialState extends ClientVerifiers {
  /**
   * When the current secret was published, that is, written into the owner's Secret; or first observed there, in a
   * Secret that is adopted or that the owner provides.
   */
  readonly rotatedAt: number;
  /**
   * Since when a rotation is pending: the newest verifier is that of a secret which is not published yet. Undefined when
   * none is.
   */
  readonly begunAt: number | undefined;
  /** The rotation requests that have been handled. */
  readonly handled: RotationRequests;
}

/**
 * The state that a verifier Secret holds, and the uid of its client.
 * @returns undefined when the Secret is not a verifier Secret or its verifiers cannot be read
 */
export function readCredentialState(secret: unknown): (CredentialState & { readonly uid: string }) | undefined {
  const clientVerifiers = readVerifierSecret(secret);
  if (clientVerifiers === undefined) return undefined;
  const annotations = fieldsOf(fieldsOf(fieldsOf(secret).metadata).annotations);
  const text = (name: string) => {
    const value = annotations[name];
    return typeof value === 'string' ? value : undefined;
  };
  const begunAt = text(BEGUN_AT);
  return {
    ...clientVerifiers,
    // A secret without a readable time is treated as old, so that a rotation by interval is due at once.
    rotatedAt: Date.parse(text(ROTATED_AT) ?? '') || 0,
    begunAt: begunAt ? Date.parse(begunAt) || 0 : undefined,
    handled: { rotateAt: text(HANDLED_ROTATE_AT), rotateNow: text(HANDLED_ROTATE_NOW) },
  };
}

/**
 * The names, newest first, under which the controller wrote the client's Secret and has not removed it. They stay when
 * the verifiers are gone or unreadable.
 */
export function readSecretNames(secret: unknown): readonly string[] {
  const { type, metadata } = fieldsOf(secret);
  const names = fieldsOf(fieldsOf(metadata).annotations)[SECRET_NAMES];
  if (type !== VERIFIER_SECRET_TYPE || typeof names !== 'string' || names === '') return [];
  return names.split(',').slice(0, SECRET_NAMES_MAX);
}

/** The names with one more, which is the newest; of too many the oldest is left out. */
export function withSecretName(names: readonly string[], name: string): readonly string[] {
  return [name, ...names.filter((other) => other !== name)].slice(0, SECRET_NAMES_MAX);
}

/** The client that the credentials are for. */
export interface CredentialClient {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** The verifier Secret for a state. @param secretNames of the result of `readSecretNames` */
export function verifierSecret(
  client: CredentialClient,
  state: CredentialState,
  install: { readonly releaseNamespace: string; readonly className: string },
  secretNames: readonly string[] = [],
): NewObject {
  const { rotateAt, rotateNow } = state.handled;
  return {
    metadata: {
      name: verifierSecretName(client.uid),
      namespace: install.releaseNamespace,
      labels: {
        [PART_LABEL]: 'verifier',
        [CLASS_LABEL]: install.className,
        [CLIENT_LABEL]: client.name,
        [CLIENT_NAMESPACE_LABEL]: client.namespace,
      },
      annotations: {
        [ROTATED_AT]: new Date(state.rotatedAt).toISOString(),
        ...(rotateAt !== undefined && { [HANDLED_ROTATE_AT]: rotateAt }),
        ...(rotateNow !== undefined && { [HANDLED_ROTATE_NOW]: rotateNow }),
        // Empty too: an annotation that a POST created, such as that of a restore, is not removed by an apply that omits it.
        [BEGUN_AT]: state.begunAt === undefined ? '' : new Date(state.begunAt).toISOString(),
        [SECRET_NAMES]: secretNames.join(','),
      },
    },
    type: VERIFIER_SECRET_TYPE,
    data: verifierSecretData(state),
  };
}
