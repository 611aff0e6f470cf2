// How secrets are compared (security rows C6 and P9): by their digests, in constant time, with the same work for a client
// that does not exist. Comparisons are counted here, because an answer alone does not show it.

import { createHash, randomBytes, timingSafeEqual, verify } from 'node:crypto';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { memoryStores } from '../../../src/memory/stores.ts';
import { CLIENT_AUTH_METHODS } from '../../../src/oauth/client-auth/index.ts';
import type { VerificationContext } from '../../../src/oauth/client-auth/method.ts';
import { secretMatches, secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { Handles } from '../../../src/oauth/tokens/handles.ts';
import { Parameters } from '../../../src/oauth/values/parameters.ts';
import { digest, issued, redeemRequest } from '../../contracts/sample-grants.ts';
import { aClient } from '../a-client.ts';
import { JWT_BEARER } from './client-assertions.ts';

vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof import('node:crypto')>();
  return { ...crypto, timingSafeEqual: vi.fn(crypto.timingSafeEqual), verify: vi.fn(crypto.verify) };
});

const compare = vi.mocked(timingSafeEqual);
const signatures = vi.mocked(verify);

/** The pairs that were compared, each side as text. */
function compared(): readonly (readonly string[])[] {
  return compare.mock.calls.map((sides) => sides.map((side) => Buffer.from(side as Uint8Array).toString('base64url')));
}

/** What a request may present beside its parameters. */
const NOTHING_ELSE = { authorization: undefined, certificate: undefined, proof: undefined };

const ISSUER = 'https://as.example';
const CONTEXT: VerificationContext = {
  issuer: ISSUER,
  tokenEndpoint: `${ISSUER}/token`,
  clock: { now: () => 0 },
  keySets: { keysAt: () => Promise.reject(new Error('no method here reads keys')) },
  clusterIssuer: { current: () => Promise.reject(new Error('this method reads no accounts')) },
  certificates: undefined,
};

beforeEach(() => {
  compare.mockClear();
  signatures.mockClear();
});

describe('in constant time', () => {
  it('a client secret is compared as its digest, and an unknown client costs the same as a wrong secret', () => {
    const verifier = secretVerifier('uid', 'right');
    expect(secretMatches({ uid: 'uid', secretVerifiers: [verifier] }, ['wrong', 'w%72ong'])).toBe(false);
    const forWrong = compared();
    expect(forWrong[0]).toEqual(
      [secretVerifier('uid', 'wrong'), verifier].map((side) => Buffer.from(side).toString('base64url')),
    );
    compare.mockClear();
    expect(secretMatches(undefined, ['wrong', 'w%72ong'])).toBe(false);
    expect(compared()).toHaveLength(forWrong.length);
  });

  it('a public client costs the same work as one with a wrong secret', () => {
    const parameters = new Parameters(new Map([['client_id', ['shop.native']]]));
    CLIENT_AUTH_METHODS.get('none')
      ?.attempt({ ...NOTHING_ELSE, parameters })
      ?.verify(undefined, CONTEXT);
    expect(compared()).toHaveLength(1);
  });

  it.each([
    ['an unknown client', undefined],
    ['a client of ServiceAccounts', aClient({ serviceAccounts: [{ name: 'worker', uid: '1' }] })],
  ])('the token of an account of another issuer costs %s one signature', async (_, client) => {
    const header = { alg: 'ES256', kid: 'k' };
    const claims = { iss: 'https://other.example', sub: 'system:serviceaccount:shop:worker' };
    const parts = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
    const parameters = new Parameters(
      new Map([
        ['client_id', ['shop.worker']],
        ['client_assertion_type', [JWT_BEARER]],
        ['client_assertion', [`${parts.join('.')}.AAAA`]],
      ]),
    );
    const attempt = CLIENT_AUTH_METHODS.get('kubernetes_service_account')?.attempt({ ...NOTHING_ELSE, parameters });
    const clusterIssuer = { current: async () => ({ issuer: 'https://cluster.example', keys: [] }) };
    const verified = await attempt?.verify(client, { ...CONTEXT, clusterIssuer });
    expect(verified?.ok).toBe(false);
    expect(signatures).toHaveBeenCalledTimes(1);
  });

  it('a client secret is compared with every verifier, also after one has matched', () => {
    const secretVerifiers = ['new', 'old'].map((secret) => secretVerifier('uid', secret));
    expect(secretMatches({ uid: 'uid', secretVerifiers }, ['new'])).toBe(true);
    expect(compared()).toHaveLength(2);
  });

  it('the secret of a code and the challenge of its verifier are compared as digests', async () => {
    const { grants } = memoryStores({ clock: { now: () => 1_700_000_000_000 } });
    const grant = await issued(grants);
    const request = redeemRequest(grant, { secretHash: digest('another secret') });
    expect(await grants.redeem(request)).toEqual({ outcome: 'no_match' });
    expect(compared()).toHaveLength(1);
    compare.mockClear();
    const wrongVerifier = redeemRequest(grant, { verifierChallenge: digest('another verifier') });
    expect(await grants.redeem(wrongVerifier)).toEqual({ outcome: 'wrong_verifier' });
    expect(compared()).toHaveLength(2);
  });

  it('the MAC of a refresh token is compared with the right one', () => {
    const peppers = [createHash('sha256').update('pepper').digest()];
    const handles = new Handles({ issuer: 'https://as.example', peppers, random: { bytes: randomBytes } });
    const { shard, family } = handles.newCode('usr_alice');
    const [right, other] = [0, 1].map((generation) => handles.refreshToken({ shard, family }, generation));
    const mac = (token: string | undefined) => token?.split('.').at(-1) ?? '';
    expect(handles.parseRefreshToken(right?.replace(mac(right), mac(other)) ?? '')).toBeUndefined();
    const asText = (text: string) => Buffer.from(text, 'latin1').toString('base64url');
    expect(compared()).toEqual([[asText(mac(right)), asText(mac(other))]]);
  });
});
