// The places of a server that take a token. Each takes some kinds, and has to refuse all others alike (RFC 8725 §2.8, §3.11).

import { AccessDenied, createVerifier, type VerifierOptions } from '../../../../src/resource-server/index.ts';
import { basic, PKCE } from '../../../grantry.ts';
import { asserted } from '../../../oauth/client-auth/client-assertions.ts';
import type { Page } from '../../sign-in/sign-in-browser.ts';
import { WEB } from '../token-calls.ts';
import { authorizePath, CALLBACK, type Kind, OPAQUE, POD, type TokenWorld } from './token-world.ts';

/** What is seen of an answer, but the id of its request and the code of a sign-in. */
export type Answer = Readonly<Record<string, unknown>>;

export interface Place {
  readonly takes: readonly Kind[];
  present(token: string, kind?: Kind): Promise<Answer>;
}

/** All places, by name. */
export function placesOf(world: TokenWorld): ReadonlyMap<string, Place> {
  return new Map(Object.entries({ ...browserPlaces(world), ...clientPlaces(world), ...resourcePlaces(world) }));
}

function browserPlaces({ browser, signIn }: TokenWorld): Readonly<Record<string, Place>> {
  const logout = async (query: Readonly<Record<string, string>>) => {
    const page = await browser.get(`/logout?${new URLSearchParams(query)}`);
    // A hint that is taken ends the session.
    if (page.status === 200) await signIn();
    return pageSeen(page);
  };
  return {
    'id_token_hint at /authorize': {
      takes: ['ID token'],
      present: async (token) => pageSeen(await browser.get(authorizePath({ id_token_hint: token }))),
    },
    'id_token_hint at /logout': {
      takes: ['ID token'],
      present: (token) => logout({ id_token_hint: token }),
    },
    'id_token_hint at /logout, beside client_id': {
      takes: ['ID token'],
      present: (token) => logout({ id_token_hint: token, client_id: WEB.clientId }),
    },
  };
}

function clientPlaces({ grantry, takeWrites }: TokenWorld): Readonly<Record<string, Place>> {
  const post = async (path: string, form: Readonly<Record<string, string>>, headers = ownerOf()) =>
    seen(await grantry.post(path, form, { headers }));
  const anonymous = {};
  const machine = { grant_type: 'client_credentials' };
  return {
    '/introspect': {
      takes: ['access token', 'opaque token', 'refresh token'],
      present: (token, kind) => post('/introspect', { token }, ownerOf(kind)),
    },
    '/revoke': {
      takes: ['access token', 'opaque token', 'refresh token'],
      present: async (token, kind) => {
        takeWrites();
        return { ...(await post('/revoke', { token }, ownerOf(kind))), writes: takeWrites().length };
      },
    },
    'the refresh grant': {
      takes: ['refresh token'],
      present: (token) => post('/token', { grant_type: 'refresh_token', refresh_token: token }),
    },
    'the grant of codes': {
      takes: ['code'],
      present: (code) =>
        post('/token', {
          grant_type: 'authorization_code',
          code,
          redirect_uri: CALLBACK,
          code_verifier: PKCE.verifier,
        }),
    },
    'an assertion of private_key_jwt': {
      takes: [],
      present: (token) => post('/token', { ...machine, ...asserted(token) }, anonymous),
    },
    'an assertion of a ServiceAccount': {
      takes: [],
      present: (token) => post('/token', { ...machine, ...asserted(token), client_id: POD }, anonymous),
    },
    'a DPoP proof at /token': {
      takes: [],
      present: (token) => post('/token', { grant_type: 'client_credentials' }, { ...ownerOf(), dpop: token }),
    },
  };
}

function resourcePlaces({ grantry }: TokenWorld): Readonly<Record<string, Place>> {
  const { issuer, clock } = grantry;
  const here: typeof fetch = (url, init) => fetch(grantry.url(String(url).slice(issuer.length)), init);
  const api = (mode: Pick<VerifierOptions, 'mode' | 'introspection'>) =>
    createVerifier({ issuer, audience: issuer, clock, fetch: here, ...mode } as VerifierOptions);
  const local = api({ mode: 'local' });
  const introspection = { clientId: WEB.clientId, clientSecret: WEB.secret };
  const asking = api({ mode: 'introspection', introspection });
  const verify = async (verifier: typeof local, token: string) => {
    try {
      await verifier.verify(new Request('https://a.example/', { headers: { authorization: `Bearer ${token}` } }));
      return { status: 200 };
    } catch (error) {
      if (!(error instanceof AccessDenied)) throw error;
      return { status: error.status, code: error.code };
    }
  };
  return {
    '/userinfo': {
      takes: ['access token', 'opaque token'],
      present: async (token) =>
        seen(await fetch(grantry.url('/userinfo'), { headers: { authorization: `Bearer ${token}` } })),
    },
    'an API that has the keys': { takes: ['access token'], present: (token) => verify(local, token) },
    'an API that asks': { takes: ['access token'], present: (token) => verify(asking, token) },
  };
}

/** The credentials of the client that a token of this kind is issued to. */
function ownerOf(kind?: Kind): Readonly<Record<string, string>> {
  const { clientId, secret } = kind === 'opaque token' ? OPAQUE : WEB;
  return { authorization: basic(clientId, secret) };
}

async function seen(response: Response): Promise<Answer> {
  const challenge = response.headers.get('www-authenticate');
  return { status: response.status, body: await response.text(), challenge };
}

function pageSeen({ status, location, body }: Page): Answer {
  return {
    status,
    location: location?.replace(/code=[^&]*/, 'code='),
    page: body.replace(/<code>[^<]*<\/code>/, '').replace(/(name="csrf" value=)"[^"]*"/, '$1'),
  };
}
