// TLS as grantry terminates it (RFC 9325, BCP 195): versions, cipher suites, and the request for a client certificate.

import { constants } from 'node:crypto';
import { createSecureContext, type SecureContextOptions, Server, type TlsOptions } from 'node:tls';

/** The certificate chain of a server and its key, both as PEM. */
export interface ServerCertificate {
  readonly certificate: string;
  readonly key: string;
}

/** Options of a TLS server. */
export type TlsSettings = TlsOptions;

/** RFC 9325 §4.2: those of TLS 1.3, and of TLS 1.2 only forward-secret ones with authenticated encryption. */
const SUITES = [
  ...['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
];

/**
 * Options of a server that asks for a client certificate and accepts any, or none: the certificate is verified in each
 * request. There is no `ca`: a handshake that names authorities makes some clients keep a self-signed certificate back.
 */
export function mutualTlsSettings(own: ServerCertificate): TlsSettings {
  return { ...contextOptions(own), requestCert: true, rejectUnauthorized: false };
}

/**
 * Replaces the certificate of a listening server, for connections from now on.
 * @throws Error when the two cannot be used, and the server keeps what it has
 */
export function replaceCertificate(server: unknown, own: ServerCertificate): void {
  if (!(server instanceof Server)) throw new Error('not a TLS server');
  server.setSecureContext(contextOptions(own));
}

/** @throws Error when certificate and key cannot be used together */
export function requireUsable(own: ServerCertificate): void {
  createSecureContext(contextOptions(own));
}

function contextOptions({ certificate, key }: ServerCertificate): SecureContextOptions {
  return {
    cert: certificate,
    key,
    minVersion: 'TLSv1.2',
    ciphers: SUITES.join(':'),
    honorCipherOrder: true,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  };
}
