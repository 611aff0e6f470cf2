// A running grantry with mutual TLS, its authorities and certificates on files, and requests over TLS with and without a
// certificate. Its clock begins now, as the certificates that openssl makes do.

import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { type RequestOptions, request } from 'node:https';
import { join } from 'node:path';
import type { SecureVersion } from 'node:tls';
import { type RegisteredKey, readRegisteredKey } from '../../../src/oauth/client-certificates/registered-keys.ts';
import type { CertificateSettings } from '../../../src/oauth/registry/client.ts';
import type { MtlsSettings } from '../../../src/processes/config/mtls-config.ts';
import { CertificateMaker, type MadeCertificate } from '../../client-certificates.ts';
import { freePort } from '../../free-port.ts';
import { type Grantry, type GrantryOptions, startGrantry, TestClock } from '../../grantry.ts';

export interface JsonAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: what a server answered has any members.
  readonly body: any;
  /** The TLS session, to resume it. */
  readonly session: Buffer | undefined;
  readonly isResumed: boolean;
}

export interface TlsWishes {
  readonly certificate?: MadeCertificate | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly session?: Buffer | undefined;
  readonly version?: SecureVersion;
}

/** The files and authorities of one grantry. */
export class MutualTlsWorld {
  readonly maker = new CertificateMaker();
  readonly authority = this.maker.authority();
  readonly server = this.maker.make({
    subject: '/CN=localhost',
    extensions: ['subjectAltName=DNS:localhost,IP:127.0.0.1'],
  });
  /** The file of authorities that grantry reads. */
  readonly caFile = join(this.maker.folder, 'clients.pem');

  constructor() {
    this.trust(this.authority);
  }

  /** Writes the file of authorities. */
  trust(...authorities: readonly MadeCertificate[]): void {
    writeFileSync(this.caFile, authorities.map(({ certificate }) => certificate).join(''));
  }

  /** Starts grantry with a listener for mutual TLS. */
  async start(
    options: Omit<GrantryOptions, 'mutualTls' | 'clock'>,
    more: Partial<MtlsSettings> = {},
  ): Promise<MutualTlsGrantry> {
    const port = await freePort();
    const { certificateFile, keyFile } = this.server;
    const clock = new TestClock();
    clock.advance(Date.now() - clock.now());
    const mutualTls = {
      url: `https://localhost:${port}`,
      listener: { port, certificateFile, keyFile },
      header: undefined,
      clientCaFile: this.caFile,
      ...more,
    };
    return new MutualTlsGrantry(await startGrantry({ ...options, clock, mutualTls }), port);
  }
}

export class MutualTlsGrantry {
  readonly grantry: Grantry;
  readonly port: number;

  constructor(grantry: Grantry, port: number) {
    this.grantry = grantry;
    this.port = port;
  }

  /** POSTs a form to the listener, on a connection of its own; pairs where a parameter repeats. */
  async post(
    path: string,
    form: Readonly<Record<string, string>> | readonly (readonly [string, string])[],
    wishes: TlsWishes = {},
  ): Promise<JsonAnswer> {
    const pairs = (Array.isArray(form) ? form : Object.entries(form)) as [string, string][];
    const body = new URLSearchParams(pairs).toString();
    return await this.send(
      path,
      { method: 'POST', headers: { 'content-type': FORM, ...wishes.headers } },
      wishes,
      body,
    );
  }

  async get(path: string, wishes: TlsWishes = {}): Promise<JsonAnswer> {
    return await this.send(path, { method: 'GET', headers: wishes.headers ?? {} }, wishes);
  }

  /** The tokens of a client that names itself and nothing more. */
  async tokens(clientId: string, wishes: TlsWishes = {}): Promise<JsonAnswer> {
    return await this.post('/token', { grant_type: 'client_credentials', client_id: clientId }, wishes);
  }

  /** The reason of the latest refused token request. */
  lastReason(): unknown {
    return this.grantry.audits().findLast(({ event }) => event === 'token.refused')?.reason;
  }

  private send(path: string, options: RequestOptions, wishes: TlsWishes, body = ''): Promise<JsonAnswer> {
    const { certificate, session, version } = wishes;
    const own = certificate && { cert: certificate.certificate, key: certificate.key };
    const versions = version && { minVersion: version, maxVersion: version };
    const tls = { ...own, ...versions, session, rejectUnauthorized: false, agent: false };
    return new Promise((resolve, reject) => {
      let ticket: Buffer | undefined;
      const sent = request({ host: '127.0.0.1', port: this.port, path, ...options, ...tls }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const isResumed = (response.socket as import('node:tls').TLSSocket).isSessionReused();
          const isJson = response.headers['content-type']?.startsWith('application/json') && text !== '';
          resolve({
            status: response.statusCode ?? 0,
            body: isJson ? JSON.parse(text) : text,
            session: ticket,
            isResumed,
          });
        });
      });
      sent.on('socket', (socket) => socket.on('session', (made: Buffer) => (ticket = made)));
      sent.on('error', reject);
      sent.end(body);
    });
  }
}

const FORM = 'application/x-www-form-urlencoded';

/** The registration of self-signed certificates by their keys. */
export function byKey(...certificates: readonly MadeCertificate[]): CertificateSettings {
  const keys = certificates.map(({ der }) => {
    const jwk = new X509Certificate(der).publicKey.export({ format: 'jwk' });
    return readRegisteredKey({ ...jwk }) as RegisteredKey & { readonly key: string };
  });
  return { certificates: [], keys: keys.map(({ key }) => key) };
}

/** The claims of a JWT, which is not verified. */
export function claimsOf(token: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;
}
