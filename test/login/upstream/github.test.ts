// Sign-in by GitHub, over TLS against a server that answers as GitHub documents: the person, and which groups count.

import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { GitHubSource } from '../../../src/login/upstream/github.ts';
import type { GitHubProvider } from '../../../src/oauth/registry/identity-provider.ts';
import { CertificateMaker } from '../../client-certificates.ts';
import { freePort } from '../../free-port.ts';
import { aGitHubProvider } from './providers.ts';
import { json } from './scripted-provider.ts';

const CALLBACK = 'https://login.example.com/login/callback/github';
const REQUEST = {
  callbackUrl: CALLBACK,
  prompt: undefined,
  maxAge: undefined,
  loginHint: undefined,
  uiLocales: undefined,
};

/** What GitHub's API answers, by path. */
let api: Record<string, unknown>;
/** What the token endpoint answers, with status 200. */
let token: Record<string, unknown>;
const asked: string[] = [];
let redeemed: URLSearchParams | undefined;
let server: Server;
let host: string;
let authorities: string;

beforeAll(async () => {
  const maker = new CertificateMaker();
  const authority = maker.authority();
  authorities = authority.certificate;
  const { certificate, key } = maker.make({ issuer: authority, extensions: ['subjectAltName=DNS:localhost'] });
  const port = await freePort();
  host = `localhost:${port}`;
  server = createServer({ cert: certificate, key }, async (request, response) => {
    const url = new URL(request.url ?? '', `https://${host}`);
    if (url.pathname === '/login/oauth/access_token') {
      redeemed = new URLSearchParams(await text(request));
      return json(response, token);
    }
    const path = url.pathname.replace('/api/v3', '');
    asked.push(`${path}${url.search}`);
    if (request.headers.authorization !== 'Bearer gho_1') return json(response, {}, 401);
    const answer = api[path];
    if (answer === undefined) return json(response, {}, 404);
    if (!Array.isArray(answer)) return json(response, answer);
    const page = Number(url.searchParams.get('page') ?? 1);
    return json(response, answer.slice((page - 1) * 100, page * 100));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  asked.length = 0;
  redeemed = undefined;
  token = { access_token: 'gho_1', token_type: 'bearer', scope: 'read:org,user:email' };
  api = {
    '/user': { id: 17, login: 'ada', name: 'Ada Lovelace', email: 'public@evil.example' },
    '/user/emails': [
      { email: 'other@corp.example.com', primary: false, verified: true },
      { email: 'ada@corp.example.com', primary: true, verified: true },
    ],
    '/user/orgs': [{ login: 'Corp' }, { login: 'admins' }],
    '/user/teams': [
      { slug: 'platform', organization: { login: 'corp' } },
      { slug: 'platform', organization: { login: 'admins' } },
    ],
  };
});

async function signIn(changes: Partial<GitHubProvider> = {}, parameters: Record<string, string> = { code: 'c1' }) {
  const credentials = { clientId: 'grantry', clientSecret: 's', authorities };
  const provider = aGitHubProvider(Object.assign({ host, organizations: ['corp'], credentials }, changes));
  const source = new GitHubSource(provider, { credentials, isClaimedElsewhere: () => false });
  await source.discover();
  const departure = await source.begin(REQUEST);
  if (departure === 'unavailable') throw new Error('its endpoints are known');
  const answer = new URLSearchParams(Object.assign({ state: departure.state }, parameters));
  const outcome = await source.finish({ pending: departure, callbackUrl: CALLBACK, parameters: answer });
  source.close();
  return { departure, outcome };
}

describe('the request', () => {
  it('has PKCE, state, and the two scopes', async () => {
    const { departure } = await signIn();
    const url = new URL(departure.location);
    expect(`${url.origin}${url.pathname}`).toBe(`https://${host}/login/oauth/authorize`);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: 'grantry',
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'read:org user:email',
      state: departure.state,
      code_challenge: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      code_challenge_method: 'S256',
    });
    expect(redeemed?.get('code_verifier')).toBe(departure.codeVerifier);
  });
});

