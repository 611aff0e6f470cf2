import { describe, expect, it } from 'vitest';
import { PKCE, startGrantry } from '../../grantry.ts';
import { API, aDirectory, TokenCalls, WEB } from './token-calls.ts';

const AUDIENCE = 'https://api.shop.example/';
const OTHER = { clientId: 'shop.other', secret: 'the-secret-of-another-application' };
const shared = { audiences: [AUDIENCE, 'https://files.shop.example/'], defaultAudience: AUDIENCE };
const { owners, subject } = await aDirectory();
const grantry = await startGrantry({
  owners,
  clients: [
    { ...WEB, ...shared, redirectUris: ['https://app.example/cb', 'https://app.example/other'] },
    { ...OTHER, ...shared },
    { clientId: 'shop.native', redirectUris: ['http://127.0.0.1/cb'] },
    { clientId: 'shop.short', secret: 'the-secret-of-one-without-refresh', grantTypes: ['authorization_code'] },
    { ...API, resourceServerAudiences: [AUDIENCE] },
  ],
});
const web = new TokenCalls(grantry);
const api = web.as(API);
const issueCode = (clientId: string = WEB.clientId, grant = {}) => grantry.issueCode(clientId, { subject, ...grant });

const invalidGrant = (reason: string) => ({ status: 400, body: { error: 'invalid_grant' }, reason });

describe('an authorization code', () => {
  it('is redeemed for a token with everything RFC 6749 §5.1 names', async () => {
    const { status, body } = await web.redeem(await issueCode());
    expect(status).toBe(200);
    expect(body).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 600,
      scope: 'read write',
      refresh_token: expect.stringMatching(/^rt1\./),
    });
  });

  it('gives no refresh token to a client that is not registered for one', async () => {
    const short = web.as({ clientId: 'shop.short', secret: 'the-secret-of-one-without-refresh' });
    const { status, body } = await short.redeem(await issueCode('shop.short'));
    expect(status).toBe(200);
    expect(body).not.toHaveProperty('refresh_token');
  });

  it('can be redeemed once: a valid replay kills everything it gave, and raises one alert', async () => {
    const code = await issueCode();
    const { body } = await web.redeem(code);
    expect(await api.isActive(body.access_token)).toBe(true);
    expect(await web.redeem(code)).toMatchObject(invalidGrant('code_replayed'));
    expect(await web.redeem(code)).toMatchObject(invalidGrant('code_gone'));
    expect(await api.isActive(body.access_token)).toBe(false);
    expect(await web.refresh(body.refresh_token)).toMatchObject(invalidGrant('refresh_token_gone'));
    const alerts = grantry.audits().filter(({ event }) => event === 'authorization_code.replayed');
    expect(alerts).toHaveLength(1);
    expect(alerts[0]).toMatchObject({ clientId: WEB.clientId });
  });

  it.each([
    ['another verifier', { code_verifier: `${PKCE.verifier}x` }, 'code_proof_mismatch'],
    ['no verifier', { code_verifier: undefined }, 'code_proof_mismatch'],
    ['another redirect_uri', { redirect_uri: 'https://app.example/other' }, 'code_proof_mismatch'],
  ])('replayed with %s revokes nothing', async (_what, changes, reason) => {
    const code = await issueCode();
    const { body } = await web.redeem(code);
    expect(await web.redeem(code, changes)).toMatchObject(invalidGrant(reason));
    expect(await api.isActive(body.access_token)).toBe(true);
  });

  it('replayed by another client, or by one that cannot authenticate, revokes nothing', async () => {
    const code = await issueCode();
    const { body } = await web.redeem(code);
    expect(await web.as(OTHER).redeem(code)).toMatchObject(invalidGrant('code_mismatch'));
    expect(await web.as({ ...WEB, secret: 'not the secret' }).redeem(code)).toMatchObject({ status: 401 });
    expect(await api.isActive(body.access_token)).toBe(true);
  });

  it('is bound to client, redirect_uri, secret and challenge: each wrong one alone and every pair of them', async () => {
    const wrong = {
      client: OTHER,
      redirect_uri: 'https://app.example/other',
      code_verifier: `${PKCE.verifier.slice(1)}x`,
      secret: true,
    };
    const names = Object.keys(wrong) as (keyof typeof wrong)[];
    const pairs = names.flatMap((one) => names.map((other) => new Set([one, other])));
    for (const faults of pairs) {
      const code = await issueCode();
      const presented = faults.has('secret') ? code.replace(/.{27}$/, 'A'.repeat(27)) : code;
      const caller = faults.has('client') ? web.as(OTHER) : web;
      const answer = await caller.redeem(presented, {
        ...(faults.has('redirect_uri') && { redirect_uri: wrong.redirect_uri }),
        ...(faults.has('code_verifier') && { code_verifier: wrong.code_verifier }),
      });
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
      expect(await web.redeem(code), `after ${[...faults]}`).toMatchObject({ status: 200 });
    }
  });

  it('expires 60 s after it was issued, though the store still knows it', async () => {
    const [early, late] = [await issueCode(), await issueCode()];
    grantry.clock.advance(59_999);
    expect(await web.redeem(early)).toMatchObject({ status: 200 });
    grantry.clock.advance(1);
    expect(await web.redeem(late)).toMatchObject(invalidGrant('code_gone'));
  });

  it('needs redirect_uri at the token endpoint, and the same one', async () => {
    const code = await issueCode();
    const absent = await web.redeem(code, { redirect_uri: undefined });
    expect(absent).toMatchObject({ status: 400, body: { error: 'invalid_request' }, reason: 'redirect_uri_missing' });
    const other = await web.redeem(code, { redirect_uri: 'https://app.example/other' });
    expect(other).toMatchObject(invalidGrant('code_proof_mismatch'));
    const foreign = await web.redeem(code, { redirect_uri: 'https://app.example/cb/' });
    expect(foreign).toMatchObject(invalidGrant('redirect_uri_not_registered'));
    expect(await web.redeem(code)).toMatchObject({ status: 200 });
  });

  it('of a loopback address is redeemed with the address that was sent, port included', async () => {
    const native = web.as({ clientId: 'shop.native' });
    const redirectUri = 'http://127.0.0.1:51004/cb';
    const code = await issueCode('shop.native', { redirectUri });
    const registered = await native.redeem(code, { redirect_uri: 'http://127.0.0.1/cb' });
    expect(registered).toMatchObject(invalidGrant('code_proof_mismatch'));
    expect(await native.redeem(code, { redirect_uri: redirectUri })).toMatchObject({ status: 200 });
  });

  it('is not redeemed at an address that left the manifest since', async () => {
    const redirectUri = 'https://app.example/gone';
    const code = await issueCode(WEB.clientId, { redirectUri });
    const answer = await web.redeem(code, { redirect_uri: redirectUri });
    expect(answer).toMatchObject(invalidGrant('redirect_uri_not_registered'));
  });

  it('gives tokens that live their whole life, also without a refresh token', async () => {
    const short = web.as({ clientId: 'shop.short', secret: 'the-secret-of-one-without-refresh' });
    const code = await issueCode('shop.short');
    grantry.clock.advance(59_000);
    const { body } = await short.redeem(code);
    grantry.clock.advance(599_000);
    expect(await short.isActive(body.access_token)).toBe(true);
    grantry.clock.advance(1000);
    expect(await short.isActive(body.access_token)).toBe(false);
  });

  it('missing or foreign is refused without a read of any store', async () => {
    const missing = await web.redeem('');
    expect(missing).toMatchObject({ status: 400, body: { error: 'invalid_request' }, reason: 'code_missing' });
    for (const text of ['x', 'ac1.000.short.short', `ac1.999.${'a'.repeat(27)}.${'a'.repeat(27)}`]) {
      expect(await web.redeem(text)).toMatchObject(invalidGrant('code_unknown'));
    }
    expect(await web.redeem(`ac1.000.${'a'.repeat(27)}.${'a'.repeat(27)}`)).toMatchObject(invalidGrant('code_gone'));
  });
});

