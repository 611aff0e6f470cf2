// What a web client in front of a token server does with a person: it sends them to sign in, and redeems what comes back.

import { s256 } from '../../../src/oauth/values/pkce.ts';
import { answerIn } from '../../clients/person.ts';
import { TestBrowser } from '../../http/sign-in/sign-in-browser.ts';
import type { TokenServerProcess } from './token-servers.ts';

/** What an issuer that is never asked by its name is called. */
const ISSUER = 'https://id.example';
export const CALLBACK = 'https://shop.example/callback';
export const VERIFIER = 'verifier'.repeat(6);

export interface Person {
  readonly username: string;
  readonly password: string;
}

/** A client and its secret. */
export interface Credentials {
  readonly clientId: string;
  readonly secret: string;
}

/** What an authorization request asks for. */
export interface AccessParameters {
  readonly client_id: string;
  readonly scope?: string;
  readonly resource?: readonly string[];
}

interface Answer<Body> {
  readonly status: number;
  readonly body: Body;
}

export type Tokens = Answer<{
  readonly access_token?: string;
  readonly refresh_token?: string;
  readonly error?: string;
}>;

/** Has a person sign in and allow the client. @throws when no code comes back, such as for a person who is not let in */
export async function codeFor(server: TokenServerProcess, clientId: string, person: Person): Promise<string> {
  return await codeForAccess(server, { client_id: clientId }, person);
}

/** The same with parameters of access; `resource` may have several values (RFC 8707). */
export async function codeForAccess(
  server: TokenServerProcess,
  { resource = [], ...access }: AccessParameters,
  person: Person,
): Promise<string> {
  const url = new URL(`${ISSUER}/authorize`);
  const parameters = new URLSearchParams({
    response_type: 'code',
    redirect_uri: CALLBACK,
    code_challenge: s256(VERIFIER),
    code_challenge_method: 'S256',
    ...access,
  });
  for (const each of resource) parameters.append('resource', each);
  url.search = parameters.toString();
  const back = await answerIn(new TestBrowser(server.url, ISSUER), url, { ...person, decision: 'allow' });
  const code = back.searchParams.get('code');
  if (code === null) throw new Error(`no code but ${back.searchParams}`);
  return code;
}

export async function redeem(server: TokenServerProcess, client: Credentials, code: string): Promise<Tokens> {
  const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: VERIFIER };
  return await post(server, '/token', client, form);
}

export async function refresh(server: TokenServerProcess, client: Credentials, token: string): Promise<Tokens> {
  return await post(server, '/token', client, { grant_type: 'refresh_token', refresh_token: token });
}

/** Asks of a token of this client whether it is honoured. */
export async function introspect(
  server: TokenServerProcess,
  client: Credentials,
  token: string,
): Promise<Answer<{ readonly active?: boolean }>> {
  return await post(server, '/introspect', client, { token });
}

async function post<Body>(
  { url }: TokenServerProcess,
  path: string,
  { clientId, secret }: Credentials,
  form: Record<string, string>,
): Promise<Answer<Body>> {
  const authorization = `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}`;
  const body = new URLSearchParams(form);
  const response = await fetch(`${url}${path}`, { method: 'POST', headers: { authorization }, body });
  return { status: response.status, body: (await response.json()) as Body };
}
