// The identity providers of now: replaced, discovered again, relied on for a day, and reported.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Discovery } from '../../../src/login/upstream/provider-client.ts';
import { type ProviderCall, ProviderClients } from '../../../src/login/upstream/provider-clients.ts';
import type { IdentityProvider, OidcProvider } from '../../../src/oauth/registry/identity-provider.ts';
import { TestClock } from '../../grantry.ts';
import { until } from '../../until.ts';
import { aGitHubProvider, anOidcProvider, SIGN_IN_REQUEST } from './providers.ts';
import { json, ScriptedProvider } from './scripted-provider.ts';

const METADATA = '/.well-known/openid-configuration';

let upstream: ScriptedProvider;
let clock: TestClock;
const calls: ProviderCall[] = [];
const discovered: [provider: string, discovery: Discovery][] = [];
const leftOut: [provider: string, count: number][] = [];
let served: readonly IdentityProvider[];
let clients: ProviderClients;
beforeEach(async () => {
  calls.length = 0;
  upstream = await ScriptedProvider.start();
  clock = new TestClock();
  served = [];
  leftOut.length = 0;
  discovered.length = 0;
  clients = new ProviderClients({
    clock,
    providers: () => served,
    observe: (call) => void calls.push(call),
    onDiscovered: (...report) => void discovered.push(report),
    onGroupsLeftOut: (...report) => void leftOut.push(report),
  });
});
afterEach(() => {
  clients.close();
  upstream.stop();
});

const corp = (changes: Partial<OidcProvider> = {}) =>
  anOidcProvider(Object.assign({ issuer: upstream.issuer }, changes));
const reach = (uid = 'uid-corp') => clients.reports().get(uid)?.reach;
const asked = () => upstream.asked.get(METADATA) ?? 0;
const begin = async () => await clients.upstream('corp')?.begin(SIGN_IN_REQUEST);

function serve(providers: readonly IdentityProvider[]): void {
  served = providers;
  clients.discover();
}

/** Waits for the end of the discovery that has begun. */
async function settled(count: number): Promise<void> {
  await until('the discovery', () => asked() >= count && !clients.isDiscovering);
}

describe('a provider', () => {
  it('that is new → discovered at once, and reported', async () => {
    const provider = corp();
    serve([provider]);
    expect(reach()).toBe('NotObserved');
    await settled(1);
    expect(clients.reports()).toEqual(new Map([['uid-corp', { generation: 1, reach: 'Reachable', isOverage: false }]]));
    expect(clients.provider('corp')).toBe(provider);
    expect(clients.upstream('local')).toBeUndefined();
  });

  it('that is the same object → is not discovered again', async () => {
    const provider = corp();
    serve([provider]);
    await settled(1);
    serve([provider]);
    await settled(1);
    expect(asked()).toBe(1);
  });

  it.each<[string, Partial<OidcProvider>]>([
    ['display name', { displayName: 'Corporation' }],
    ['verifyEvery', { verifyEvery: 300_000 }],
    ['groups', { groups: { include: [], prefix: '', allowCommas: false } }],
    ['scopes', { scopes: ['openid'] }],
  ])('with another %s → reached as before, and reported of its generation', async (_, changes) => {
    serve([corp()]);
    await settled(1);
    serve([corp(Object.assign({ generation: 2 }, changes))]);
    expect(await begin()).toMatchObject({ location: expect.anything() });
    expect([asked(), clients.reports().get('uid-corp')]).toEqual([
      1,
      { generation: 2, reach: 'Reachable', isOverage: false },
    ]);
    expect(clients.provider('corp')).toMatchObject(changes);
  });

  const credentials = { clientId: 'grantry', clientSecret: 'another secret of grantry!!!', authorities: undefined };
  it.each<[string, Partial<OidcProvider>]>([
    ['issuer', { issuer: 'https://other.example' }],
    ['Secret', { credentials }],
    ['client authentication', { clientAuth: 'client_secret_post' }],
    ['uid', { uid: 'uid-of-another' }],
  ])('with another %s → nothing known of the former one is used', async (_, changes) => {
    serve([corp()]);
    await settled(1);
    serve([corp(changes)]);
    expect([await begin(), reach(changes.uid)]).toEqual(['unavailable', 'NotObserved']);
  });

  it('with a changed rule → validated by it, also where the person has left by the former one', async () => {
    serve([corp()]);
    await settled(1);
    const started = await begin();
    if (started === undefined || started === 'unavailable') throw new Error('the provider was discovered');
    const facts = { preferred_username: 'a', name: 'A', email: 'a@b.example', email_verified: true, groups: [] };
    upstream.claims = Object.assign({ hd: 'other.example' }, facts);
    serve([corp({ requiredClaims: [{ claim: 'hd', values: ['corp.example'] }] })]);
    upstream.nonce = started.nonce;
    const parameters = new URLSearchParams({ code: 'c', state: started.state });
    const answer = await clients
      .upstream('corp')
      ?.finish({ pending: started, callbackUrl: SIGN_IN_REQUEST.callbackUrl, parameters });
    expect(answer).toMatchObject({ outcome: 'refused', reason: 'person_not_permitted' });
  });

  it('of the type GitHub with other organizations → reached as before', async () => {
    serve([aGitHubProvider()]);
    await until('the discovery', () => reach() === 'Reachable');
    serve([aGitHubProvider({ organizations: ['corp'] })]);
    expect([reach(), await begin()]).toEqual(['Reachable', expect.objectContaining({ location: expect.anything() })]);
  });

  it('that is suspended → has no client and is not listed, and is still a provider', () => {
    serve([corp({ isSuspended: true })]);
    expect([clients.upstream('corp'), clients.list()]).toEqual([undefined, []]);
    expect(clients.provider('corp')).toBeDefined();
  });

  it('without credentials → listed, without a client, and not observed', () => {
    serve([corp({ credentials: undefined })]);
    expect([clients.list().length, clients.upstream('corp'), reach()]).toEqual([1, undefined, 'NotObserved']);
  });

  it('of the type GitHub → reached without a call', async () => {
    serve([aGitHubProvider()]);
    await until('the discovery', () => reach() === 'Reachable');
    expect(await begin()).toMatchObject({
      location: expect.stringMatching(/^https:\/\/github\.com\/login\/oauth\/authorize\?/),
    });
  });
});

