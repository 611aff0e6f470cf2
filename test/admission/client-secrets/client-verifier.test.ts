import { describe, expect, it } from 'vitest';
import {
  activeVerifiers,
  type ClientVerifiers,
  readVerifierSecret,
  VERIFIER_SECRET_TYPE,
  verifierSecretData,
  verifierSecretName,
} from '../../../src/admission/client-secrets/client-verifier.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import type { VerificationKey } from '../../../src/oauth/values/jwk.ts';
import { aKey, readKey } from '../../oauth/values/signed-tokens.ts';

const UID = '6b8f6a52-5a0e-4b0e-9d5c-0f6a0f3f4c11';
const NOW = Date.parse('2026-03-01T12:00:00Z');

const VERIFIERS: ClientVerifiers = {
  revision: 7,
  verifiers: [
    { verifier: secretVerifier(UID, 'new'), revision: 3 },
    { verifier: secretVerifier(UID, 'old'), revision: 2, expiresAt: NOW + 1000 },
  ],
};

const SECRET = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: verifierSecretName(UID), namespace: 'grantry' },
  type: VERIFIER_SECRET_TYPE,
  data: verifierSecretData(VERIFIERS),
};

const base64 = (text: string) => Buffer.from(text).toString('base64');
const withVerifiers = (verifiers: unknown) => ({
  ...SECRET,
  data: { ...SECRET.data, verifiers: base64(JSON.stringify(verifiers)) },
});
const [entry] = JSON.parse(Buffer.from(String(SECRET.data.verifiers), 'base64').toString()) as Record<
  string,
  unknown
>[];

describe('a verifier Secret', () => {
  it('says what was written into it', () => {
    expect(readVerifierSecret(SECRET)).toEqual({ uid: UID, ...VERIFIERS });
  });

  it('says the same however it is written', () => {
    const verifiers = VERIFIERS.verifiers.slice(0, 1);
    const { data } = withVerifiers([entry]);
    const compact = { ...SECRET, data };
    const spaced = { ...SECRET, data: { ...data, verifiers: base64(JSON.stringify([entry]).replaceAll(',', ', ')) } };
    const folded = { ...SECRET, data: { ...data, verifiers: data.verifiers.replace(/.{40}/g, '$&\n') } };
    for (const secret of [compact, spaced, folded]) {
      expect(readVerifierSecret(secret)).toEqual({ uid: UID, revision: VERIFIERS.revision, verifiers });
    }
    const urlSafe = { ...compact, data: { ...data, verifiers: `-${data.verifiers.slice(1)}` } };
    expect(readVerifierSecret(urlSafe)).toBeUndefined();
    const indented = { ...compact, data: { ...data, verifiers: ` ${data.verifiers}` } };
    expect(readVerifierSecret(indented)).toBeUndefined();
  });

  it('holds no secret', () => {
    const text = Object.values(SECRET.data).map((value) => Buffer.from(value, 'base64').toString());
    expect(text.join()).not.toMatch(/new|old/);
  });

  it.each([
    ['of another type', { ...SECRET, type: 'Opaque' }],
    ['of another name', { ...SECRET, metadata: { name: `client-${UID}` } }],
    ['without data', { ...SECRET, data: undefined }],
    ['without verifiers', { ...SECRET, data: { revision: SECRET.data.revision } }],
    ['without revision', { ...SECRET, data: { verifiers: SECRET.data.verifiers } }],
    ['with a revision that is no number', { ...SECRET, data: { ...SECRET.data, revision: base64('x') } }],
    ['with verifiers that are not JSON', { ...SECRET, data: { ...SECRET.data, verifiers: base64('[') } }],
    ['with an empty list', withVerifiers([])],
    ['with a short verifier', withVerifiers([{ ...entry, verifier: 'AAAA' }])],
    ['with a verifier that is no text', withVerifiers([{ ...entry, verifier: 7 }])],
    ['with a secret before the first', withVerifiers([{ ...entry, revision: 0 }])],
    ['with a secret between two', withVerifiers([{ ...entry, revision: 1.5 }])],
    ['with a time that is none', withVerifiers([{ ...entry, expiresAt: 'tomorrow' }])],
    ['with nothing as a time', withVerifiers([{ ...entry, expiresAt: null }])],
    ['with something else than a list', withVerifiers({ 0: entry, length: 1 })],
    ['with one good verifier and one bad', withVerifiers([entry, {}])],
    ['that is no object', 'text'],
  ])('%s does not count', (_, secret) => {
    expect(readVerifierSecret(secret)).toBeUndefined();
  });

  it('with more verifiers than count is read as far as they do', () => {
    const list = Array.from({ length: 40 }, (_, index) => ({ ...entry, revision: 40 - index }));
    const revisions = readVerifierSecret(withVerifiers(list))?.verifiers.map(({ revision }) => revision);
    expect(revisions).toEqual(list.slice(0, 32).map(({ revision }) => revision));
  });

  it('counts each verifier until its own time', () => {
    const [current, previous] = VERIFIERS.verifiers.map(({ verifier }) => verifier);
    expect(activeVerifiers(VERIFIERS, NOW + 999)).toEqual([current, previous]);
    expect(activeVerifiers(VERIFIERS, NOW + 1000)).toEqual([current]);
  });
});

