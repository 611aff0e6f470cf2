// Sign-in by GitHub, over TLS against a server that answers as GitHub documents: the person, and which groups count.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { GitHubProviderClient } from '../../../src/login/upstream/github.ts';
import type { GitHubProvider } from '../../../src/oauth/registry/identity-provider.ts';
import { proxyOfTheEnvironment } from './environment-proxy.ts';
import { GitHubStandIn } from './github-stand-in.ts';
import { aGitHubProvider, SIGN_IN_REQUEST } from './providers.ts';

let github: GitHubStandIn;
beforeAll(async () => {
  github = await GitHubStandIn.start();
});
afterAll(() => github.stop());
beforeEach(() => github.reset());

async function signIn(changes: Partial<GitHubProvider> = {}, parameters: Record<string, string> = { code: 'c1' }) {
  const { host, authorities } = github;
  const credentials = { clientId: 'grantry', clientSecret: 's', authorities };
  const provider = aGitHubProvider(Object.assign({ host, organizations: ['corp'], credentials }, changes));
  const client = new GitHubProviderClient(provider, { credentials, isClaimedElsewhere: () => false });
  await client.discover();
  const started = await client.begin(SIGN_IN_REQUEST);
  if (started === 'unavailable') throw new Error('its endpoints are known');
  const answer = new URLSearchParams(Object.assign({ state: started.state }, parameters));
  const outcome = await client.finish({
    pending: started,
    callbackUrl: SIGN_IN_REQUEST.callbackUrl,
    parameters: answer,
  });
  client.close();
  return { started, outcome };
}

describe('the request', () => {
  it('has PKCE, state, and the two scopes', async () => {
    const { started } = await signIn();
    const url = new URL(started.location);
    expect(`${url.origin}${url.pathname}`).toBe(`https://${github.host}/login/oauth/authorize`);
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: 'grantry',
      response_type: 'code',
      redirect_uri: SIGN_IN_REQUEST.callbackUrl,
      scope: 'read:org user:email',
      state: started.state,
      code_challenge: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      code_challenge_method: 'S256',
    });
    expect(github.redeemed?.get('code_verifier')).toBe(started.codeVerifier);
  });
});

it('without a host → github.com, and its API at api.github.com', async () => {
  const asked = await proxyOfTheEnvironment(Number(new URL(`https://${github.host}`).port));
  const { started, outcome } = await signIn({ host: 'github.com' });
  expect(new URL(started.location).origin).toBe('https://github.com');
  expect(outcome).toMatchObject({ outcome: 'asserted' });
  expect(new Set(asked)).toEqual(new Set(['github.com:443', 'api.github.com:443']));
});

describe('a member of a listed organization', () => {
  it('→ a person, with the groups of listed organizations only, and the primary address', async () => {
    expect((await signIn()).outcome).toEqual({
      outcome: 'asserted',
      person: {
        subject: expect.stringMatching(/^usr_/),
        username: 'ada',
        displayName: 'Ada Lovelace',
        email: 'ada@corp.example.com',
        groups: ['corp:corp', 'corp:corp:platform'],
        authTime: undefined,
      },
      isOverage: false,
      groupsLeftOut: 0,
    });
  });

  it('that changes its login → the same subject; another id, or another host → another one', async () => {
    const subjectNow = async () => {
      const { outcome } = await signIn();
      return outcome.outcome === 'asserted' ? outcome.person.subject : undefined;
    };
    const subject = await subjectNow();
    github.api['/user'] = { id: 17, login: 'lovelace' };
    expect(await subjectNow()).toBe(subject);
    github.api['/user'] = { id: 18, login: 'ada' };
    expect(await subjectNow()).not.toBe(subject);
  });

  it('with 250 organizations → each page is read', async () => {
    github.api['/user/orgs'] = [
      ...Array.from({ length: 250 }, (_, index) => ({ login: `o${index}` })),
      { login: 'corp' },
    ];
    expect((await signIn()).outcome).toMatchObject({ person: { groups: ['corp:corp', 'corp:corp:platform'] } });
    expect(github.asked.filter((path) => path.startsWith('/user/orgs'))).toHaveLength(3);
  });

  it('with endless pages → ten are read', async () => {
    github.api['/user/teams'] = Array.from({ length: 5000 }, () => ({ slug: 't', organization: { login: 'other' } }));
    expect((await signIn()).outcome).toMatchObject({ person: { groups: ['corp:corp'] } });
    expect(github.asked.filter((path) => path.startsWith('/user/teams'))).toHaveLength(10);
  });

  it('with an address that is not verified → none', async () => {
    github.api['/user/emails'] = [{ email: 'ada@corp.example.com', primary: true, verified: false }];
    expect((await signIn()).outcome).toMatchObject({ person: { email: undefined } });
  });
});