describe('discovery', () => {
  it('of a provider that is reached → again after ten minutes', async () => {
    serve([corp()]);
    await settled(1);
    clock.advance(599_999);
    clients.discover();
    expect(asked()).toBe(1);
    clock.advance(1);
    clients.discover();
    await settled(2);
  });

  it('that fails → again after 5, 10, 20 s …, and what was known stands for a day', async () => {
    serve([corp()]);
    await settled(1);
    upstream.answers.set(METADATA, (_request, response) => json(response, {}, 503));
    clock.advance(600_000);
    clients.discover();
    await settled(2);
    expect([reach(), await begin()]).toEqual([
      'DiscoveryFailed',
      expect.objectContaining({ state: expect.anything() }),
    ]);
    for (const [wait, count] of [
      [5_000, 3],
      [10_000, 4],
      [20_000, 5],
    ] as const) {
      clock.advance(wait - 1);
      clients.discover();
      expect(asked()).toBe(count - 1);
      clock.advance(1);
      clients.discover();
      await settled(count);
    }
    expect(await begin()).not.toBe('unavailable');
    clock.advance(86_400_000 - 600_000 - 35_000 + 1);
    clients.discover();
    await settled(6);
    expect(await begin()).toBe('unavailable');
  });

  it('that finds another issuer → nothing known is used any more', async () => {
    serve([corp()]);
    await settled(1);
    upstream.metadata = { issuer: 'https://evil.example' };
    clock.advance(600_000);
    clients.discover();
    await settled(2);
    expect([reach(), await begin()]).toEqual(['IssuerMismatch', 'unavailable']);
  });

  it('that runs → not begun twice', async () => {
    const answered = Promise.withResolvers<() => void>();
    upstream.answers.set(METADATA, (_request, response) => answered.resolve(() => json(response, {}, 503)));
    serve([corp()]);
    const answer = await answered.promise;
    clients.discover();
    expect(asked()).toBe(1);
    answer();
    await settled(1);
  });
});

describe('a person whose groups are too many for the token', () => {
  const isOverage = () => clients.reports().get('uid-corp')?.isOverage;
  beforeEach(async () => {
    serve([corp()]);
    await settled(1);
    const started = await begin();
    if (started === undefined || started === 'unavailable') throw new Error('the provider was discovered');
    upstream.nonce = started.nonce;
    upstream.claims = {
      preferred_username: 'a',
      name: 'A',
      email: 'a@b.example',
      email_verified: true,
      hasgroups: true,
    };
    upstream.userinfo = { sub: 'ada-1' };
    const parameters = new URLSearchParams({ code: 'c', state: started.state });
    const returned = { pending: started, callbackUrl: SIGN_IN_REQUEST.callbackUrl, parameters };
    expect(await clients.upstream('corp')?.finish(returned)).toMatchObject({ person: { groups: [] } });
  });

  it('→ reported for an hour', () => {
    clock.advance(3_599_999);
    expect(isOverage()).toBe(true);
    clock.advance(1);
    expect(isOverage()).toBe(false);
  });

  it('→ not reported of the next generation', () => {
    serve([corp({ generation: 2, scopes: ['openid'] })]);
    expect(isOverage()).toBe(false);
  });
});

