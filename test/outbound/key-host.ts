// A host of key sets on loopback: a TLS server under the names *.keys.test and localhost, with a certificate that openssl made. It answers
// as the test sets and counts.

import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AddressLookup } from '../../src/outbound/name-lookup.ts';

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export interface KeyHost {
  readonly port: number;
  /** PEM. */
  readonly authority: string;
  answer: Answer;
  /** The requests so far. */
  readonly requests: readonly IncomingMessage[];
  /** The most that waited for their answer at once, by host and in all. */
  readonly most: { readonly inAll: number; readonly byHost: ReadonlyMap<string, number> };
  /** How many connections are open now. */
  connections(): Promise<number>;
  /** `https://NAME.keys.test:PORT/PATH`. */
  uri(name?: string, path?: string): string;
  stop(): void;
}

/** Answers every name with loopback. */
export const toLoopback: AddressLookup = async () => [{ address: '127.0.0.1', family: 4 }];

/** Starts one. Stop it. */
export async function startKeyHost(): Promise<KeyHost> {
  const { authority, certificate, key } = makeCertificate();
  const requests: IncomingMessage[] = [];
  const waiting = new Map<string, number>();
  const byHost = new Map<string, number>();
  const most = { inAll: 0, byHost };
  const server = createServer({ cert: certificate, key }, (request, response) => {
    const name = request.headers.host ?? '';
    const ofName = (waiting.get(name) ?? 0) + 1;
    requests.push(request);
    waiting.set(name, ofName);
    byHost.set(name, Math.max(byHost.get(name) ?? 0, ofName));
    const inAll = [...waiting.values()].reduce((sum, count) => sum + count, 0);
    most.inAll = Math.max(most.inAll, inAll);
    response.once('close', () => waiting.set(name, (waiting.get(name) ?? 0) - 1));
    host.answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const host: KeyHost = {
    port,
    authority,
    answer: json({ keys: [] }),
    requests,
    most,
    connections: () =>
      new Promise((resolve, reject) => {
        server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
      }),
    uri: (name = 'a', path = 'jwks.json') => `https://${name}.keys.test:${port}/${path}`,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return host;
}

/** An answer in JSON. */
export function json(content: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(content));
  };
}

/** A JWK of a new key. */
export function publicJwk(kid: string): object {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { ...publicKey.export({ format: 'jwk' }), kid };
}

function makeCertificate(): { readonly authority: string; readonly certificate: string; readonly key: string } {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-key-host-'));
  try {
    const openssl = (...words: readonly string[]) => execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' });
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=key hosts', '-days', '2');
    openssl('req', ...key, '-keyout', 'host.key', '-out', 'host.csr', '-subj', '/CN=key host');
    writeFileSync(join(folder, 'names'), 'subjectAltName=DNS:*.keys.test,DNS:localhost\n');
    openssl(
      ...['x509', '-req', '-in', 'host.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial'],
      ...['-out', 'host.crt', '-days', '2', '-extfile', 'names'],
    );
    const read = (name: string) => readFileSync(join(folder, name), 'utf8');
    return { authority: read('ca.crt'), certificate: read('host.crt'), key: read('host.key') };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
