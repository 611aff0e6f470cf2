import { createLocalJWKSet, decodeJwt, errors, type JSONWebKeySet, jwtVerify } from 'jose';
import { describe, expect, it } from 'vitest';
import { hashPassword, LocalUsers } from '../../../../src/login/local/local-users.ts';
import type { Grant } from '../../../../src/oauth/ports/grant-store.ts';
import { generateSigningKeyPem, importSigningKey } from '../../../../src/oauth/registry/keys.ts';
import { startGrantry, TestClock } from '../../../grantry.ts';
import { aResource } from '../../../oauth/a-resource.ts';
import { API, TokenCalls, WEB } from '../token-calls.ts';
import { withToken } from './userinfo-calls.ts';

const NOTES = 'https://notes.example/api';
const NOTES_RESOURCE = aResource({ identifier: NOTES });
const clock = new TestClock();
const ada = {
  username: 'ada',
  displayName: 'Ada',
  email: 'ada@example.com',
  groups: ['dev', 'ops'],
  passwordHash: await hashPassword('a password of ada'),
};
const owners = new LocalUsers({ clock, users: [ada] });
const { subject = '' } = (await owners.authenticate('ada', 'a password of ada')) ?? {};
const newKey = async (algorithm: 'ES256' | 'RS256') =>
  importSigningKey(await generateSigningKeyPem(algorithm), algorithm, 'Active');
const keys = [await newKey('ES256'), await newKey('RS256')];

const OPENID = ['openid', 'profile', 'email', 'groups'];
const web = {
  ...WEB,
  scopes: ['notes.read', ...OPENID],
  defaultScopes: [],
  audiences: [NOTES],
  idTokens: { signingAlgorithm: 'RS256', lifetimeSeconds: 3600 } as const,
  groups: ['*'],
};
const plain = {
  clientId: 'shop.plain',
  secret: 'the-secret-of-one-without-audiences',
  scopes: OPENID,
  defaultScopes: [],
};
const clients = [web, plain, { ...API, resourceServerAudiences: [NOTES] }];
const grantry = await startGrantry({ owners, clock, keys, clients });
const calls = new TokenCalls(grantry);
const issuer = grantry.issuer;

const issueCode = (scope: readonly string[], grant: Partial<Grant> = {}) =>
  grantry.issueCode(WEB.clientId, {
    subject,
    scope,
    audiences: [NOTES, issuer],
    openid: { sid: 'sid-of-the-session', nonce: 'n-0S6_WzA2Mj' },
    authTime: clock.now() - 5000,
    ...grant,
  });

async function verified(idToken: unknown) {
  const response = await fetch(`${issuer}/.well-known/jwks.json`);
  const { payload, protectedHeader } = await jwtVerify(
    String(idToken),
    createLocalJWKSet((await response.json()) as JSONWebKeySet),
    {
      issuer,
      audience: WEB.clientId,
      currentDate: new Date(clock.now()),
    },
  );
  return { payload, protectedHeader };
}