describe('PKCE', () => {
  it.each([
    ['absent', undefined],
    ['empty', ''],
    ['white space', ' '],
    ['of 42 characters', PKCE.verifier.slice(1)],
    ['of 129 characters', 'a'.repeat(129)],
    ['with a character outside the unreserved set', `${PKCE.verifier}%`],
    ['the challenge itself', PKCE.challenge],
  ])('refuses a verifier that is %s', async (_what, verifier) => {
    const code = await issueCode();
    const answer = await web.redeem(code, { code_verifier: verifier });
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    expect(await web.redeem(code)).toMatchObject({ status: 200 });
  });

  it('cannot be left out for a code that has no challenge: no client can redeem that', async () => {
    for (const verifier of [PKCE.verifier, undefined]) {
      const code = await issueCode(WEB.clientId, { codeChallenge: undefined });
      expect(await web.redeem(code, { code_verifier: verifier })).toMatchObject(invalidGrant('code_proof_mismatch'));
    }
  });

  it('lets five wrong verifiers kill the code, and revokes nothing', async () => {
    const code = await issueCode();
    for (let attempt = 0; attempt < 5; attempt++) {
      const wrong = await web.redeem(code, { code_verifier: `${PKCE.verifier}${attempt}` });
      expect(wrong).toMatchObject(invalidGrant('verifier_mismatch'));
    }
    expect(await web.redeem(code)).toMatchObject(invalidGrant('code_gone'));
  });

  it('does not count malformed verifiers, wrong addresses and wrong clients', async () => {
    const code = await issueCode();
    for (let attempt = 0; attempt < 6; attempt++) {
      await web.redeem(code, { code_verifier: 'short' });
      await web.redeem(code, { redirect_uri: 'https://app.example/other' });
      await web.as(OTHER).redeem(code);
    }
    expect(await web.redeem(code)).toMatchObject({ status: 200 });
  });
});

describe('the audience of a code’s token', () => {
  const audienceOf = (token: unknown) => JSON.parse(atob(String(token).split('.')[1] ?? '')).aud;

  it('is the default of those the grant covers', async () => {
    const audiences = ['https://files.shop.example/', AUDIENCE];
    const { body } = await web.redeem(await issueCode(WEB.clientId, { audiences }));
    expect(audienceOf(body.access_token)).toBe(AUDIENCE);
  });

  it('is picked by one resource parameter', async () => {
    const resource = 'https://files.shop.example/';
    const { body } = await web.redeem(await issueCode(WEB.clientId, { audiences: shared.audiences }), { resource });
    expect(audienceOf(body.access_token)).toBe(resource);
  });

  it.each(['https://elsewhere.example/', 'relative', 'https://api.shop.example/#fragment'])(
    'is never %s, and the code stays good',
    async (resource) => {
      const code = await issueCode();
      const answer = await web.redeem(code, { resource });
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_target' } });
      expect(await web.redeem(code)).toMatchObject({ status: 200 });
    },
  );
});
