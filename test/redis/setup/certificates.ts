// Certificates for Redis servers of tests, made by an authority of their own.

import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RedisServerOptions } from './servers.ts';

/** As PEM. The certificate names 127.0.0.1. */
export interface Certificates {
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

/** How servers speak TLS, to each other too. */
export type Tls = Required<Pick<RedisServerOptions, 'settings' | 'client'>>;

export const NO_TLS: Tls = { settings: {}, client: {} };

/** Makes an authority and a certificate that it signed, as files of a folder too. */
export function makeCertificates(folder: string): Certificates {
  const openssl = (...words: readonly string[]) => execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=test authority', '-days', '2');
  openssl('req', ...key, '-keyout', 'redis.key', '-out', 'redis.csr', '-subj', '/CN=redis');
  writeFileSync(join(folder, 'names'), 'subjectAltName=IP:127.0.0.1\n');
  openssl(
    ...['x509', '-req', '-in', 'redis.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial'],
    ...['-out', 'redis.crt', '-days', '2', '-extfile', 'names'],
  );
  const read = (name: string) => readFileSync(join(folder, name), 'utf8');
  return { ca: read('ca.crt'), certificate: read('redis.crt'), key: read('redis.key') };
}

/** Options of a server that speaks TLS alone, also to other servers, and lets in who has our certificate. */
export function tlsOf(folder: string, { ca, certificate: cert, key }: Certificates): Tls {
  return {
    settings: {
      'tls-cert-file': join(folder, 'redis.crt'),
      'tls-key-file': join(folder, 'redis.key'),
      'tls-ca-cert-file': join(folder, 'ca.crt'),
      'tls-auth-clients': 'yes',
      'tls-replication': 'yes',
    },
    client: { tls: { ca, cert, key } },
  };
}
