// tls_client_auth: a certificate of a CA that the server trusts, with the one name the client is registered by (RFC 8705
// §2.1). The request itself has a client_id and nothing else.

import type { CertificateFault, CertificateVerifier } from '../client-certificates/certificate-verifier.ts';
import type { CertificateSettings } from '../registry/client.ts';
import type { ClientAuthMethod, Verification } from './method.ts';

export const tlsClientAuth = certificateMethod((verifier, der, settings) =>
  'name' in settings ? verifier.nameFault(der, settings) : 'certificate_name_mismatch',
);

/** Why a certificate is not the client's; undefined where it is. */
type CertificateCheck = (
  verifier: CertificateVerifier,
  der: Uint8Array,
  settings: CertificateSettings,
) => CertificateFault | undefined;

/** A method whose credential is the certificate of the connection. */
export function certificateMethod(check: CertificateCheck): ClientAuthMethod {
  return {
    confidential: true,
    implicit: true,
    usesHeader: false,
    usesSecret: false,
    usesCertificate: true,
    signingAlgorithms: [],
    parameters: [],
    attempt({ parameters, certificate }) {
      const clientId = parameters.get('client_id');
      if (clientId === undefined) return undefined;
      return {
        clientId,
        verify(client, { certificates }): Verification {
          if (certificate === undefined) return { ok: false, reason: 'certificate_missing' };
          const settings = client?.certificate;
          // Neither happens: an unknown client makes no such attempt, and none is admitted where no certificate is verified.
          if (settings === undefined || certificates === undefined)
            return { ok: false, reason: 'certificate_untrusted' };
          const fault = check(certificates, certificate.der, settings);
          return fault === undefined ? { ok: true } : { ok: false, reason: fault };
        },
      };
    },
  };
}