describe('what came of a discovery', () => {
  const REFUSED = 'the token endpoint answered invalid_client';
  const answerToken = (error: string) =>
    upstream.answers.set('/token', (_request, response) => json(response, { error }, 400));
  /** Serves a provider whose credentials are tried. */
  async function serveTried(): Promise<void> {
    clients.close();
    clients = new ProviderClients({
      clock,
      providers: () => served,
      observe: () => {},
      onDiscovered: (...report) => void discovered.push(report),
      tryCredentials: (name) => `https://login.example.com/login/callback/${name}`,
      onGroupsLeftOut: () => {},
    });
    serve([corp()]);
    await settled(1);
  }
  async function discoverAgain(milliseconds: number): Promise<void> {
    const before = asked();
    clock.advance(milliseconds);
    clients.discover();
    await settled(before + 1);
  }

  it('→ reported once, and again when it differs; known until then', async () => {
    upstream.answers.set(METADATA, (_request, response) => json(response, {}, 404));
    serve([corp()]);
    await settled(1);
    await discoverAgain(5_000);
    const detail = 'the discovery document answered status 404';
    expect(discovered.splice(0)).toEqual([['corp', { reach: 'DiscoveryFailed', detail }]]);
    expect(clients.faultOf('corp')).toBe(detail);
    upstream.answers.clear();
    await discoverAgain(10_000);
    await discoverAgain(600_000);
    expect(discovered).toEqual([['corp', { reach: 'Reachable', detail: undefined }]]);
    expect([clients.faultOf('corp'), clients.faultOf('none')]).toEqual([undefined, undefined]);
  });

  it('whose credentials are not tried → asks the token endpoint nothing', async () => {
    serve([corp()]);
    await settled(1);
    expect(upstream.asked.get('/token')).toBeUndefined();
  });

  it('whose credentials are tried and refused → reported, tried again until they are accepted, and then not again', async () => {
    answerToken('invalid_client');
    await serveTried();
    expect(discovered.splice(0)).toEqual([['corp', { reach: 'Reachable', detail: REFUSED }]]);
    answerToken('invalid_grant');
    await discoverAgain(600_000);
    expect(discovered.splice(0)).toEqual([['corp', { reach: 'Reachable', detail: undefined }]]);
    const tried = upstream.asked.get('/token');
    await discoverAgain(600_000);
    expect(upstream.asked.get('/token')).toBe(tried);
    expect(discovered).toEqual([]);
  });

  it('with other credentials → tried again at once', async () => {
    answerToken('invalid_grant');
    await serveTried();
    answerToken('invalid_client');
    const credentials = { clientId: 'grantry', clientSecret: 'another', authorities: undefined };
    serve([corp({ credentials, generation: 2 })]);
    await settled(2);
    expect(discovered.at(-1)).toEqual(['corp', { reach: 'Reachable', detail: REFUSED }]);
  });
});

it('groups left out because of their names → reported once an hour for each provider, also after an edit', async () => {
  const signIn = async (name: string, groups: readonly string[]) => {
    const started = await clients.upstream(name)?.begin(SIGN_IN_REQUEST);
    if (started === undefined || started === 'unavailable') throw new Error('the provider was discovered');
    upstream.nonce = started.nonce;
    upstream.claims = { preferred_username: 'a', name: 'A', email: 'a@b.example', email_verified: true, groups };
    const parameters = new URLSearchParams({ code: 'c', state: started.state });
    await clients.upstream(name)?.finish({ pending: started, callbackUrl: SIGN_IN_REQUEST.callbackUrl, parameters });
  };
  const lab = () => corp({ name: 'lab', uid: 'uid-lab' });
  serve([corp(), lab()]);
  await settled(2);
  await signIn('corp', ['dev']);
  expect(leftOut).toEqual([]);
  await signIn('corp', ['a,b', 'c\n', 'dev']);
  await signIn('corp', ['a,b']);
  await signIn('lab', ['a,b']);
  expect(leftOut.splice(0)).toEqual([
    ['corp', 2],
    ['lab', 1],
  ]);
  clock.advance(3_599_999);
  serve([corp({ generation: 2 }), lab()]);
  await signIn('corp', ['a,b']);
  expect(leftOut).toEqual([]);
  clock.advance(1);
  await signIn('corp', ['a,b']);
  expect(leftOut).toEqual([['corp', 1]]);
});

it('an address in the domain of another provider → unverified, also while that one is suspended', async () => {
  const provider = corp();
  const owner = corp({
    name: 'owner',
    uid: 'uid-owner',
    isSuspended: true,
    allow: { emailDomains: ['b.example'], groups: [] },
  });
  const emailOf = async (providers: readonly OidcProvider[]) => {
    serve(providers);
    await until('the discovery', () => reach() === 'Reachable');
    const started = await begin();
    if (started === undefined || started === 'unavailable') throw new Error('the provider was discovered');
    upstream.nonce = started.nonce;
    const parameters = new URLSearchParams({ code: 'c', state: started.state });
    const answer = await clients
      .upstream('corp')
      ?.finish({ pending: started, callbackUrl: SIGN_IN_REQUEST.callbackUrl, parameters });
    return answer?.outcome === 'asserted' ? answer.person.email : answer;
  };
  upstream.claims = { preferred_username: 'a', name: 'A', email: 'a@b.example', email_verified: true, groups: [] };
  expect(await emailOf([provider])).toBe('a@b.example');
  expect(await emailOf([provider, owner])).toBeUndefined();
});
