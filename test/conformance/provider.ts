// The set-up of the mirrors of OpenID Connect conformance plans: a server over HTTP behind an https issuer, clients that a
// policy admits by their manifests, a browser that signs in on the real pages, and the checks that each plan makes of every
// sign-in. Relying parties know the server by its discovery document alone.

import { createHash, randomBytes } from 'node:crypto';
import {
  createLocalJWKSet,
  type JSONWebKeySet,
  type JWTHeaderParameters,
  type JWTPayload,
  type JWTVerifyResult,
  jwtVerify,
} from 'jose';
import { expect } from 'vitest';
import { hashPassword, LocalUsers } from '../../src/login/local/local-users.ts';
import type { Client } from '../../src/oauth/registry/client.ts';
import { secretVerifier } from '../../src/oauth/registry/client-secret.ts';
import { generateSigningKeyPem, importSigningKey } from '../../src/oauth/registry/keys.ts';
import { admitAll, documentsOf } from '../admission/world.ts';
import { answerIn } from '../clients/person.ts';
import { basic, type Grantry, type GrantryOptions, startGrantry, TestClock } from '../grantry.ts';
import { answerOf, type Page, TestBrowser } from '../http/sign-in/sign-in-browser.ts';

const SECRET = 'the-secret-of-the-conformance-suite';
/** As the plans demand of every endpoint: https. */
export const ISSUER = 'https://id.example';
export const CALLBACK = 'https://suite.example/callback';
export const GOODBYE = 'https://suite.example/post_logout_redirect';
const ALICE = { username: 'alice', displayName: 'Alice Ang', email: 'alice@example.com', groups: ['team-a'] };
const PASSWORD = 'a password of alice';
/** How the person answers each page. */
export const ANSWERS = { username: ALICE.username, password: PASSWORD, decision: 'allow' } as const;
const owners = new LocalUsers({
  clock: new TestClock(),
  users: [{ ...ALICE, passwordHash: await hashPassword(PASSWORD) }],
});

/** The algorithms of the keys: ES256 signs access tokens, RS256 the ID tokens of clients that choose none. */
const KEYS = await Promise.all(
  (['ES256', 'RS256'] as const).map(async (algorithm) =>
    importSigningKey(await generateSigningKeyPem(algorithm, 2048), algorithm, 'Active'),
  ),
);

const POLICY = `
apiVersion: grantry.dev/v1alpha1
kind: ClientPolicy
metadata: { name: suite }
spec:
  namespaceSelector: {}
  allow: { scopes: ['**'], authMethods: ['**'], logoutHosts: ['**'] }
`;

/** A client of the suite. @param fields lines of its spec beside those that each has */
export function clientManifest(name: string, method = 'client_secret_basic', fields = ''): string {
  return `---
apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: { name: ${name}, namespace: suite, uid: uid-of-${name} }
spec:
  auth: { method: ${method} }
  grantTypes: [authorization_code, refresh_token]
  redirectUris: ['${CALLBACK}']
  postLogoutRedirectUris: ['${GOODBYE}']
  scopes: [openid, profile, email, offline_access]
${fields}`;
}

/** The members of the discovery document that the mirrors read. */
export interface Metadata extends Readonly<Record<string, unknown>> {
  readonly issuer: string;
  readonly authorization_endpoint: string;
  readonly token_endpoint: string;
  readonly userinfo_endpoint: string;
  readonly end_session_endpoint: string;
  readonly jwks_uri: string;
}

/** A JSON answer. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
}

/** What an endpoint answers to a form. */
type Form = Readonly<Record<string, string>>;

/** Changes of an authorization request: undefined leaves the parameter out. */
export type Changes = Readonly<Record<string, string | undefined>>;

/** A sign-in that passed the checks. */
export interface SignIn {
  readonly idToken: string;
  readonly claims: JWTPayload;
  readonly header: JWTHeaderParameters;
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  readonly code: string;
}

