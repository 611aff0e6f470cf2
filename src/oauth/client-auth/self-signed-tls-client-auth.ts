// self_signed_tls_client_auth: a certificate that the client has registered, by itself or by its key (RFC 8705 §2.2). TLS
// proves that the caller holds the key.

import { certificateMethod } from './tls-client-auth.ts';

export const selfSignedTlsClientAuth = certificateMethod((verifier, der, settings) =>
  'keys' in settings ? verifier.keyFault(der, settings) : 'certificate_key_mismatch',
);
