// An OpenID provider for servers under test: `startProvider` runs it beside the load, and its CPU is counted for no server. Its codes
// are made in its place: a code is the person and the nonce, so no page of it is needed.

import { generateKeyPairSync } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { signatureOf } from '../../src/oauth/values/signature.ts';
import { PERSON, PROVIDER } from '../load/load-client.ts';
import { LOAD_CORE, type PinnedServer, startServer } from '../load/pinned-process.ts';

/** What a code stands for. */
interface CodeContent {
  readonly username: string;
  readonly nonce: string;
}

/** Starts one on the core of the load; its issuer is its origin. */
export function startProvider(): Promise<PinnedServer> {
  return startServer({
    args: (port) => [import.meta.filename, String(port)],
    probe: '/keys',
    cores: LOAD_CORE,
  });
}

/** The code by which this person comes back. */
export function codeFor(content: CodeContent): string {
  return encoded(content);
}

function serve(port: number): void {
  const issuer = `http://127.0.0.1:${port}`;
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const kid = 'bench';
  const answers: Readonly<Record<string, (request: IncomingMessage) => Promise<object> | object>> = {
    '/.well-known/openid-configuration': () => ({
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
    }),
    '/keys': () => ({
      keys: [Object.assign(publicKey.export({ format: 'jwk' }), { kid, alg: 'ES256', use: 'sig' })],
    }),
    '/token': async (request) => {
      const code = new URLSearchParams(await text(request)).get('code') ?? '';
      const { username, nonce } = JSON.parse(Buffer.from(code, 'base64url').toString()) as CodeContent;
      const iat = Math.floor(Date.now() / 1000);
      const input = `${encoded({ alg: 'ES256', kid })}.${encoded({
        iss: issuer,
        aud: PROVIDER.clientId,
        sub: username,
        nonce,
        iat,
        exp: iat + 60,
        preferred_username: username,
        name: PERSON.displayName,
        email: PERSON.email,
        email_verified: true,
        groups: ['developers', 'operators'],
      })}`;
      const id_token = `${input}.${signatureOf(input, 'ES256', privateKey)}`;
      return { access_token: 'unused', token_type: 'Bearer', expires_in: 60, id_token };
    },
  };
  createServer(async (request: IncomingMessage, response: ServerResponse) => {
    const answer = await answers[request.url ?? '']?.(request);
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? {}));
  }).listen(port, '127.0.0.1');
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

if (import.meta.main) serve(Number(process.argv[2]));
