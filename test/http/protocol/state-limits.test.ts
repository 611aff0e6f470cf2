// What one namespace and one person may store, over HTTP (docs/scope.md: 6819-1). A refusal stores and consumes nothing.

import { describe, expect, it } from 'vitest';
import { basic, PKCE, startGrantry } from '../../grantry.ts';
import { answerOf, hidden, TestBrowser } from '../sign-in/sign-in-browser.ts';
import { aDirectory, TokenCalls, WEB } from './token-calls.ts';

const SECRET = 'the-secret-of-a-machine-of-the-team';
const OPAQUE = {
  accessTokenFormat: 'opaque',
  accessTokenLifetimeSeconds: 600,
  refreshTokenIdleLifetimeSeconds: 1_209_600,
  refreshTokenLifetimeSeconds: 7_776_000,
  refreshTokenRotation: 'Always',
  refreshTokenReuseGraceSeconds: 10,
} as const;

/** A namespace may hold one token of these clients, and not two. */
const machine = (clientId: string, namespace: string) => ({
  clientId,
  namespace,
  secret: SECRET,
  maxState: 800,
  tokens: OPAQUE,
});

describe('the opaque tokens of machines', () => {
  it('above the share of their namespace → 429 with Retry-After, nothing written, other namespaces served', async () => {
    const written: unknown[] = [];
    const grantry = await startGrantry({
      clients: [machine('team.one', 'team'), machine('team.two', 'team'), machine('other.one', 'other')],
      rateLimits: true,
      wrapStores: (stores) => ({
        ...stores,
        accessTokens: {
          read: (tokenId) => stores.accessTokens.read(tokenId),
          revoke: (tokenId) => stores.accessTokens.revoke(tokenId),
          write: (token) => {
            written.push(token);
            return stores.accessTokens.write(token);
          },
        },
      }),
    });
    const ask = async (clientId: string) => {
      const headers = { authorization: basic(clientId, SECRET) };
      const answer = await grantry.post('/token', { grant_type: 'client_credentials' }, { headers });
      return { status: answer.status, retryAfter: answer.headers.get('retry-after'), body: await answer.text() };
    };
    expect(await ask('team.one')).toMatchObject({ status: 200 });
    const refused = await ask('team.two');
    expect(refused).toMatchObject({ status: 429, body: expect.stringContaining('"temporarily_unavailable"') });
    // A record counts for up to a sixteenth longer than it lives.
    expect(Number(refused.retryAfter)).toBeGreaterThanOrEqual(600);
    expect(Number(refused.retryAfter)).toBeLessThanOrEqual(640);
    expect(grantry.logs().findLast(({ route }) => route === 'token')).toMatchObject({
      reason: 'namespace_state_full',
      clientId: 'team.two',
    });
    expect(await ask('other.one')).toMatchObject({ status: 200 });
    expect(written).toHaveLength(2);
    const metrics = await (await fetch(grantry.adminUrl('/metrics'))).text();
    expect(metrics).toContain('grantry_rate_limited_total{limit="namespace_state_full"} 1');
    expect(metrics).not.toContain('outcome="limited"} 1');
    grantry.clock.advance(640_000);
    expect(await ask('team.two')).toMatchObject({ status: 200 });
  });

  it('JWTs store nothing and meet no limit', async () => {
    const client = {
      ...machine('team.one', 'team'),
      maxState: 0,
      tokens: { ...OPAQUE, accessTokenFormat: 'jwt' as const },
    };
    const grantry = await startGrantry({ clients: [client], rateLimits: true });
    const headers = { authorization: basic('team.one', SECRET) };
    expect((await grantry.post('/token', { grant_type: 'client_credentials' }, { headers })).status).toBe(200);
  });
});

describe('one person at one client', () => {
  it('51 refreshes at once → 429 with Retry-After for the last, whose token is good afterwards', async () => {
    const { owners, subject } = await aDirectory();
    const OTHER = { clientId: 'shop.other', secret: 'the-secret-of-another-application' };
    const grantry = await startGrantry({ owners, clients: [WEB, OTHER], rateLimits: true });
    const web = new TokenCalls(grantry);
    const begin = async (calls: TokenCalls, clientId: string) =>
      (await calls.redeem(await grantry.issueCode(clientId, { subject }))).body.refresh_token;
    let token = await begin(web, WEB.clientId);
    const elsewhere = await begin(web.as(OTHER), OTHER.clientId);
    for (let count = 0; count < 50; count++) {
      const { status, body } = await web.refresh(token);
      expect(status).toBe(200);
      token = body.refresh_token;
    }
    expect(await web.refresh(token)).toMatchObject({
      status: 429,
      body: { error: 'temporarily_unavailable' },
      reason: 'person_rate_limited',
    });
    expect((await web.as(OTHER).refresh(elsewhere)).status).toBe(200);
    grantry.clock.advance(1000);
    for (let count = 0; count < 5; count++) {
      const { status, body } = await web.refresh(token);
      expect(status).toBe(200);
      token = body.refresh_token;
    }
    expect((await web.refresh(token)).status).toBe(429);
  });

  it('more people at once than one may refresh → none meets a limit', async () => {
    const owners = {
      revokedBefore: () => 0,
      takesPasswords: false,
      lookUp: async () => undefined,
      authenticate: async () => undefined,
      find: async (subject: string) => ({
        subject,
        username: subject,
        displayName: undefined,
        email: undefined,
        groups: [],
      }),
    };
    const grantry = await startGrantry({ owners, clients: [WEB], rateLimits: true });
    const web = new TokenCalls(grantry);
    const statuses = await Promise.all(
      Array.from({ length: 60 }, async (_, number) => {
        const code = await grantry.issueCode(WEB.clientId, { subject: `usr_${number}` });
        const { body } = await web.redeem(code);
        return (await web.refresh(body.refresh_token)).status;
      }),
    );
    expect(statuses).toEqual(Array.from({ length: 60 }, () => 200));
  });

  it('51 requests at /authorize → temporarily_unavailable at the client for the last, no code stored', async () => {
    const grantry = await startGrantry({
      clients: [{ ...WEB, consent: 'Skip' }],
      users: { alice: 'a password of alice' },
      rateLimits: true,
    });
    const issued = () => grantry.audits().filter(({ event }) => event === 'authorization_code.issued');
    const browser = new TestBrowser(`http://127.0.0.1:${grantry.port}`, grantry.issuer);
    const path = `/authorize?${new URLSearchParams({
      response_type: 'code',
      client_id: WEB.clientId,
      redirect_uri: 'https://app.example/cb',
      state: 'st',
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
    })}`;
    const page = await browser.get(path);
    const form = { username: 'alice', password: 'a password of alice' };
    const signedIn = await browser.post('/login', {
      ...form,
      csrf: hidden(page, 'csrf'),
      request: hidden(page, 'request'),
    });
    await browser.get(signedIn.location ?? '');
    for (let count = 0; count < 50; count++) expect(answerOf(await browser.get(path))).toHaveProperty('code');
    expect(issued()).toHaveLength(51);
    expect(answerOf(await browser.get(path))).toMatchObject({ error: 'temporarily_unavailable', state: 'st' });
    expect(issued()).toHaveLength(51);
    expect(grantry.logs().findLast(({ route }) => route === 'authorize')).toMatchObject({
      outcome: 'refused',
      reason: 'person_rate_limited',
      clientId: WEB.clientId,
    });
    grantry.clock.advance(1000);
    expect(answerOf(await browser.get(path))).toHaveProperty('code');
  });
});
