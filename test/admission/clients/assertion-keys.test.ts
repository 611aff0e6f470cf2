// The keys of private_key_jwt clients, from every source.

import { describe, expect, it } from 'vitest';
import type { VerificationKey } from '../../../src/oauth/values/jwk.ts';
import { aKey, readKey } from '../../oauth/values/signed-tokens.ts';
import { admitOne, clientDocument, MACHINE, policyDocument, summaryOf, type WorldSettings } from '../world.ts';

const [ES256, ES384, PS256, EDDSA] = [aKey('ES256'), aKey('ES384'), aKey('PS256'), aKey('EdDSA')];
const RS256 = { ...aKey('RS256').jwk };
const ANY_RSA = withoutAlg(PS256.jwk);

const SUPPORTED: WorldSettings = { supportedAuthMethods: ['private_key_jwt'] };

function withoutAlg({ alg: _, ...jwk }: object & { readonly alg?: unknown }): object {
  return jwk;
}

function client(privateKeyJwt: object) {
  return clientDocument({ ...MACHINE, auth: { method: 'private_key_jwt', privateKeyJwt } });
}

function configMap(data: object, name = 'keys', namespace = 'team') {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data };
}

function admitted(privateKeyJwt: object, documents: readonly object[] = [], settings: WorldSettings = {}) {
  const policy = policyDocument({ allow: { jwksHosts: ['app.example.com'] } });
  const verdict = admitOne([client(privateKeyJwt), policy, ...documents], { ...SUPPORTED, ...settings });
  const keys = verdict.client?.assertion?.keys;
  return {
    ...verdict,
    faultReasons: verdict.faults.map(({ reason }) => reason),
    kids: keys === undefined || 'jwksUri' in keys ? undefined : keys.map(({ kid, jwk }) => kid ?? jwk.kty),
    algorithms: verdict.client?.assertion?.algorithms,
  };
}

const named = (kid: string, jwk: object) => ({ ...jwk, kid });
const inline = (...keys: readonly object[]) => ({ jwks: { keys } });
const byConfigMap = { jwksConfigMapRef: { name: 'keys' } };

describe('inline keys', () => {
  it('one key → the client is served with it, and needs no Secret', () => {
    const { kids, conditions, wantsSecret, client: served } = admitted(inline(named('a', ES256.jwk)));
    expect(kids).toEqual(['a']);
    expect(wantsSecret).toBe(false);
    expect(served?.secretVerifiers).toEqual([]);
    expect(summaryOf(conditions)).toContain('CredentialsReady=True/NotRequired');
  });

  it('keys for other purposes beside a usable one → they are left out', () => {
    const others = [
      { ...ES384.jwk, use: 'enc' },
      { kty: 'EC', crv: 'secp256k1', x: 'AA', y: 'AA' },
    ];
    expect(admitted(inline(named('a', ES256.jwk), ...others)).kids).toEqual(['a']);
  });

  it.each([
    ['no key', []],
    ['an encryption key only', [{ ...ES256.jwk, use: 'enc' }]],
    ['a symmetric key', [{ kty: 'oct', x: 'AA' }]],
    ['a coordinate that is too short', [{ ...ES256.jwk, x: 'AA' }]],
    ['an RSA modulus of 1024 bits', [{ kty: 'RSA', e: 'AQAB', n: Buffer.alloc(128, 255).toString('base64url') }]],
    ['an exponent of 3072 bits', [{ ...ANY_RSA, e: Buffer.alloc(384, 255).toString('base64url') }]],
    ['RS256 only', [RS256]],
  ])('%s → InvalidJwks', (_, keys) => {
    const { faultReasons, conditions, client: served } = admitted(inline(...keys));
    expect(faultReasons).toEqual(['InvalidJwks']);
    expect(summaryOf(conditions)).toContain('ResolvedRefs=False/InvalidJwks');
    expect(served).toBeUndefined();
  });
});

describe('the algorithms of a client', () => {
  it('named none → those that its keys fit, and never RS256', () => {
    expect(admitted(inline(ANY_RSA, EDDSA.jwk)).algorithms).toEqual(['PS256', 'EdDSA']);
    expect(admitted({ jwksUri: 'https://app.example.com/jwks' }).algorithms).toEqual([
      'ES256',
      'ES384',
      'PS256',
      'EdDSA',
    ]);
  });

  it('named → exactly those, and the keys that fit one of them', () => {
    const chosen = { signingAlgorithms: ['RS256', 'ES256'] };
    const { kids, algorithms } = admitted({ ...inline(ANY_RSA, named('a', ES256.jwk), ES384.jwk), ...chosen });
    expect(algorithms).toEqual(['RS256', 'ES256']);
    expect(kids).toEqual(['RSA', 'a']);
  });

  it('named one that no key fits → InvalidJwks', () => {
    expect(admitted({ ...inline(ES256.jwk), signingAlgorithms: ['ES384'] }).faultReasons).toEqual(['InvalidJwks']);
  });

  it.each(['HS256', 'none', 'RS512', 'Ed25519', 'es256'])('%s → refused', (name) => {
    const { faults } = admitted({ ...inline(ES256.jwk), signingAlgorithms: ['ES256', name] });
    const path = ['spec', 'auth', 'privateKeyJwt', 'signingAlgorithms', 1];
    expect(faults).toMatchObject([{ reason: 'InvalidManifest', path }]);
  });
});

