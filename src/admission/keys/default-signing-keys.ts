// The SigningKeys that an install has without a manifest: one for access tokens, and one of RS256 for ID tokens. The
// controller creates them where they are missing and never changes them; `grantry dev` keeps their keys in files.

import type { SigningAlgorithm } from '../../oauth/values/signature.ts';
import { fieldsOf, type SourceObject } from '../kinds/manifest.ts';

/**
 * The SigningKey for ID tokens of RS256, which every OpenID Connect client understands (Core §15.1). It signs nothing
 * that a key of another SigningKey may sign.
 */
export const RS256_SIGNING_KEY = 'default-rs256';

export interface DefaultSigningKey {
  readonly name: string;
  readonly spec: { readonly algorithm: SigningAlgorithm; readonly rsaModulusBits?: number };
  /** Whether these SigningKeys, all of the release namespace, lack it. A suspended one is not missing. */
  readonly isMissing: (objects: readonly SourceObject[]) => boolean;
}

/** In the order in which their keys are preferred. */
export const DEFAULT_SIGNING_KEYS: readonly DefaultSigningKey[] = [
  {
    name: 'default',
    spec: { algorithm: 'ES256' },
    isMissing: (objects) => objects.every(({ name }) => name === RS256_SIGNING_KEY),
  },
  {
    name: RS256_SIGNING_KEY,
    spec: { algorithm: 'RS256', rsaModulusBits: 2048 },
    isMissing: (objects) => !objects.some((object) => object.name === RS256_SIGNING_KEY || isRs256(object)),
  },
];

/** Whether a SigningKey is of RS256. */
export function isRs256({ manifest }: SourceObject): boolean {
  return fieldsOf(fieldsOf(manifest).spec).algorithm === 'RS256';
}
