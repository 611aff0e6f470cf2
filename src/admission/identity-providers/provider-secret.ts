// The Secret of an IdentityProvider: its type, its keys, and the certificates in it. The type is the guard: a manifest
// makes a server send the client secret to an address, so no Secret of another type is ever read for one.

import { X509Certificate } from 'node:crypto';
import type { ProviderCredentials } from '../../oauth/registry/identity-provider.ts';
import type { Fault, ProviderFaultReason } from '../kinds/conditions.ts';
import type { IdentityProviderSpec } from '../kinds/identity-provider.ts';
import { fieldsOf } from '../kinds/manifest.ts';
import { quoted } from '../kinds/quoted.ts';
import { presentKeys, type ReferencedSecret, type References, readSecretValue } from '../references/references.ts';

/** The type of the Secrets that hold what an identity provider knows this install by. */
export const PROVIDER_SECRET_TYPE = 'grantry.dev/identity-provider';

/**
 * The Secret of a name in the namespace of a provider: undefined where there is none, `other_type` where the process sees
 * Secrets of the one type only and knows that there is another, `assumed` where it cannot know (an offline check).
 */
export type ProviderSecret = ReturnType<References['secret']> | 'other_type';

/** What a Secret holds; `assumed` where it was. */
export type SecretReading =
  | { readonly credentials: ProviderCredentials | 'assumed'; readonly faults: readonly [] }
  | { readonly credentials: undefined; readonly faults: readonly Fault<ProviderFaultReason>[] };

const REFERENCE = ['spec', 'clientSecretRef', 'name'];
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** Reads the Secret that a provider names. */
export function readProviderSecret(spec: IdentityProviderSpec, secret: ProviderSecret): SecretReading {
  const name = quoted(spec.clientSecretRef.name);
  if (secret === 'assumed') return { credentials: 'assumed', faults: [] };
  if (secret === undefined) return refused('SecretNotFound', `There is no Secret ${name} in this namespace.`);
  // A process that never reads tenants' Secrets knows nothing of one of another type.
  if (typeof secret === 'string' || fieldsOf(secret).type !== PROVIDER_SECRET_TYPE) {
    return refused('SecretTypeMismatch', `The Secret ${name} is not of type ${PROVIDER_SECRET_TYPE}.`);
  }
  const keys = spec.oidc?.clientAuth === 'none' ? ['client-id'] : ['client-id', 'client-secret'];
  const missing = keys.find((key) => textIn(secret, key) === undefined);
  if (missing !== undefined) {
    const message = `The Secret ${name} has no text of one line under ${quoted(missing)}; ${presentKeys(secret)}.`;
    return refused('SecretKeyMissing', message);
  }
  const [clientId = '', clientSecret] = keys.map((key) => textIn(secret, key));
  const authorities = certificatesIn(secret);
  if (authorities === 'invalid') {
    return refused('InvalidCertificate', `The Secret ${name} has no readable PEM certificates under "ca.crt".`);
  }
  return { credentials: { clientId, clientSecret, authorities }, faults: [] };
}

function refused(reason: ProviderFaultReason, message: string): SecretReading {
  return { credentials: undefined, faults: [{ path: REFERENCE, reason, message }] };
}

/** Without the line break that an editor or `echo` leaves at the end of a file. */
function textIn(secret: ReferencedSecret, key: string): string | undefined {
  const read = readSecretValue(secret, key, true);
  if (read.outcome !== 'found') return undefined;
  const line = read.value.replace(/\r?\n$/, '');
  return line === '' || /\p{Cc}/u.test(line) ? undefined : line;
}

/** The certificates under `ca.crt` as PEM; undefined without that key. */
function certificatesIn(secret: ReferencedSecret): string | 'invalid' | undefined {
  const read = readSecretValue(secret, 'ca.crt', true);
  if (read.outcome === 'missing') return undefined;
  const blocks = read.outcome === 'found' ? (read.value.match(CERTIFICATE) ?? []) : [];
  return blocks.length > 0 && blocks.every(isCertificate) ? blocks.join('\n') : 'invalid';
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem);
    return true;
  } catch {
    return false;
  }
}
