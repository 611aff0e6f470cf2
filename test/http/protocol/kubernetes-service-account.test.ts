// kubernetes_service_account over HTTP: the claims and keys by which a pod's token authenticates a client, each window at its
// edge. Tokens of a real API server are in test/cluster/.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AccountIssuer, clusterIssuerUnavailable } from '../../../src/oauth/ports/cluster-issuer.ts';
import type { VerificationKey } from '../../../src/oauth/values/jwk.ts';
import { type Grantry, readJson, startGrantry } from '../../grantry.ts';
import { aKey, readKey, sign } from '../../oauth/values/signed-tokens.ts';

const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const CLUSTER = 'https://kubernetes.default.svc.cluster.local';
const CLIENT = 'shop.reports';
const UID = '0d7a2f0e-6f2b-4d8e-9d0f-3a6a3a1b1c01';

const clusterKey = aKey('RS256');
const otherKey = aKey('RS256');
const served = readKey({ ...clusterKey.jwk, kid: 'one' });

describe('the token of a ServiceAccount', () => {
  let grantry: Grantry;
  let current: (kid: string | undefined) => Promise<AccountIssuer<VerificationKey>>;
  const known = async () => ({ issuer: CLUSTER, keys: [served] });
  beforeAll(async () => {
    const shared = { grantTypes: ['client_credentials'], redirectUris: [], namespace: 'shop' };
    grantry = await startGrantry({
      clusterIssuer: { current: (kid) => current(kid) },
      clients: [
        {
          ...shared,
          clientId: CLIENT,
          authMethod: 'kubernetes_service_account',
          serviceAccounts: [
            { name: 'other', uid: 'uid-of-other' },
            { name: 'reports', uid: UID },
          ],
        },
        { ...shared, clientId: 'shop.secret', secret: 'a-secret-of-more-than-32-characters-xyz' },
      ],
    });
  });
  beforeEach(() => {
    current = known;
  });
  afterAll(() => grantry.stop());

  const seconds = () => Math.floor(grantry.clock.now() / 1000);

  function claims(different: object = {}): object {
    return {
      iss: CLUSTER,
      sub: 'system:serviceaccount:shop:reports',
      aud: [grantry.issuer],
      iat: seconds(),
      nbf: seconds(),
      exp: seconds() + 3600,
      jti: 'an-id',
      'kubernetes.io': {
        namespace: 'shop',
        serviceaccount: { name: 'reports', uid: UID },
        pod: { name: 'p', uid: 'q' },
      },
      ...different,
    };
  }

  const request = (assertion: string, different: Record<string, string> = {}) =>
    grantry.post('/token', {
      grant_type: 'client_credentials',
      client_id: CLIENT,
      client_assertion_type: JWT_BEARER,
      client_assertion: assertion,
      ...different,
    });

  const signed = (different: object = {}, header: object = { kid: 'one' }) =>
    sign(clusterKey, claims(different), header);

  const lastReason = () => grantry.audits().at(-1)?.reason;

  it('of a registered account → a token, also with the same assertion again', async () => {
    const assertion = await signed();
    for (const _ of [1, 2]) expect((await request(assertion)).status).toBe(200);
  });

  it('without client_id → 401: the token names an account and no client', async () => {
    const response = await grantry.post('/token', {
      grant_type: 'client_credentials',
      client_assertion_type: JWT_BEARER,
      client_assertion: await signed(),
    });
    expect(response.status).toBe(401);
    expect(lastReason()).toBe('client_id_missing');
  });

  it.each([
    ['audience, as a string', () => ({ aud: grantry.issuer }), 'account_token_audience_mismatch'],
    ['audience, one more', () => ({ aud: [grantry.issuer, 'https://x.example'] }), 'account_token_audience_mismatch'],
    ['audience, that of the API server', () => ({ aud: [CLUSTER] }), 'account_token_audience_mismatch'],
    ['audience, with a final slash', () => ({ aud: [`${grantry.issuer}/`] }), 'account_token_audience_mismatch'],
    ['issuer', () => ({ iss: 'https://other.example' }), 'account_token_issuer_mismatch'],
    ['namespace', () => accountOf({ namespace: 'bank' }), 'account_of_another_namespace'],
    ['account', () => accountOf({ name: 'stranger' }), 'account_not_registered'],
    ['uid, as after a re-creation', () => accountOf({ uid: 'another' }), 'account_was_replaced'],
    ['sub', () => ({ sub: 'system:serviceaccount:shop:other' }), 'account_token_malformed'],
    ['form, without kubernetes.io', () => ({ 'kubernetes.io': undefined }), 'account_token_malformed'],
    ['form, with null for kubernetes.io', () => ({ 'kubernetes.io': null }), 'account_token_malformed'],
    ['form, with a text for kubernetes.io', () => ({ 'kubernetes.io': 'shop' }), 'account_token_malformed'],
    ['form, with a list for its name', () => accountOf({ name: ['reports'] }), 'account_token_malformed'],
    ['form, with a list for its namespace', () => accountOf({ namespace: ['shop'] }), 'account_token_malformed'],
    ['form, with a number for its uid', () => accountOf({ uid: 7 }), 'account_token_malformed'],
    ['form, without an account', () => ({ 'kubernetes.io': { namespace: 'shop' } }), 'account_token_malformed'],
    ['lifetime, 3601 s', () => ({ exp: seconds() + 3601 }), 'account_token_lifetime_too_long'],
    ['lifetime, a year, in its last minute', () => lasting(365 * 86_400, 60), 'account_token_lifetime_too_long'],
    ['lifetime, 3601 s, in its last second', () => lasting(3601, 1), 'account_token_lifetime_too_long'],
    ['lifetime, none', () => ({ exp: undefined }), 'account_token_times_malformed'],
    ['time, with a text for iat', () => ({ iat: String(seconds()) }), 'account_token_times_malformed'],
    ['time, with a text for exp', () => ({ exp: String(seconds() + 60) }), 'account_token_times_malformed'],
    ['time, with a text for nbf', () => ({ nbf: String(seconds()) }), 'account_token_times_malformed'],
    ['exp, 61 s ago', () => ({ iat: seconds() - 3000, exp: seconds() - 61 }), 'account_token_expired'],
    ['iat, 61 s ahead', () => ({ iat: seconds() + 61, exp: seconds() + 600 }), 'account_token_not_yet_valid'],
    ['nbf, 61 s ahead', () => ({ nbf: seconds() + 61 }), 'account_token_not_yet_valid'],
  ])('of another %s → 401', async (_, different, reason) => {
    const response = await request(await signed(different()));
    expect(response.status).toBe(401);
    expect(await readJson(response)).toMatchObject({ error: 'invalid_client' });
    expect(lastReason()).toBe(reason);
  });

  it.each([
    ['exp, 60 s ago', () => ({ iat: seconds() - 3000, exp: seconds() - 60 })],
    ['iat, 60 s ahead', () => ({ iat: seconds() + 60, nbf: seconds() + 60, exp: seconds() + 600 })],
    ['a lifetime of 3600 s, in its last second', () => lasting(3600, 1)],
    ['no nbf', () => ({ nbf: undefined })],
  ])('at the edge of its window: %s → a token', async (_, different) => {
    expect((await request(await signed(different()))).status).toBe(200);
  });

  it('signed by another key → 401, whatever its kid says', async () => {
    expect((await request(await sign(otherKey, claims(), { kid: 'one' }))).status).toBe(401);
    expect(lastReason()).toBe('signature_invalid');
    expect((await request(await sign(otherKey, claims(), { kid: 'two' }))).status).toBe(401);
    expect(lastReason()).toBe('key_unknown');
  });

  it('signed by a key that the cluster has rotated in → the issuer is asked for that key', async () => {
    const asked: (string | undefined)[] = [];
    current = async (kid) => {
      asked.push(kid);
      return { issuer: CLUSTER, keys: [served, readKey({ ...otherKey.jwk, kid: 'two' })] };
    };
    expect((await request(await sign(otherKey, claims(), { kid: 'two' }))).status).toBe(200);
    expect(asked).toEqual(['two']);
  });

  it.each(['ES256', 'ES384', 'PS256', 'EdDSA'] as const)(
    'signed by a key of the cluster for %s → a token',
    async (algorithm) => {
      const key = aKey(algorithm);
      current = async () => ({ issuer: CLUSTER, keys: [readKey({ ...key.jwk, kid: 'other' })] });
      expect((await request(await sign(key, claims(), { kid: 'other' }))).status).toBe(200);
    },
  );

  it('while the issuer was never read → 503 with Retry-After; other clients are served', async () => {
    const assertion = await signed();
    current = () => Promise.reject(clusterIssuerUnavailable('unreachable'));
    const response = await request(assertion);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    const other = await grantry.post(
      '/token',
      { grant_type: 'client_credentials' },
      {
        headers: {
          authorization: `Basic ${Buffer.from('shop.secret:a-secret-of-more-than-32-characters-xyz').toString('base64')}`,
        },
      },
    );
    expect(other.status).toBe(200);
  });

  it('for a client of another method, and for one that does not exist → 401 like any failure', async () => {
    for (const clientId of ['shop.secret', 'shop.nothing']) {
      const response = await request(await signed(), { client_id: clientId });
      expect([response.status, (await readJson(response)).error]).toEqual([401, 'invalid_client']);
    }
  });

  /** The times of a token that ends in so many seconds. */
  function lasting(lifetime: number, left: number): object {
    const exp = seconds() + left;
    return { iat: exp - lifetime, nbf: exp - lifetime, exp };
  }

  function accountOf({ namespace = 'shop', name = 'reports', uid = UID }: Partial<Record<string, unknown>>): object {
    return {
      sub: `system:serviceaccount:${namespace}:${name}`,
      'kubernetes.io': { namespace, serviceaccount: { name, uid } },
    };
  }
});