/** The verdicts on clients of the suite, by the policy and by admission. */
export async function admit(manifests: string, issuer: string) {
  const verifiersOf = (uid: string) => [secretVerifier(uid, SECRET)];
  return (await admitAll(documentsOf(POLICY + manifests), { issuer, verifiersOf })).clients;
}

async function admitted(manifests: string, issuer: string): Promise<readonly Client[]> {
  return (await admit(manifests, issuer)).map(({ client, conditions }) => {
    if (client === undefined) throw new Error(JSON.stringify(conditions));
    return client;
  });
}

/** A provider of its own, which ends with the file. @param manifests of {@link clientManifest} */
export async function startProvider(manifests: string, options: Partial<GrantryOptions> = {}): Promise<Provider> {
  const grantry = await startGrantry({ clients: [], owners, keys: KEYS, clock: new TestClock(), ...options });
  grantry.setClients(await admitted(manifests, grantry.issuer));
  const response = await fetch(grantry.url('/.well-known/openid-configuration'));
  return new Provider(grantry, (await response.json()) as Metadata);
}

/** The server as its discovery document describes it. */
export class Provider {
  readonly grantry: Grantry;
  readonly metadata: Metadata;

  constructor(grantry: Grantry, metadata: Metadata) {
    this.grantry = grantry;
    this.metadata = metadata;
  }

  /** A browser that has never been here. */
  browser(): TestBrowser {
    return new TestBrowser(`http://127.0.0.1:${this.grantry.port}`, this.metadata.issuer);
  }

  /** The client of that name. */
  relyingParty(name: string): RelyingParty {
    return new RelyingParty(this, this.grantry.client(`suite.${name}`));
  }

