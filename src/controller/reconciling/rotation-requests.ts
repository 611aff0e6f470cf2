// The rotations that an owner requests by annotation: a new secret with overlap, or a new secret at once.

import { createHash } from 'node:crypto';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';

/** The values of the annotations: any new string is a new request. */
export interface RotationRequests {
  readonly rotateAt: string | undefined;
  readonly rotateNow: string | undefined;
}

const ROTATE_AT = 'grantry.dev/rotate-requested-at';
const ROTATE_NOW = 'grantry.dev/rotate-now';
/** The longest value that status can hold, in characters. */
const LONGEST = 256;

/** The requests on an object. A value too long for status is replaced by its digest. */
export function rotationRequests({ metadata: { annotations = {} } }: KubernetesObject): RotationRequests {
  return { rotateAt: bounded(annotations[ROTATE_AT]), rotateNow: bounded(annotations[ROTATE_NOW]) };
}

/** The annotations of an object that request rotations, no value longer than status can hold. */
export function requestAnnotations(object: KubernetesObject): Readonly<Record<string, string>> {
  const { rotateAt, rotateNow } = rotationRequests(object);
  return {
    ...(rotateAt !== undefined && { [ROTATE_AT]: rotateAt }),
    ...(rotateNow !== undefined && { [ROTATE_NOW]: rotateNow }),
  };
}

function bounded(text: string | undefined): string | undefined {
  if (text === undefined || [...text].length <= LONGEST) return text;
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
