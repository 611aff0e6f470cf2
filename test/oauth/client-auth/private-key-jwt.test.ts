// The work of verifying an assertion (security row C6): one signature is verified whatever the client is. Verifications are
// counted here, because an answer alone does not show them.

import { verify } from 'node:crypto';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { CLIENT_AUTH_METHODS } from '../../../src/oauth/client-auth/index.ts';
import type { ClientAuthAttempt } from '../../../src/oauth/client-auth/method.ts';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { Parameters } from '../../../src/oauth/values/parameters.ts';
import { aClient } from '../a-client.ts';
import { aKey } from '../values/signed-tokens.ts';
import { asserted, assertedBy, assertionOf } from './client-assertions.ts';

vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof import('node:crypto')>();
  return { ...crypto, verify: vi.fn(crypto.verify) };
});

const verifications = vi.mocked(verify);
const KEY = aKey('ES256');
const PARTY = { clientId: 'shop.worker', issuer: 'https://as.example', now: 1_700_000_000_000 };
const CONTEXT = {
  issuer: PARTY.issuer,
  tokenEndpoint: `${PARTY.issuer}/token`,
  clock: { now: () => PARTY.now },
  keySets: { keysAt: () => Promise.reject(new Error('no client here publishes keys')) },
  clusterIssuer: { current: () => Promise.reject(new Error('no client here has accounts')) },
  certificates: undefined,
};

function attemptOf(form: Readonly<Record<string, string>>): ClientAuthAttempt | undefined {
  const parameters = new Parameters(new Map(Object.entries(form).map(([name, value]) => [name, [value]])));
  const credentials = { parameters, authorization: undefined, certificate: undefined, proof: undefined };
  return CLIENT_AUTH_METHODS.get('private_key_jwt')?.attempt(credentials);
}

const worker = (assertion = assertedBy([KEY])) =>
  aClient({ clientId: PARTY.clientId, authMethod: 'private_key_jwt', assertion });

beforeEach(() => {
  verifications.mockClear();
});

describe('the work for an assertion', () => {
  it.each<[string, Client | undefined]>([
    ['its client', worker()],
    ['no client', undefined],
    ['a client of another key', worker(assertedBy([aKey('ES256')]))],
    ['a client of other algorithms', worker(assertedBy([aKey('EdDSA')]))],
    ['a client without keys', worker(assertedBy([]))],
  ])('of %s → one signature is verified', async (_, client) => {
    await attemptOf(asserted(await assertionOf(KEY, PARTY)))?.verify(client, CONTEXT);
    expect(verifications).toHaveBeenCalledTimes(1);
  });

  it.each(['exp', 'aud', 'jti'])('without %s → the same for a client and for none', async (claim) => {
    const form = asserted(await assertionOf(KEY, PARTY, { [claim]: undefined }));
    for (const client of [worker(), undefined]) await attemptOf(form)?.verify(client, CONTEXT);
    expect(verifications).toHaveBeenCalledTimes(2);
  });
});

describe('the mark of an assertion', () => {
  const markOf = async (changes: object) => {
    const verified = await attemptOf(asserted(await assertionOf(KEY, PARTY, changes)))?.verify(worker(), CONTEXT);
    return verified?.ok ? verified.mark : undefined;
  };
  const now = PARTY.now / 1000;

  it('is by client and jti, from iat until it is too old, and the skew of the store longer', async () => {
    expect(await markOf({ jti: 'one', iat: now - 5, exp: now + 60 })).toEqual({
      kind: 'client_assertion',
      value: `${worker().uid} one`,
      issuedAt: PARTY.now - 5000,
      expiresAt: PARTY.now + 122_000,
    });
  });

  it('with exp an hour ahead → until its iat is five minutes old, and the skews longer', async () => {
    expect(await markOf({ iat: now - 5, exp: now + 3600 })).toMatchObject({
      issuedAt: PARTY.now - 5000,
      expiresAt: PARTY.now + 357_000,
    });
  });

  it('with iat ahead → from iat all the same, so that after a loss of marks new assertions of right clocks count', async () => {
    expect(await markOf({ iat: now + 59, exp: now + 60 })).toMatchObject({ issuedAt: PARTY.now + 59_000 });
  });

  it('without iat → from the first moment that it would have been accepted', async () => {
    expect(await markOf({ iat: undefined, exp: now + 60 })).toMatchObject({
      issuedAt: PARTY.now - 300_000,
      expiresAt: PARTY.now + 122_000,
    });
  });
});

describe('a method', () => {
  it('reads an assertion once for a request', async () => {
    const form = asserted(await assertionOf(KEY, PARTY));
    const parse = vi.spyOn(JSON, 'parse');
    const parameters = new Parameters(new Map(Object.entries(form).map(([name, value]) => [name, [value]])));
    const credentials = { parameters, authorization: undefined, certificate: undefined, proof: undefined };
    for (const method of [...CLIENT_AUTH_METHODS.values()]) method.attempt(credentials);
    for (const method of [...CLIENT_AUTH_METHODS.values()]) method.attempt(credentials);
    expect(parse).toHaveBeenCalledTimes(2);
    parse.mockRestore();
  });
});