describe('the ID token of a redemption', () => {
  it('given openid → reports the sign-in, and what its scopes disclose of the person', async () => {
    const { body } = await calls.redeem(await issueCode(['notes.read', ...OPENID]));
    const { payload, protectedHeader } = await verified(body.id_token);
    expect(protectedHeader).toEqual({ typ: 'JWT', alg: 'RS256', kid: expect.any(String) });
    const now = Math.floor(clock.now() / 1000);
    expect(payload).toEqual({
      iss: issuer,
      sub: subject,
      aud: WEB.clientId,
      iat: now,
      exp: now + 3600,
      auth_time: now - 5,
      at_hash: expect.any(String),
      sid: 'sid-of-the-session',
      nonce: 'n-0S6_WzA2Mj',
      jti: expect.any(String),
      name: 'Ada',
      preferred_username: 'ada',
      email: 'ada@example.com',
      email_verified: true,
      groups: ['dev', 'ops'],
    });
  });

  it('given an API as audience → the access token has the scope of the API alone', async () => {
    const { body } = await calls.redeem(await issueCode(['notes.read', ...OPENID]));
    expect(decodeJwt(String(body.access_token))).toMatchObject({ aud: NOTES, scope: 'notes.read' });
    expect(body.scope).toBe('notes.read');
  });

  it('given the issuer as resource → the access token is for userinfo, with the scopes of OpenID Connect', async () => {
    const { body } = await calls.redeem(await issueCode(['notes.read', ...OPENID]), { resource: issuer });
    expect(decodeJwt(String(body.access_token))).toMatchObject({ aud: issuer, scope: OPENID.join(' ') });
    expect((await verified(body.id_token)).payload.sub).toBe(subject);
  });

  it('given the issuer as default audience of the client → as with that resource; the API by resource', async () => {
    grantry.setClients([{ ...web, defaultAudience: issuer }]);
    const { body } = await calls.redeem(await issueCode(['notes.read', ...OPENID]));
    const { body: renewed } = await calls.refresh(body.refresh_token, { resource: NOTES });
    grantry.setClients(clients);
    expect(decodeJwt(String(body.access_token))).toMatchObject({ aud: issuer, scope: OPENID.join(' ') });
    expect(decodeJwt(String(renewed.access_token))).toMatchObject({ aud: NOTES, scope: 'notes.read' });
  });

  it('given a grant for a sign-in alone → the access token is for the issuer', async () => {
    const { body } = await calls.redeem(await issueCode(['openid'], { audiences: [issuer] }));
    expect(decodeJwt(String(body.access_token))).toMatchObject({ aud: issuer, scope: 'openid' });
    expect((await verified(body.id_token)).payload).not.toHaveProperty('name');
  });

  it('given a resource of an owner → the ID token comes beside a token for that', async () => {
    const { identifier, name } = NOTES_RESOURCE;
    const byReference = { ...web, audiences: [], resources: [{ namespace: undefined, name, scopes: undefined }] };
    grantry.setResources([NOTES_RESOURCE]);
    grantry.setClients([{ ...byReference, scopes: OPENID }]);
    const { body } = await calls.redeem(await issueCode(['notes.read', ...OPENID]));
    const { body: renewed } = await calls.refresh(body.refresh_token, { resource: issuer });
    grantry.setResources([]);
    grantry.setClients(clients);
    expect(decodeJwt(String(body.access_token))).toMatchObject({ aud: identifier, scope: 'notes.read' });
    expect((await verified(body.id_token)).payload).toMatchObject({ email: 'ada@example.com' });
    expect(renewed).toMatchObject({ scope: OPENID.join(' '), id_token: expect.any(String) });
  });

  it('given a grant without openid → none', async () => {
    const { body } = await calls.redeem(await issueCode(['notes.read'], { audiences: [NOTES], openid: undefined }));
    expect(body).toMatchObject({ scope: 'notes.read' });
    expect(body).not.toHaveProperty('id_token');
  });

  it.each([[['notes.read', 'email']], [['email']]])(
    'given %j without openid → that is the scope at the API, as ever',
    async (scope) => {
      const { body } = await calls.redeem(await issueCode(scope, { audiences: [NOTES], openid: undefined }));
      const { body: renewed } = await calls.refresh(body.refresh_token);
      expect([body.scope, renewed.scope]).toEqual([scope.join(' '), scope.join(' ')]);
      expect(decodeJwt(String(renewed.access_token)).aud).toBe(NOTES);
      expect(renewed).not.toHaveProperty('id_token');
    },
  );
});

describe('the ID token of a refresh', () => {
  it('→ is a new one of the same sign-in, without nonce, about the person as of now', async () => {
    const redeemed = await calls.redeem(await issueCode(['notes.read', ...OPENID]));
    const before = await verified(redeemed.body.id_token);
    clock.advance(60_000);
    await owners.replace([{ ...ada, groups: ['dev'] }]);
    const { body } = await calls.refresh(redeemed.body.refresh_token);
    await owners.replace([ada]);
    const { payload } = await verified(body.id_token);
    const { sub, aud, auth_time, sid } = before.payload;
    expect(payload).toMatchObject({ sub, aud, auth_time, sid, iat: Number(before.payload.iat) + 60, groups: ['dev'] });
    expect(payload).not.toHaveProperty('nonce');
    expect(payload.jti).not.toBe(before.payload.jti);
  });

  it('given a scope without openid → none; with it again → one', async () => {
    const { body } = await calls.redeem(await issueCode(['notes.read', 'openid']));
    const narrowed = await calls.refresh(body.refresh_token, { scope: 'notes.read' });
    expect(narrowed.body).not.toHaveProperty('id_token');
    const whole = await calls.refresh(narrowed.body.refresh_token);
    expect(whole.body).toHaveProperty('id_token');
  });

  it('given a client that lost a scope → what that disclosed is not in it', async () => {
    const { body } = await calls.redeem(await issueCode(['notes.read', 'openid', 'email']));
    grantry.setClients([{ ...web, scopes: ['notes.read', 'openid'] }]);
    const { body: renewed } = await calls.refresh(body.refresh_token);
    grantry.setClients(clients);
    expect((await verified(renewed.id_token)).payload).not.toHaveProperty('email');
  });
});