describe('what a person keeps from view', () => {
  it('no public name and address → the primary address all the same', async () => {
    github.api['/user'] = { id: 17, login: 'ada', name: null, email: null };
    expect((await signIn()).outcome).toMatchObject({
      person: { username: 'ada', displayName: undefined, email: 'ada@corp.example.com' },
    });
  });

  // What an organization has not approved, or a person has not granted, is no part of the lists.
  it('its organizations → no member of one', async () => {
    github.api['/user/orgs'] = [];
    expect((await signIn()).outcome).toMatchObject({ outcome: 'refused', reason: 'person_not_permitted' });
    github.api['/user/orgs'] = [{ login: 'corp' }];
    github.api['/user/teams'] = [];
    expect((await signIn()).outcome).toMatchObject({ person: { groups: ['corp:corp'] } });
  });

  it('a team of an organization of which it is no member → no group', async () => {
    github.api['/user/orgs'] = [{ login: 'corp' }];
    github.api['/user/teams'] = [
      { slug: 'platform', organization: { login: 'partner' } },
      { slug: 'platform' },
      { slug: 'platform', organization: null },
      { slug: 7, organization: { login: 'corp' } },
    ];
    const organizations = ['corp', 'partner'];
    expect((await signIn({ organizations })).outcome).toMatchObject({ person: { groups: ['corp:corp'] } });
  });

  it('its addresses, which GitHub then answers 404 → invalid', async () => {
    delete github.api['/user/emails'];
    expect((await signIn()).outcome).toMatchObject({ outcome: 'invalid' });
  });

  it('no primary address, an odd one, entries that are none → no address', async () => {
    for (const emails of [
      [],
      [{ email: 'a@b.example', verified: true }],
      [{ email: 'a@b@c.example', primary: true, verified: true }],
      [{ email: 'a@b.example', primary: true, verified: 'true' }],
      [{ primary: true, verified: true }],
      ['a@b.example', null],
    ]) {
      github.api['/user/emails'] = emails;
      expect((await signIn()).outcome).toMatchObject({ person: { email: undefined } });
    }
  });
});

describe('another person', () => {
  it('of no listed organization → refused; where anyone may come → without groups', async () => {
    github.api['/user/orgs'] = [{ login: 'admins' }];
    expect((await signIn()).outcome).toMatchObject({ reason: 'person_not_permitted', username: 'ada' });
    expect((await signIn({ organizations: [] })).outcome).toMatchObject({ person: { groups: [] } });
  });
});

describe('an answer that cannot be used → invalid', () => {
  it('an error with status 200', async () => {
    github.token = { error: 'bad_verification_code', error_description: 'The code passed is incorrect or expired.' };
    expect((await signIn()).outcome).toMatchObject({ outcome: 'invalid' });
  });

  it.each(['incorrect_client_credentials', 'redirect_uri_mismatch', 'unverified_user_email'])(
    'the error %s with status 200',
    async (error) => {
      github.token = { error, error_description: 'x', error_uri: 'https://docs.github.com/' };
      expect((await signIn()).outcome).toMatchObject({ outcome: 'invalid' });
      expect(github.asked).toEqual([]);
    },
  );

  it.each<[string, unknown]>([
    ['without id', { login: 'ada' }],
    ['with an id in text', { id: '17', login: 'ada' }],
    ['without login', { id: 17 }],
    ['that is a list', []],
  ])('a user %s', async (_case, user) => {
    github.api['/user'] = user;
    expect((await signIn()).outcome).toMatchObject({ outcome: 'invalid' });
  });

  it('a refused token, and a list that is none', async () => {
    github.token = { access_token: 'other', token_type: 'bearer' };
    expect((await signIn()).outcome).toMatchObject({ outcome: 'invalid' });
    github.token = { access_token: 'gho_1', token_type: 'bearer' };
    github.api['/user/orgs'] = { message: 'no' };
    expect((await signIn()).outcome).toMatchObject({ outcome: 'invalid' });
  });
});

it.each([
  ['access_denied', 'cancelled'],
  ['application_suspended', 'invalid'],
])('the error %s → %s', async (error, outcome) => {
  expect((await signIn({}, { error })).outcome).toEqual({ outcome });
});