  /** Calls an endpoint of the document, where it really is. */
  call(endpoint: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.grantry.port}${pathOf(endpoint)}`, { redirect: 'manual', ...init });
  }

  async json(endpoint: string, init: RequestInit = {}): Promise<Answer> {
    const response = await this.call(endpoint, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) };
  }

  /** Userinfo by GET with the token in the header. */
  userinfo(accessToken: string): Promise<Answer> {
    return this.json(this.metadata.userinfo_endpoint, { headers: { authorization: `Bearer ${accessToken}` } });
  }

  /** A JWT of this issuer, verified by the published keys. */
  async verify(jwt: string, { audience, typ }: { readonly audience: string; readonly typ: string }) {
    const { body } = await this.json(this.metadata.jwks_uri);
    const currentDate = new Date(this.grantry.clock.now());
    const keys = createLocalJWKSet(body as unknown as JSONWebKeySet);
    return await jwtVerify(jwt, keys, { issuer: this.metadata.issuer, audience, typ, currentDate });
  }

  /** The page of /logout, as the browser is sent there. */
  logout(browser: TestBrowser, query: Form = {}): Promise<Page> {
    return browser.get(`${pathOf(this.metadata.end_session_endpoint)}?${new URLSearchParams(query)}`);
  }
}

/** A client of the suite: sends its browser to the server, and redeems what comes back. */
export class RelyingParty {
  readonly client: Client;
  readonly #provider: Provider;

  constructor(provider: Provider, client: Client) {
    this.#provider = provider;
    this.client = client;
  }

  /** A request with PKCE, state and nonce, changed so. */
  request(changes: Changes = {}) {
    const verifier = randomBytes(32).toString('base64url');
    const parameters: Changes = {
      response_type: 'code',
      client_id: this.client.clientId,
      redirect_uri: CALLBACK,
      scope: 'openid',
      state: randomBytes(16).toString('base64url'),
      nonce: randomBytes(16).toString('base64url'),
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      ...changes,
    };
    const url = new URL(this.#provider.metadata.authorization_endpoint);
    for (const [name, value] of Object.entries(parameters)) if (value !== undefined) url.searchParams.set(name, value);
    return { url, verifier, state: parameters.state, nonce: parameters.nonce };
  }

  /** The first answer to a request, and no step further. */
  ask(browser: TestBrowser, changes: Changes = {}): Promise<Page> {
    return browser.get(pathOf(this.request(changes).url.href));
  }

  /** The answer that the client has at once; fails where a page is shown or the state is another one. */
  async answer(browser: TestBrowser, changes: Changes = {}): Promise<Readonly<Record<string, string>>> {
    const { url, state } = this.request(changes);
    const page = await browser.get(pathOf(url.href));
    expect(page.location?.startsWith(`${CALLBACK}?`)).toBe(true);
    const answer = answerOf(page);
    expect([answer.state, answer.iss]).toEqual([state, this.#provider.metadata.issuer]);
    return answer;
  }

  /** Signs in, redeems the code, and makes the checks that every module makes. */
  async signIn(browser: TestBrowser, changes: Changes = {}): Promise<SignIn> {
    const request = this.request(changes);
    return await this.finish(request, await answerIn(browser, request.url, ANSWERS));
  }

  /** The rest of a sign-in. @param callback where the browser came back */
  async finish({ verifier, state, nonce }: ReturnType<RelyingParty['request']>, callback: URL): Promise<SignIn> {
    const { code = '', ...rest } = Object.fromEntries(callback.searchParams);
    expect(rest).toEqual({ state, iss: this.#provider.metadata.issuer });
    const { status, body, headers } = await this.redeem(code, verifier);
    expect([status, body.token_type, headers.get('cache-control')]).toEqual([200, 'Bearer', 'no-store']);
    expect(body.expires_in).toBeGreaterThan(0);
    const accessToken = String(body.access_token);
    const { payload, protectedHeader } = await this.verifyIdToken(body.id_token, accessToken);
    expect(payload.nonce).toBe(nonce);
    const userinfo = await this.#provider.userinfo(accessToken);
    expect([userinfo.status, userinfo.body.sub]).toEqual([200, payload.sub]);
    return {
      idToken: String(body.id_token),
      claims: payload,
      header: protectedHeader,
      accessToken,
      refreshToken: body.refresh_token as string | undefined,
      code,
    };
  }

  /** The checks of OpenID Connect Core §3.1.3.7 and §3.1.3.8. */
  async verifyIdToken(idToken: unknown, accessToken: string): Promise<JWTVerifyResult> {
    const audience = this.client.clientId;
    const verified = await this.#provider.verify(String(idToken), { audience, typ: 'JWT' });
    const { payload, protectedHeader } = verified;
    const now = Math.floor(this.#provider.grantry.clock.now() / 1000);
    expect(protectedHeader.kid).toEqual(expect.any(String));
    expect(payload).toMatchObject({ aud: audience, iat: now, sub: expect.stringMatching(/^[\x21-\x7e]{1,255}$/) });
    expect(payload.exp).toBeGreaterThan(now);
    expect(payload.auth_time).toBeLessThanOrEqual(now);
    const half = createHash('sha256').update(accessToken).digest().subarray(0, 16);
    expect(payload.at_hash).toBe(half.toString('base64url'));
    return verified;
  }

  redeem(code: string, verifier: string): Promise<Answer> {
    const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: verifier };
    return this.post(form);
  }

  refresh(refreshToken: string): Promise<Answer> {
    return this.post({ grant_type: 'refresh_token', refresh_token: refreshToken });
  }

  /** A form to the token endpoint, by the client's own way to authenticate. */
  post(form: Form): Promise<Answer> {
    const { clientId, authMethod } = this.client;
    const isBasic = authMethod === 'client_secret_basic';
    const body = new URLSearchParams({ ...form, ...(isBasic ? {} : { client_id: clientId, client_secret: SECRET }) });
    const headers: Record<string, string> = isBasic ? { authorization: basic(clientId, SECRET) } : {};
    return this.#provider.json(this.#provider.metadata.token_endpoint, { method: 'POST', body, headers });
  }
}

/** Whether the page asks for a password. */
export function isLoginPage({ status, body }: Page): boolean {
  return status === 200 && body.includes('name="password"');
}

/** Path and query of an address below the issuer. */
export function pathOf(address: string): string {
  const { pathname, search } = new URL(address);
  return `${pathname}${search}`;
}
