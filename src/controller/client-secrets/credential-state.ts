// What is kept about one client's credentials, in its verifier Secret in the release namespace: the verifiers that replicas
// accept (admission/client-secrets/client-verifier.ts) and, in annotations, how far their rotation is. This is the truth; status only tells
// of it. Pure: both ways between the Secret and what planning needs.

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
const HANDED_OUT = 'grantry.dev/handed-out-revision';
const HANDLED_ROTATE_AT = 'grantry.dev/handled-rotate-requested-at';
const HANDLED_ROTATE_NOW = 'grantry.dev/handled-rotate-now';
const WRITTEN_FIELDS = 'grantry.dev/written-fields';

/** The state of one client's credentials. Times are epoch milliseconds. */
export interface CredentialState extends ClientVerifiers {
  /** When the present secret came to its owner. */
  readonly rotatedAt: number;
  /** The highest number of a secret that is known to have come to its owner; 0: nothing is known of that. */
  readonly handedOut: number;
  /** The requests that have been seen to. */
  readonly handled: RotationRequests;
  /** The keys, labels and annotations that were last written into the owner's Secret (client-secret-object.ts). */
  readonly writtenFields: string | undefined;
}

/** The state a verifier Secret holds; undefined when it is none or its verifiers cannot be read. */
export function readCredentialState(secret: unknown): (CredentialState & { readonly uid: string }) | undefined {
  const told = readVerifierSecret(secret);
  if (told === undefined) return undefined;
  const annotations = fieldsOf(fieldsOf(fieldsOf(secret).metadata).annotations);
  const text = (name: string) => {
    const value = annotations[name];
    return typeof value === 'string' ? value : undefined;
  };
  const rotatedAt = Date.parse(text(ROTATED_AT) ?? '');
  return {
    ...told,
    rotatedAt: Number.isNaN(rotatedAt) ? 0 : rotatedAt,
    handedOut: Number(text(HANDED_OUT)) || 0,
    handled: { rotateAt: text(HANDLED_ROTATE_AT), rotateNow: text(HANDLED_ROTATE_NOW) },
    writtenFields: text(WRITTEN_FIELDS),
  };
}

/** Whose credentials they are. */
export interface CredentialOwner {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** The verifier Secret for a state. */
export function verifierSecret(
  owner: CredentialOwner,
  state: CredentialState,
  install: { readonly releaseNamespace: string; readonly className: string },
): NewObject {
  const { rotateAt, rotateNow } = state.handled;
  return {
    metadata: {
      name: verifierSecretName(owner.uid),
      namespace: install.releaseNamespace,
      labels: {
        [PART_LABEL]: 'verifier',
        [CLASS_LABEL]: install.className,
        [CLIENT_LABEL]: owner.name,
        [CLIENT_NAMESPACE_LABEL]: owner.namespace,
      },
      annotations: {
        [ROTATED_AT]: new Date(state.rotatedAt).toISOString(),
        ...(state.handedOut > 0 && { [HANDED_OUT]: String(state.handedOut) }),
        ...(rotateAt !== undefined && { [HANDLED_ROTATE_AT]: rotateAt }),
        ...(rotateNow !== undefined && { [HANDLED_ROTATE_NOW]: rotateNow }),
        ...(state.writtenFields !== undefined && { [WRITTEN_FIELDS]: state.writtenFields }),
      },
    },
    type: VERIFIER_SECRET_TYPE,
    data: verifierSecretData(state),
  };
}
