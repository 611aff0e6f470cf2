// An OpenID provider whose every answer a test decides: metadata, ID token, userinfo, and faults of the wire.

import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { text } from 'node:stream/consumers';
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose';
import type { MadeCertificate } from '../../client-certificates.ts';
import { freePort } from '../../free-port.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export class ScriptedProvider {
  readonly issuer: string;
  /** Members of the metadata that differ; null removes one. */
  metadata: Record<string, unknown> = {};
  /** Claims of the ID token beside those that are due; null removes one. */
  claims: Record<string, unknown> = {};
  /** The answer of userinfo. */
  userinfo: Record<string, unknown> = {};
  /** Answers in place of the provider's own, by path. */
  readonly answers = new Map<string, Answer>();
  /** How the ID token is signed; `other key` by one that is not published, and calls itself as the published one. */
  algorithm: 'ES256' | 'HS256' | 'none' | 'other key' = 'ES256';
  /** The forms that the token endpoint got, and what it was authorized by. */
  readonly redeemed: { readonly form: URLSearchParams; readonly authorization: string | undefined }[] = [];
  /** How often each path was asked. */
  readonly asked = new Map<string, number>();
  /** Its access tokens. */
  accessToken = 'at';
  /** The ID tokens that it has sent. */
  readonly idTokens: string[] = [];
  /** The nonce of the request that is answered. */
  nonce = '';
  readonly #server: Server;
  readonly #keys = generateKeyPair('ES256');
  readonly #otherKeys = generateKeyPair('ES256');

  private constructor(issuer: string, server: Server) {
    this.issuer = issuer;
    this.#server = server;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      void this.#answer(request, response).catch((error) => response.destroy(error));
    });
  }

  static async start(certificate?: MadeCertificate): Promise<ScriptedProvider> {
    const port = await freePort();
    const server = certificate
      ? createHttpsServer({ cert: certificate.certificate, key: certificate.key })
      : createHttpServer();
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return new ScriptedProvider(certificate ? `https://localhost:${port}` : `http://127.0.0.1:${port}`, server);
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? '', this.issuer).pathname;
    this.asked.set(path, (this.asked.get(path) ?? 0) + 1);
    const scripted = this.answers.get(path);
    if (scripted !== undefined) return scripted(request, response);
    if (path === '/.well-known/openid-configuration') return json(response, this.#metadata());
    if (path === '/keys') return json(response, { keys: [await this.#publicKey()] });
    if (path === '/userinfo') return json(response, this.userinfo);
    if (path !== '/token') return json(response, {}, 404);
    const form = new URLSearchParams(await text(request));
    this.redeemed.push({ form, authorization: request.headers.authorization });
    const idToken = await this.idToken();
    this.idTokens.push(idToken);
    const answer = { access_token: this.accessToken, token_type: 'Bearer', expires_in: 60, id_token: idToken };
    return json(response, answer);
  }

  #metadata(): Record<string, unknown> {
    return withChanges(
      {
        issuer: this.issuer,
        authorization_endpoint: `${this.issuer}/authorize`,
        token_endpoint: `${this.issuer}/token`,
        userinfo_endpoint: `${this.issuer}/userinfo`,
        jwks_uri: `${this.issuer}/keys`,
        id_token_signing_alg_values_supported: ['ES256', 'HS256'],
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
      },
      this.metadata,
    );
  }

  async #publicKey(): Promise<Record<string, unknown>> {
    const { publicKey } = await this.#keys;
    return { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' };
  }

  async idToken(): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    const due = { iss: this.issuer, aud: 'grantry', sub: 'ada-1', iat: now, exp: now + 60, nonce: this.nonce };
    const token = new SignJWT(withChanges(due, this.claims));
    if (this.algorithm === 'HS256') {
      return await token
        .setProtectedHeader({ alg: 'HS256' })
        .sign(new TextEncoder().encode('the secret of grantry!!!!!!!!!!!'));
    }
    if (this.algorithm === 'none') {
      return new UnsecuredJWT(withChanges(due, this.claims)).encode();
    }
    const { privateKey } = await (this.algorithm === 'other key' ? this.#otherKeys : this.#keys);
    return await token.setProtectedHeader({ alg: 'ES256', kid: 'k1' }).sign(privateKey);
  }
}

export function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function withChanges(base: Record<string, unknown>, changes: Record<string, unknown>): Record<string, unknown> {
  const entries = [...Object.entries(base), ...Object.entries(changes)];
  return Object.fromEntries([...new Map(entries)].filter(([, value]) => value !== null));
}
