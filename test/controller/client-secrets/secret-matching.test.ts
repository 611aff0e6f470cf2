import { describe, expect, it } from 'vitest';
import { nextVerifier } from '../../../src/controller/client-secrets/credential-changes.ts';
import type { CredentialSubject } from '../../../src/controller/client-secrets/credential-subject.ts';
import { presentSecret } from '../../../src/controller/client-secrets/secret-matching.ts';
import { FIELD_MANAGER } from '../../../src/kubernetes/api/kubernetes-api.ts';

const UID = 'a3f1c2d4-0000-4000-8000-000000000001';
const PRESENT = 'p'.repeat(43);

describe('a key that was renamed while a rotation is pending', () => {
  const present = nextVerifier(UID, PRESENT, []);
  const pending = nextVerifier(UID, 'n'.repeat(43), [present]);
  const found = (texts: Record<string, string>, own: readonly string[]) => {
    const subject = {
      client: { namespace: 'shop', name: 'web', uid: UID },
      manifest: { spec: { auth: { method: 'client_secret_basic' } } },
      state: { verifiers: [pending, present] },
    } as unknown as CredentialSubject;
    const data = Object.fromEntries(
      Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
    );
    const fieldsV1 = { 'f:data': Object.fromEntries(own.map((key) => [`f:${key}`, {}])) };
    const metadata = { name: 'web-oauth', uid: '1', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
    const managedFields = [{ manager: FIELD_MANAGER, fieldsV1 }];
    const owned = { ...metadata, managedFields };
    return presentSecret(subject, { apiVersion: 'v1', kind: 'Secret', metadata: owned, data });
  };

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
