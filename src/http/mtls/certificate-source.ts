// Where the certificate of a caller comes from, each server of its own kind: the listener for mutual TLS reads its
// socket and no header; the public one reads the header of a trusted proxy, if one is configured, and nothing else.

import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { OAuthError } from '../../oauth/ports/error.ts';
import type { TrustedProxies } from '../server/client-address.ts';
import { CertificateHeaderError, certificateInHeader } from './certificate-header.ts';

/** The DER of the certificate that the caller of a request has proven to hold; undefined without one. */
export type CertificateSource = (request: IncomingMessage) => Uint8Array | undefined;

/** Of a server that no certificate reaches. */
export const NO_CERTIFICATES: CertificateSource = () => undefined;

/** TLS has verified that the peer holds the key of its certificate, and nothing else about it. */
export const socketCertificates: CertificateSource = ({ socket }) =>
  socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.raw : undefined;

export interface HeaderCertificatesOptions {
  /** In lower case. */
  readonly header: string;
  /** The peers whose header is believed; every other peer's is ignored. */
  readonly proxies: TrustedProxies;
}

/** Certificates in a header. Throws OAuthError invalid_request for one that is there twice or broken. */
export function headerCertificates({ header, proxies }: HeaderCertificatesOptions): CertificateSource {
  return ({ socket, headers, rawHeaders }) => {
    // Most requests have none, and no other spelling of the name is read: `X_SSL_Cert` is another header.
    if (headers[header] === undefined || !proxies.trusts(socket.remoteAddress)) return undefined;
    const [value = '', ...more] = rawHeaders.filter(
      (_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === header,
    );
    if (more.length > 0) throw refused('certificate_header_repeated');
    try {
      return certificateInHeader(header, value);
    } catch (error) {
      throw error instanceof CertificateHeaderError ? refused('certificate_header_malformed') : error;
    }
  };
}

function refused(reason: string): OAuthError {
  return new OAuthError('invalid_request', 'The request is malformed.', { reason });
}
