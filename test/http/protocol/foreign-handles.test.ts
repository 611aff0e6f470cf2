// Handles that are not ours, over HTTP: truncated, with one byte changed, or of another deployment. A guessed token
// costs no store call (security row RF14).

import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { generateSigningKeyPem, importSigningKey } from '../../../src/oauth/registry/keys.ts';
import { type Grantry, type GrantryOptions, startGrantry, type TestClient } from '../../grantry.ts';
import { TokenCalls, WEB } from './token-calls.ts';

const ISSUER = 'https://id.example';
const OPAQUE: TestClient & { readonly secret: string } = {
  clientId: 'shop.opaque',
  secret: 'the-secret-of-the-opaque-client',
  tokens: {
    accessTokenFormat: 'opaque',
    accessTokenLifetimeSeconds: 600,
    refreshTokenIdleLifetimeSeconds: 86_400,
    refreshTokenLifetimeSeconds: 864_000,
    refreshTokenRotation: 'Always',
    refreshTokenReuseGraceSeconds: 10,
  },
};
const clients = [WEB, OPAQUE];
const pepper = randomBytes(32);

const storeCalls: string[] = [];

/** The same stores; every call is recorded. */
function recording(stores: Stores): Stores {
  const each = Object.entries(stores).map(([name, store]: [string, object]) => [
    name,
    new Proxy(store, {
      get(target, action) {
        const method: unknown = Reflect.get(target, action);
        if (typeof method !== 'function') return method;
        return (...args: unknown[]) => {
          storeCalls.push(`${name}.${String(action)}`);
          return method.apply(target, args);
        };
      },
    }),
  ]);
  return Object.fromEntries(each) as Stores;
}

const ours = await startGrantry({ issuer: ISSUER, clients, pepper, wrapStores: recording });
const web = new TokenCalls(ours);
const opaque = web.as(OPAQUE);
beforeEach(() => {
  storeCalls.length = 0;
});

/** Another deployment with the same clients and a key of its own. */
async function elsewhere(options: Partial<GrantryOptions>): Promise<Grantry> {
  const key = await importSigningKey(await generateSigningKeyPem('ES256'), 'ES256', 'Active');
  return await startGrantry({ issuer: ISSUER, clients, pepper, keys: [key], ...options });
}
const foreign = {
  'another pepper': await elsewhere({ pepper: randomBytes(32) }),
  'another issuer': await elsewhere({ issuer: 'https://other.example' }),
};

interface Issued {
  readonly code: string;
  readonly access: string;
  readonly refresh: string;
}

/** A code that was not redeemed yet, and the tokens of another one. */
async function issuedBy(grantry: Grantry, client: typeof OPAQUE | typeof WEB): Promise<Issued> {
  const { status, body } = await new TokenCalls(grantry, client).redeem(await grantry.issueCode(client.clientId));
  expect(status).toBe(200);
  const code = await grantry.issueCode(client.clientId);
  storeCalls.length = 0;
  return { code, access: String(body.access_token), refresh: String(body.refresh_token) };
}

/** A handle with the byte there replaced by another one of its kind. */
function changed(handle: string, index: number): string {
  const byte = handle[index] ?? '';
  const other = /\d/.test(byte) ? `${(Number(byte) + 1) % 10}` : byte === 'A' ? 'B' : 'A';
  return handle.slice(0, index) + other + handle.slice(index + 1);
}

const everyChange = (handle: string) => Array.from(handle, (_, index) => changed(handle, index));
const everyBeginning = (handle: string) => Array.from(handle, (_, index) => handle.slice(0, index)).slice(1);

/** What each endpoint says to a token that is not ours. */
async function expectUnknown(calls: TokenCalls, token: string, { isRefresh }: { readonly isRefresh: boolean }) {
  expect(await calls.introspect(token)).toMatchObject({ status: 200, body: { active: false } });
  expect(await calls.revoke(token)).toMatchObject({ status: 200, body: {} });
  if (!isRefresh) return;
  expect(await calls.refresh(token)).toMatchObject({
    status: 400,
    body: { error: 'invalid_grant' },
    reason: 'refresh_token_unknown',
  });
}

describe('a refresh token costs no store call and harms no grant', () => {
  it.each([
    ['any byte changed', everyChange],
    ['its end cut off', everyBeginning],
  ])('with %s', async (_, corrupt) => {
    const { refresh } = await issuedBy(ours, WEB);
    for (const token of corrupt(refresh)) await expectUnknown(web, token, { isRefresh: true });
    expect(storeCalls).toEqual([]);
    expect(await web.refresh(refresh)).toMatchObject({ status: 200 });
    expect(storeCalls).toContain('grants.rotate');
  });

  it.each(Object.entries(foreign))('from a deployment with %s', async (_, there) => {
    const { refresh } = await issuedBy(there, WEB);
    await expectUnknown(web, refresh, { isRefresh: true });
    expect(storeCalls).toEqual([]);
    expect(await new TokenCalls(there).refresh(refresh)).toMatchObject({ status: 200 });
  });
});

describe('a JWT access token costs no store call and harms no grant', () => {
  it('with a byte of any part changed, or its end cut off', async () => {
    const { access } = await issuedBy(ours, WEB);
    // The last character of a signature has spare bits.
    const changes = everyChange(access).slice(0, -1);
    const some = [...changes, ...everyBeginning(access)].filter((_, index) => index % 7 === 0);
    for (const token of some) await expectUnknown(web, token, { isRefresh: false });
    expect(storeCalls).toEqual([]);
    expect(await web.isActive(access)).toBe(true);
  });

  it.each(Object.entries(foreign))('from a deployment with %s', async (_, there) => {
    const { access } = await issuedBy(there, WEB);
    await expectUnknown(web, access, { isRefresh: false });
    expect(storeCalls).toEqual([]);
  });
});

// Codes and opaque access tokens carry a secret instead of a MAC: the store knows its digest.
describe('an opaque access token', () => {
  it('with its end cut off costs no store call; with any byte changed it is unknown and harms no grant', async () => {
    const { access } = await issuedBy(ours, OPAQUE);
    for (const token of everyBeginning(access)) await expectUnknown(opaque, token, { isRefresh: false });
    expect(storeCalls).toEqual([]);
    for (const token of everyChange(access)) await expectUnknown(opaque, token, { isRefresh: false });
    expect(await opaque.isActive(access)).toBe(true);
  });

  it.each(Object.entries(foreign))('from a deployment with %s is unknown', async (_, there) => {
    const { access } = await issuedBy(there, OPAQUE);
    await expectUnknown(opaque, access, { isRefresh: false });
  });
});

describe('a code', () => {
  const refused = { status: 400, body: { error: 'invalid_grant' } };

  it('with its end cut off costs no store call; with any byte changed it is refused and harms no grant', async () => {
    const { code } = await issuedBy(ours, WEB);
    for (const beginning of everyBeginning(code)) expect(await web.redeem(beginning)).toMatchObject(refused);
    expect(storeCalls).toEqual([]);
    for (const other of everyChange(code)) expect(await web.redeem(other)).toMatchObject(refused);
    expect(await web.redeem(code)).toMatchObject({ status: 200 });
  });

  it.each(Object.entries(foreign))('from a deployment with %s is refused', async (_, there) => {
    const { code } = await issuedBy(there, WEB);
    expect(await web.redeem(code)).toMatchObject(refused);
    expect(await new TokenCalls(there).redeem(code)).toMatchObject({ status: 200 });
  });
});