describe('a member of a listed organization', () => {
  it('→ a person, with the groups of listed organizations only, and the primary address', async () => {
    expect((await signIn()).outcome).toEqual({
      outcome: 'vouched',
      person: {
        subject: expect.stringMatching(/^usr_/),
        username: 'ada',
        displayName: 'Ada Lovelace',
        email: 'ada@corp.example.com',
        groups: ['corp:corp', 'corp:corp:platform'],
        authTime: undefined,
      },
      isOverage: false,
    });
  });

  it('that changes its login → the same subject; another id, or another host → another one', async () => {
    const subjectNow = async () => {
      const { outcome } = await signIn();
      return outcome.outcome === 'vouched' ? outcome.person.subject : undefined;
    };
    const subject = await subjectNow();
    api['/user'] = { id: 17, login: 'lovelace' };
    expect(await subjectNow()).toBe(subject);
    api['/user'] = { id: 18, login: 'ada' };
    expect(await subjectNow()).not.toBe(subject);
  });

  it('with 250 organizations → each page is read', async () => {
    api['/user/orgs'] = [...Array.from({ length: 250 }, (_, index) => ({ login: `o${index}` })), { login: 'corp' }];
    expect((await signIn()).outcome).toMatchObject({ person: { groups: ['corp:corp', 'corp:corp:platform'] } });
    expect(asked.filter((path) => path.startsWith('/user/orgs'))).toHaveLength(3);
  });

  it('with endless pages → ten are read', async () => {
    api['/user/teams'] = Array.from({ length: 5000 }, () => ({ slug: 't', organization: { login: 'other' } }));
    expect((await signIn()).outcome).toMatchObject({ person: { groups: ['corp:corp'] } });
    expect(asked.filter((path) => path.startsWith('/user/teams'))).toHaveLength(10);
  });

  it('with an address that is not verified → none', async () => {
    api['/user/emails'] = [{ email: 'ada@corp.example.com', primary: true, verified: false }];
    expect((await signIn()).outcome).toMatchObject({ person: { email: undefined } });
  });
});

describe('another person', () => {
  it('of no listed organization → refused; where anyone may come → without groups', async () => {
    api['/user/orgs'] = [{ login: 'admins' }];
    expect((await signIn()).outcome).toMatchObject({ reason: 'person_not_permitted', username: 'ada' });
    expect((await signIn({ organizations: [] })).outcome).toMatchObject({ person: { groups: [] } });
  });
});

describe('an answer that cannot be used → invalid', () => {
  it('an error with status 200', async () => {
    token = { error: 'bad_verification_code', error_description: 'The code passed is incorrect or expired.' };
    expect((await signIn()).outcome).toEqual({ outcome: 'invalid' });
  });

  it.each<[string, unknown]>([
    ['without id', { login: 'ada' }],
    ['with an id in text', { id: '17', login: 'ada' }],
    ['without login', { id: 17 }],
    ['that is a list', []],
  ])('a user %s', async (_case, user) => {
    api['/user'] = user;
    expect((await signIn()).outcome).toEqual({ outcome: 'invalid' });
  });

  it('a refused token, and a list that is none', async () => {
    token = { access_token: 'other', token_type: 'bearer' };
    expect((await signIn()).outcome).toEqual({ outcome: 'invalid' });
    token = { access_token: 'gho_1', token_type: 'bearer' };
    api['/user/orgs'] = { message: 'no' };
    expect((await signIn()).outcome).toEqual({ outcome: 'invalid' });
  });
});

it.each([
  ['access_denied', 'cancelled'],
  ['application_suspended', 'invalid'],
])('the error %s → %s', async (error, outcome) => {
  expect((await signIn({}, { error })).outcome).toEqual({ outcome });
});
