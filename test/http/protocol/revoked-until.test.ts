import { describe, expect, it } from 'vitest';
import { basic, startGrantry } from '../../grantry.ts';
import { API, aDirectory, TokenCalls, WEB } from './token-calls.ts';

const AUDIENCE = 'https://api.shop.example/';
const clients = [
  { ...WEB, audiences: [AUDIENCE] },
  { ...API, resourceServerAudiences: [AUDIENCE] },
];
const { owners, subject } = await aDirectory();
const grantry = await startGrantry({ owners, clients });
const web = new TokenCalls(grantry);
const api = web.as(API);
const headers = { authorization: basic(WEB.clientId, WEB.secret) };
const MACHINE = { grant_type: 'client_credentials' };

/** Runs with that `revokeTokensBefore` of {@link WEB}. */
async function whileRevoked(until: number, action: () => Promise<void>): Promise<void> {
  grantry.setClients(clients.map((client) => ({ ...client, revokeTokensBefore: until })));
  try {
    await action();
  } finally {
    grantry.setClients(clients);
  }
}

describe('a client whose revokeTokensBefore is in the future', () => {
  it('at the token endpoint → 503 with Retry-After of at most 300 seconds, and no code or refresh token is used up', async () => {
    const { body } = await web.redeem(await grantry.issueCode(WEB.clientId, { subject }));
    const code = await grantry.issueCode(WEB.clientId, { subject });
    const now = grantry.clock.now();
    for (const [until, retryAfter] of [
      [now + 90_000, '91'],
      [now + 30 * 86_400_000, '300'],
    ] as const) {
      await whileRevoked(until, async () => {
        const answer = await grantry.post('/token', MACHINE, { headers });
        expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, retryAfter]);
        const refusal = { status: 503, body: { error: 'temporarily_unavailable' }, reason: 'revoked_until' };
        expect(await web.refresh(body.refresh_token)).toMatchObject(refusal);
        expect(await web.redeem(code)).toMatchObject(refusal);
      });
    }
    expect(await web.refresh(body.refresh_token)).toMatchObject({ status: 200 });
    expect(await web.redeem(code)).toMatchObject({ status: 200 });
  });

  it('at the authorization endpoint → temporarily_unavailable by redirect, instead of a sign-in', async () => {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: WEB.clientId,
      redirect_uri: 'https://app.example/cb',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256',
    });
    const authorize = () => fetch(grantry.url(`/authorize?${query}`), { redirect: 'manual' });
    await whileRevoked(grantry.clock.now() + 1000, async () => {
      const answer = await authorize();
      const location = new URL(answer.headers.get('location') ?? '');
      expect([answer.status, location.searchParams.get('error')]).toEqual([302, 'temporarily_unavailable']);
      expect(grantry.logs().findLast(({ route }) => route === 'authorize')).toMatchObject({ reason: 'revoked_until' });
    });
    expect((await authorize()).status).toBe(200);
  });

  it('and a wrong secret → 401: only the client itself learns of it', async () => {
    await whileRevoked(grantry.clock.now() + 1000, async () => {
      const wrong = { headers: { authorization: basic(WEB.clientId, 'wrong') } };
      expect((await grantry.post('/token', MACHINE, wrong)).status).toBe(401);
    });
  });

  it('gets valid tokens from the instant that this time is over: a machine from the next second', async () => {
    const until = grantry.clock.now() + 2000;
    await whileRevoked(until, async () => {
      grantry.clock.advance(2000);
      const code = await grantry.issueCode(WEB.clientId, { subject });
      expect(await web.redeem(code)).toMatchObject({ status: 503 });
      grantry.clock.advance(1);
      expect(await web.post('/token', MACHINE)).toMatchObject({ status: 503, reason: 'revoked_until' });
      const { body } = await web.redeem(await grantry.issueCode(WEB.clientId, { subject }));
      grantry.clock.advance(999);
      const machine = (await web.post('/token', MACHINE)).body;
      expect(await Promise.all([body, machine].map((each) => api.isActive(each.access_token)))).toEqual([true, true]);
    });
  });
});
