// What a manifest says of the certificates of its client (RFC 8705 §2): exactly one name for `tls_client_auth`, a JWK Set
// for `self_signed_tls_client_auth`.

import { certificateNameFault } from '../../oauth/client-certificates/certificate-name.ts';
import {
  type RegisteredKey,
  type RegisteredKeyFault,
  readRegisteredKey,
} from '../../oauth/client-certificates/registered-keys.ts';
import type { CertificateSettings } from '../../oauth/registry/client.ts';
import type { Fault, FaultReason } from '../kinds/conditions.ts';
import type { FieldPath } from '../kinds/field-path.ts';
import type { CommonSpec } from '../kinds/oauth-client.ts';
import { quoted } from '../kinds/quoted.ts';
import { KEY_PROBLEMS } from './key-problems.ts';

type Auth = Pick<CommonSpec, 'auth'>;

const BLOCK: FieldPath = ['spec', 'auth', 'tls'];
const NAMES = ['subjectDn', 'sanDns', 'sanUri', 'sanIp', 'sanEmail'] as const;

/** Every rule about `spec.auth.tls` that the manifest of a `tls_client_auth` client breaks. */
export function certificateNameFaults({ auth: { tls = {} } }: Auth): readonly Fault[] {
  if (tls.jwks !== undefined) {
    const message = 'Keys are for self_signed_tls_client_auth; with tls_client_auth a name counts.';
    return [fault('InvalidManifest', ['jwks'], message)];
  }
  const given = namesIn(tls);
  const [only] = given;
  if (only === undefined || given.length > 1) {
    const found = only === undefined ? 'there is none' : `there are ${given.map(({ name }) => name).join(' and ')}`;
    const message = `There must be exactly one of ${NAMES.join(', ')}, and ${found} (RFC 8705 section 2.1.2).`;
    return [fault('InvalidManifest', [], message)];
  }
  const problem = certificateNameFault(only);
  if (problem === undefined) return [];
  const hint =
    only.name === 'subjectDn'
      ? '; openssl x509 -noout -subject -nameopt RFC2253 prints it in this form (RFC 4514)'
      : '';
  return [fault('InvalidManifest', [only.name], `${quoted(only.value)} ${problem}${hint}.`)];
}

/** Every rule about `spec.auth.tls` that the manifest of a `self_signed_tls_client_auth` client breaks. */
export function certificateKeyFaults({ auth: { tls = {} } }: Auth): readonly Fault[] {
  const [name] = namesIn(tls);
  if (name !== undefined) {
    const message =
      'Names apply with tls_client_auth only; self_signed_tls_client_auth verifies a certificate by its key in jwks.';
    return [fault('InvalidManifest', [name.name], message)];
  }
  if (tls.jwks === undefined) {
    return [fault('InvalidJwks', ['jwks'], 'There must be a JWK Set with the keys of its certificates.')];
  }
  const { keys } = tls.jwks;
  if (keys.length === 0) return [fault('InvalidJwks', ['jwks', 'keys'], 'There is no key.')];
  return keys.flatMap((jwk, index) => {
    const read = readRegisteredKey(jwk);
    if (typeof read !== 'string') return [];
    const message = `The key ${PROBLEMS[read]}.`;
    return [fault('InvalidJwks', ['jwks', 'keys', index], message)];
  });
}

/** The certificates of the client by a manifest without faults; undefined for a method without certificates. */
export function certificateSettings({ auth: { method, tls = {} } }: Auth): CertificateSettings | undefined {
  if (method === 'tls_client_auth') return namesIn(tls)[0];
  if (method !== 'self_signed_tls_client_auth') return undefined;
  const read = (tls.jwks?.keys ?? []).map(readRegisteredKey);
  const keys = read.filter((key): key is RegisteredKey => typeof key !== 'string');
  return {
    certificates: keys.flatMap((key) => ('certificate' in key ? key.certificate : [])),
    keys: keys.flatMap((key) => ('key' in key ? key.key : [])),
  };
}

function namesIn(tls: NonNullable<CommonSpec['auth']['tls']>) {
  return NAMES.flatMap((name) => {
    const value = tls[name];
    return value === undefined ? [] : [{ name, value }];
  });
}

const PROBLEMS: Readonly<Record<RegisteredKeyFault, string>> = {
  ...KEY_PROBLEMS,
  certificate_malformed:
    'has an x5c whose first entry is no certificate in base64 of DER; it is not PEM (RFC 7517 section 4.7)',
  certificate_of_another_key: 'has an x5c whose first certificate is one of another key',
};

function fault(reason: FaultReason, path: FieldPath, message: string): Fault {
  return { path: [...BLOCK, ...path], reason, message };
}
