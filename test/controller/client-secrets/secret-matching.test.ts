import { describe, expect, it, vi } from 'vitest';
import { nextVerifier } from '../../../src/controller/client-secrets/credential-changes.ts';
import type { CredentialSubject } from '../../../src/controller/client-secrets/credential-subject.ts';
import { presentSecret, stagedSecret } from '../../../src/controller/client-secrets/secret-matching.ts';
import { FIELD_MANAGER } from '../../../src/kubernetes/api/kubernetes-api.ts';
import type { KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';

vi.mock('../../../src/oauth/registry/client-secret.ts', { spy: true });

const UID = 'a3f1c2d4-0000-4000-8000-000000000001';
const PRESENT = 'p'.repeat(43);

const NEXT = 'n'.repeat(43);
const [BEFORE, AFTER] = [nextVerifier(UID, PRESENT, []), { ...nextVerifier(UID, NEXT, []), revision: 2 }];
/** A rotation is pending. */
const SUBJECT = {
  client: { namespace: 'shop', name: 'web', uid: UID },
  manifest: { spec: { auth: { method: 'client_secret_basic' } } },
  state: { verifiers: [AFTER, BEFORE] },
} as unknown as CredentialSubject;

/** @param own the keys that the controller wrote */
function secretOf(texts: Record<string, string>, own: readonly string[]): KubernetesObject {
  const data = Object.fromEntries(
    Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
  );
  const fieldsV1 = { 'f:data': Object.fromEntries(own.map((key) => [`f:${key}`, {}])) };
  const managedFields = [{ manager: FIELD_MANAGER, fieldsV1 }];
  const metadata = {
    name: 'web-oauth',
    uid: '1',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
    managedFields,
  };
  return { apiVersion: 'v1', kind: 'Secret', metadata, data };
}

describe('a key that was renamed while a rotation is pending', () => {
  const found = (texts: Record<string, string>, own: readonly string[]) => presentSecret(SUBJECT, secretOf(texts, own));

  it('the staged secret is not the present one', () => {
    const texts = { 'password.next': NEXT, password: PRESENT };
    expect(found(texts, Object.keys(texts))).toBe(PRESENT);
  });

  it('the present secret is found under the former key', () => {
    expect(found({ issuer: 'https://id.example.a-long-name', password: PRESENT }, ['issuer', 'password'])).toBe(
      PRESENT,
    );
  });

  it('a key of another writer → what is under it does not count', () => {
    expect(found({ password: PRESENT }, [])).toBeUndefined();
  });

  it('no accepted secret under any key → none is found: no other text becomes the secret', () => {
    expect(found({ 'cookie-secret': 'c'.repeat(43) }, ['cookie-secret'])).toBeUndefined();
  });
});

describe('a staged secret', () => {
  const found = (texts: Record<string, string>) => stagedSecret(SUBJECT, secretOf(texts, Object.keys(texts)));

  it('is found beside the key, and beside the one that the key had before', () => {
    expect([found({ 'client-secret.next': NEXT }), found({ 'password.next': NEXT })]).toEqual([NEXT, NEXT]);
  });

  it('counts by its verifier: no other text, and none under another key, is one', () => {
    expect(found({ 'client-secret.next': 't'.repeat(43), next: NEXT, 'client-secret': NEXT })).toBeUndefined();
    expect(found({ 'client-secret.next': PRESENT })).toBeUndefined();
  });
});

describe('a Secret that its owner fills with texts under the field manager of the controller', () => {
  const verifiers = Array.from({ length: 32 }, (_, at) => nextVerifier(UID, `of before ${at}`, []));
  const subject = { ...SUBJECT, state: { verifiers } } as unknown as CredentialSubject;

  it.each([
    ['present', presentSecret, 'key'],
    ['staged', stagedSecret, 'key.next'],
  ] as const)('the %s secret is looked for in a bounded number of them', (_, find, key) => {
    const texts = Object.fromEntries(Array.from({ length: 5000 }, (_each, at) => [`${at}-${key}`, 'x'.repeat(32)]));
    const secret = secretOf(texts, Object.keys(texts));
    vi.mocked(secretVerifier).mockClear();
    expect(find(subject, secret)).toBeUndefined();
    expect(vi.mocked(secretVerifier).mock.calls.length).toBeLessThan(1000);
  });
});
