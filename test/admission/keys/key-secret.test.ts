import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  importKeySecret,
  KEY_SECRET_TYPE,
  keySecretData,
  keySecretMetadata,
  keySecretName,
  readKeySecret,
  type StoredKey,
} from '../../../src/admission/keys/key-secret.ts';
import { isReplaced, olderPublisher, servedKeys } from '../../../src/admission/keys/served-keys.ts';
import { generateSigningKeyPem, importSigningKey } from '../../../src/oauth/registry/keys.ts';
import { sourceObject } from '../world.ts';

const HOUR = 3_600_000;
const pem = await generateSigningKeyPem('ES256');
const { kid } = await importSigningKey(pem, 'ES256', 'Active');

const key: StoredKey = {
  signingKeyName: 'default',
  keyId: kid,
  algorithm: 'ES256',
  state: 'Active',
  publishedAt: 1_800_000_000_000,
  activatedAt: 1_800_000_360_000,
  removeAfter: undefined,
  handledRotateAt: 'monday',
};

function keySecret(stored: StoredKey, material = pem) {
  const metadata = { name: keySecretName(stored), namespace: 'grantry-system', ...keySecretMetadata(stored) };
  return { metadata, type: KEY_SECRET_TYPE, data: keySecretData(material) };
}

describe('the Secret of a signing key', () => {
  it('is named as a Secret may be, by its ring and its thumbprint', () => {
    expect(keySecretName(key)).toMatch(/^default-[0-9a-f]{10}$/);
  });

  it.each(['Published', 'Active', 'Retiring', 'Revoked'] as const)('says all that is known of a %s key', (state) => {
    const stored = { ...key, state, removeAfter: state === 'Retiring' ? 1_800_000_720_000 : undefined };
    expect(readKeySecret(keySecret(stored))).toEqual(stored);
  });

  it('gives the key back that was put in', async () => {
    expect((await importKeySecret(keySecret(key), { ...key, state: 'Active' })).kid).toBe(kid);
  });

  it('with another key than it says is refused', async () => {
    const secret = keySecret(key, await generateSigningKeyPem('ES256'));
    await expect(importKeySecret(secret, { ...key, state: 'Active' })).rejects.toThrow(TypeError);
    await expect(importKeySecret({ ...secret, data: {} }, { ...key, state: 'Active' })).rejects.toThrow(TypeError);
  });

  const secret = keySecret(key);
  const relabelled = (labels: object) => ({
    ...secret,
    metadata: { ...secret.metadata, labels: { ...secret.metadata.labels, ...labels } },
  });
  it.each([
    ['of another type', { ...secret, type: 'Opaque' }],
    ['under another name', { ...secret, metadata: { ...secret.metadata, name: 'default-0123456789' } }],
    ['in an unknown state', relabelled({ 'grantry.dev/key-state': 'Sleeping' })],
    ['of another part', relabelled({ 'grantry.dev/part': 'verifier' })],
    ['of another ring than its name says', relabelled({ 'grantry.dev/signing-key': 'main' })],
    ['without annotations', { ...secret, metadata: { ...secret.metadata, annotations: undefined } }],
  ])('%s holds no key', (_, other) => {
    expect(readKeySecret(secret)).toBeDefined();
    expect(readKeySecret(other)).toBeUndefined();
  });

  it('that is anything at all is never thrown about', () => {
    const anything = fc.record({
      metadata: fc.oneof(fc.anything(), fc.record({ labels: fc.anything(), annotations: fc.anything() })),
      type: fc.constant(KEY_SECRET_TYPE),
    });
    fc.assert(fc.property(anything, (other) => readKeySecret(other) === undefined));
  });
});