describe('groups that take more than 4 KiB', () => {
  const omitted = async () => {
    const text = await (await fetch(grantry.adminUrl('/metrics'))).text();
    return Number(/^grantry_groups_omitted_total (\d+)$/m.exec(text)?.[1]);
  };

  it('→ not in the ID tokens, each of which is counted; at userinfo', async () => {
    const before = await omitted();
    const groups = Array.from({ length: 100 }, (_, index) => `${'g'.repeat(50)}-${index}`);
    await owners.replace([{ ...ada, groups }]);
    const { body } = await calls.redeem(await issueCode(OPENID, { audiences: [issuer] }));
    const { body: renewed } = await calls.refresh(body.refresh_token);
    const disclosed = await withToken(grantry, renewed.access_token);
    await owners.replace([ada]);
    for (const { id_token } of [body, renewed]) {
      const { payload } = await verified(id_token);
      expect(payload).toMatchObject({ name: 'Ada', email: 'ada@example.com' });
      expect(payload).not.toHaveProperty('groups');
    }
    expect(disclosed.body.groups).toEqual(groups);
    expect(await omitted()).toBe(before + 2);
    await calls.redeem(await issueCode(OPENID));
    expect(await omitted()).toBe(before + 2);
  });

  it('→ one log line an hour and client, with the client and how many groups they are', async () => {
    const lines = () =>
      grantry.logs().filter(({ msg }) => String(msg).startsWith('the groups of a person are left out'));
    clock.advance(3_600_000);
    const before = lines().length;
    const groups = Array.from({ length: 100 }, (_, index) => `${'g'.repeat(50)}-${index}`);
    await owners.replace([{ ...ada, groups }]);
    const redeem = async ({ clientId, secret }: typeof plain | typeof web) => {
      const openid = { sid: 'sid-of-the-session', nonce: undefined };
      const code = await grantry.issueCode(clientId, { subject, scope: OPENID, audiences: [issuer], openid });
      expect((await new TokenCalls(grantry, { clientId, secret }).redeem(code)).status).toBe(200);
    };
    await redeem(web);
    clock.advance(3_599_999);
    await redeem(web);
    expect(lines().slice(before)).toMatchObject([{ level: 'warn', clientId: web.clientId, count: 100 }]);
    await redeem(plain);
    clock.advance(1);
    await redeem(web);
    await owners.replace([ada]);
    expect(
      lines()
        .slice(before)
        .map(({ clientId }) => clientId),
    ).toEqual([web, plain, web].map(({ clientId }) => clientId));
    expect(JSON.stringify(lines())).not.toContain(groups[0]);
  });
});

describe('an ID token', () => {
  it.each([60, 86_400])('of %i seconds → good until its last second, and not at its end', async (lifetimeSeconds) => {
    grantry.setClients([{ ...web, idTokens: { signingAlgorithm: 'ES256', lifetimeSeconds } }]);
    const { body } = await calls.redeem(await issueCode(OPENID));
    grantry.setClients(clients);
    const { exp = 0, iat } = decodeJwt(String(body.id_token));
    expect([iat, exp]).toEqual([Math.floor(clock.now() / 1000), Number(iat) + lifetimeSeconds]);
    clock.advance(exp * 1000 - 1 - clock.now());
    expect((await verified(body.id_token)).payload.sub).toBe(subject);
    clock.advance(1);
    await expect(verified(body.id_token)).rejects.toThrow(errors.JWTExpired);
  });
});

describe('without a key of the algorithm of the client', () => {
  it('a code is answered 503, and stays good', async () => {
    const code = await issueCode(['openid']);
    grantry.setKeys(keys.slice(0, 1));
    expect(await calls.redeem(code)).toMatchObject({ status: 503, reason: 'no_signing_key' });
    grantry.setKeys(keys);
    expect((await calls.redeem(code)).body).toHaveProperty('id_token');
  });
});
