// What an owner asks for by annotation: a new secret with overlap, or a new secret at once.

import { createHash } from 'node:crypto';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';

/** What an owner asked for by annotation: any new string is a new request. */
export interface RotationRequests {
  readonly rotateAt: string | undefined;
  readonly rotateNow: string | undefined;
}

const ROTATE_AT = 'grantry.dev/rotate-requested-at';
const ROTATE_NOW = 'grantry.dev/rotate-now';
/** What status can hold. */
const LONGEST = 256;

/** The requests as they stand on an object. A text too long to be echoed is known by its digest. */
export function rotationRequests({ metadata: { annotations = {} } }: KubernetesObject): RotationRequests {
  return { rotateAt: bounded(annotations[ROTATE_AT]), rotateNow: bounded(annotations[ROTATE_NOW]) };
}

function bounded(text: string | undefined): string | undefined {
  if (text === undefined || [...text].length <= LONGEST) return text;
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