describe('a verifier Secret of a client without a secret', () => {
  const [ES256, RS256] = [aKey('ES256'), aKey('RS256')];
  const ANY_RSA = readKey({ ...aKey('PS256').jwk, alg: undefined });
  const JWKS = [ES256.key, RS256.key, ANY_RSA, readKey({ ...ES256.jwk, kid: 'with \u0080' })];
  const ACCOUNTS = [{ name: 'worker', uid: 'uid-1' }];
  const secretOf = (content: Omit<ClientVerifiers, 'revision'>, more: Readonly<Record<string, string>> = {}) => ({
    ...SECRET,
    data: { ...verifierSecretData({ revision: 3, ...content }), ...more },
  });

  it('says which keys verify, and by which algorithms', () => {
    const { jwks = [], ...read } = readVerifierSecret(secretOf({ verifiers: [], jwks: JWKS })) ?? {};
    expect(read).toEqual({ uid: UID, revision: 3, verifiers: [] });
    const facts = ({ kid, jwk, algorithms }: VerificationKey) => [kid, jwk, algorithms];
    expect(jwks.map(facts)).toEqual(JWKS.map(facts));
  });

  it('says which accounts there are', () => {
    const secret = secretOf({ verifiers: [], serviceAccounts: ACCOUNTS });
    expect(readVerifierSecret(secret)).toEqual({ uid: UID, revision: 3, verifiers: [], serviceAccounts: ACCOUNTS });
  });

  it('with a part that is emptied says the others', () => {
    const { jwks, ...read } = readVerifierSecret(secretOf(VERIFIERS, { jwks: '', serviceAccounts: '' })) ?? {};
    expect([jwks, read]).toEqual([undefined, { uid: UID, ...VERIFIERS }]);
    const { verifiers } = readVerifierSecret(secretOf({ verifiers: [], jwks: JWKS }, { verifiers: '' })) ?? {};
    expect(verifiers).toEqual([]);
  });

  it.each([
    ['keys that are no JSON', { jwks: base64('{') }],
    ['no keys', { jwks: base64('{"keys":[]}') }],
    ['a private key', { jwks: base64(JSON.stringify({ keys: [{ ...ES256.jwk, d: 'x' }] })) }],
    ['no accounts', { serviceAccounts: base64('[]') }],
    ['an account without uid', { serviceAccounts: base64('[{"name":"worker"}]') }],
    ['an empty uid', { serviceAccounts: base64('[{"name":"worker","uid":""}]') }],
  ])('with %s does not count', (_, part) => {
    expect(readVerifierSecret(secretOf(VERIFIERS, part))).toBeUndefined();
  });
});