describe('the source of the keys', () => {
  const jwksUri = 'https://app.example.com/jwks';

  it.each([
    ['none', {}],
    ['inline keys and an address', { ...inline(ES256.jwk), jwksUri }],
    ['an address and a ConfigMap', { jwksUri, ...byConfigMap }],
  ])('%s → InvalidJwks', (_, block) => {
    expect(admitted(block, [configMap({})]).faultReasons).toEqual(['InvalidJwks']);
  });

  it('no block at all → InvalidJwks', () => {
    const spec = { ...MACHINE, auth: { method: 'private_key_jwt' } };
    const { faults } = admitOne([clientDocument(spec)], SUPPORTED);
    expect(faults).toMatchObject([{ reason: 'InvalidJwks', path: ['spec', 'auth', 'privateKeyJwt'] }]);
  });

  it('an address → the client is served with it', () => {
    expect(admitted({ jwksUri }).client?.assertion?.keys).toEqual({ jwksUri });
  });
});

describe('keys in a ConfigMap', () => {
  const jwks = (...keys: readonly object[]) => configMap({ 'jwks.json': JSON.stringify({ keys }) });

  it('a key under the default name, or another → the client is served with it', () => {
    expect(admitted(byConfigMap, [jwks(named('a', ES256.jwk))]).kids).toEqual(['a']);
    const other = configMap({ 'b.json': JSON.stringify({ keys: [named('b', EDDSA.jwk)] }) });
    expect(admitted({ jwksConfigMapRef: { name: 'keys', key: 'b.json' } }, [other]).kids).toEqual(['b']);
  });

  it('no such ConfigMap in its namespace → ConfigMapNotFound', () => {
    const elsewhere = { ...jwks(ES256.jwk), metadata: { namespace: 'other', name: 'keys' } };
    const { faultReasons, conditions } = admitted(byConfigMap, [elsewhere]);
    expect(faultReasons).toEqual(['ConfigMapNotFound']);
    expect(summaryOf(conditions)).toContain('ResolvedRefs=False/ConfigMapNotFound');
  });

  it.each([
    ['no such key', { other: '{}' }],
    ['binary data', { 'jwks.json': 5 }],
    ['no JSON', { 'jwks.json': 'keys: []' }],
    ['no JWK Set', { 'jwks.json': JSON.stringify(ES256.jwk) }],
    ['no keys', { 'jwks.json': '{"keys": []}' }],
    ['17 keys', { 'jwks.json': JSON.stringify({ keys: Array.from({ length: 17 }, () => ES256.jwk) }) }],
    ['more than 32 KiB', { 'jwks.json': JSON.stringify({ keys: [ES256.jwk], more: 'x'.repeat(32 * 1024) }) }],
    [
      'a private key beside a usable one',
      { 'jwks.json': JSON.stringify({ keys: [ES256.jwk, { ...EDDSA.jwk, d: 'x' }] }) },
    ],
    ['deep nesting', { 'jwks.json': '['.repeat(20_000) }],
  ])('%s → InvalidJwks', (_, data) => {
    const { faultReasons, client: served } = admitted(byConfigMap, [configMap(data)]);
    expect(faultReasons).toEqual(['InvalidJwks']);
    expect(served).toBeUndefined();
  });

  it('a private key → the message names its index, and holds nothing of it', () => {
    const secret = 'c2VjcmV0LXNlY3JldC1zZWNyZXQ';
    const { faults } = admitted(byConfigMap, [jwks(ES256.jwk, { ...EDDSA.jwk, d: secret })]);
    expect(faults[0]?.message).toContain('keys[1]');
    expect(JSON.stringify(faults)).not.toContain(secret);
  });

  it('assumed by an offline check → no fault, and not served', () => {
    const { faults, conditions, client: served } = admitted(byConfigMap, [], { otherConfigMaps: 'assumed' });
    expect(faults).toEqual([]);
    expect(summaryOf(conditions)).toContain('CredentialsReady=True/NotRequired');
    expect(served).toBeUndefined();
  });

  it('withheld from a token server → served with the stored keys, pending while there are none', () => {
    const withheld = { otherConfigMaps: 'withheld' } as const;
    const stored: readonly VerificationKey[] = [readKey(named('stored', ES256.jwk))];
    expect(admitted(byConfigMap, [], { ...withheld, jwksOf: () => stored }).kids).toEqual(['stored']);
    const waiting = admitted(byConfigMap, [], withheld);
    expect([waiting.faults, waiting.client]).toEqual([[], undefined]);
    expect(summaryOf(waiting.conditions)).toContain('CredentialsReady=Unknown/Pending');
  });
});