describe('the keys that are served', () => {
  const ring = (name: string, createdAt: number, spec: object = {}) => ({
    ...sourceObject({ kind: 'SigningKey', metadata: { name, namespace: 'grantry-system' }, spec }),
    createdAt,
  });
  const named = (signingKeyName: string, keyId: string, changes: Partial<StoredKey> = {}): StoredKey => ({
    ...key,
    signingKeyName,
    keyId,
    ...changes,
  });
  const idsOf = (objects: Parameters<typeof servedKeys>[0], keys: readonly StoredKey[]) =>
    servedKeys(objects, keys).map(({ keyId }) => keyId);

  it('begin with the one that was activated last', () => {
    const keys = [named('a', 'old'), named('a', 'new', { activatedAt: key.publishedAt + HOUR })];
    expect(idsOf([ring('a', 1)], keys)).toEqual(['new', 'old']);
  });

  it('begin with the preferred algorithm, then with the newest ring', () => {
    const objects = [ring('a', 1), ring('b', 2), ring('c', 3)];
    const keys = [named('a', 'a'), named('b', 'b'), named('c', 'c', { algorithm: 'EdDSA' })];
    expect(idsOf(objects, keys)).toEqual(['b', 'a', 'c']);
  });

  it('leave out what is revoked, by the manifest or by its Secret', () => {
    const keys = [named('a', 'one'), named('a', 'two', { state: 'Revoked' }), named('a', 'three')];
    expect(idsOf([ring('a', 1, { revokedKeyIds: ['one'] })], keys)).toEqual(['three']);
  });

  it('leave out a key that any SigningKey revokes: one that two import was published by either', () => {
    const keys = [named('a', 'one'), named('b', 'one'), named('b', 'two'), named('gone', 'three')];
    expect(idsOf([ring('a', 1, { revokedKeyIds: ['one', 'three'] }), ring('b', 2)], keys)).toEqual(['two']);
    expect(idsOf([ring('a', 1), ring('b', 2, { revokedKeyIds: ['one'] })], keys)).toEqual(['two', 'three']);
  });

  it('leave out a suspended ring', () => {
    expect(idsOf([ring('a', 1, { suspended: true }), ring('b', 2)], [named('a', 'a'), named('b', 'b')])).toEqual(['b']);
  });

  it('outlive their SigningKey, and sign only when no other can', () => {
    const keys = [named('gone', 'orphan'), named('a', 'a', { algorithm: 'RS256' })];
    expect(idsOf([ring('a', 1)], keys)).toEqual(['a', 'orphan']);
    expect(idsOf([], keys)).toHaveLength(2);
  });

  it('end with the default of RS256, also behind those of a deleted SigningKey: it takes over no access token', () => {
    const keys = [
      named('default-rs256', 'rsa', { algorithm: 'RS256' }),
      named('gone', 'orphan', { algorithm: 'EdDSA' }),
      named('corp', 'ed', { algorithm: 'EdDSA' }),
      named('ours', 'own', { algorithm: 'RS256' }),
    ];
    const objects = [ring('default-rs256', 9), ring('corp', 1), ring('ours', 2)];
    expect(idsOf(objects, keys)).toEqual(['own', 'ed', 'orphan', 'rsa']);
    expect(idsOf([], keys).at(-1)).toBe('rsa');
  });

  it('of a deleted SigningKey are replaced once another signs access tokens, and one of RS256 where they are of it', () => {
    const rsa = { algorithm: 'RS256' } as const;
    const orphan = named('gone', 'orphan');
    const rsaOrphan = named('gone', 'orphan', rsa);
    const fallback = named('default-rs256', 'rsa', rsa);
    const other = named('a', 'a');
    const own = named('own', 'own', rsa);
    const [a, def] = [ring('a', 1), ring('default-rs256', 1, rsa)];
    const replaced = (key: StoredKey, objects: Parameters<typeof servedKeys>[0], keys: readonly StoredKey[]) =>
      isReplaced(key, { objects, keys: [key, ...keys] });
    expect(replaced(orphan, [a, def], [fallback])).toBe(false);
    expect(replaced(orphan, [a, def], [fallback, { ...other, state: 'Published' }])).toBe(false);
    expect(replaced(orphan, [a], [other])).toBe(true);
    expect(replaced(rsaOrphan, [a], [other])).toBe(false);
    expect(replaced(rsaOrphan, [a, def], [other])).toBe(false);
    expect(replaced(rsaOrphan, [a, def], [other, fallback])).toBe(true);
    expect(replaced(rsaOrphan, [ring('own', 1, rsa)], [own])).toBe(true);
    expect(replaced(rsaOrphan, [a, ring('own', 1, { ...rsa, suspended: true })], [other, own])).toBe(true);
    expect(replaced(fallback, [a, ring('own', 1, rsa)], [other, own])).toBe(true);
  });

  it('of one key id in several SigningKeys → that of the oldest, whichever was stored first; those of a deleted one last', () => {
    const keys = [
      named('gone', 'one', { algorithm: 'ES256' }),
      named('b', 'one', { algorithm: 'PS256' }),
      named('a', 'one', { algorithm: 'RS256', state: 'Retiring' }),
      named('b', 'other', { algorithm: 'PS256' }),
    ];
    const algorithmOf = (objects: Parameters<typeof servedKeys>[0], given: readonly StoredKey[]) =>
      servedKeys(objects, given)
        .filter(({ keyId }) => keyId === 'one')
        .map(({ algorithm }) => algorithm);
    const objects = [ring('b', 2), ring('a', 1)];
    for (const given of [keys, keys.toReversed()]) {
      expect(algorithmOf(objects, given)).toEqual(['RS256']);
      expect(algorithmOf([ring('b', 1), ring('a', 1)], given)).toEqual(['RS256']);
      expect(algorithmOf([ring('a', 1, { suspended: true }), ring('b', 2)], given)).toEqual(['PS256']);
      expect(algorithmOf([], given)).toEqual(['RS256']);
      const publishers = objects.map((object) => olderPublisher('one', object, { objects, keys: given }));
      expect(publishers).toEqual(['a', undefined]);
    }
  });

  it('outlive a mistake in their SigningKey', () => {
    expect(idsOf([ring('a', 1, { rotation: 'soon', revokedKeyIds: 7 })], [named('a', 'a')])).toEqual(['a']);
  });
});
