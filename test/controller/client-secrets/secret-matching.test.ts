import { expect, it } from 'vitest';
import { nextVerifier } from '../../../src/controller/client-secrets/credential-changes.ts';
import type { CredentialSubject } from '../../../src/controller/client-secrets/credential-subject.ts';
import { presentSecret } from '../../../src/controller/client-secrets/secret-matching.ts';

const UID = 'a3f1c2d4-0000-4000-8000-000000000001';
const PRESENT = 'p'.repeat(43);

it('given a key that was renamed while a rotation is pending → the present secret is found under the former key', () => {
  const present = nextVerifier(UID, PRESENT, []);
  const pending = nextVerifier(UID, 'n'.repeat(43), [present]);
  const subject = {
    client: { namespace: 'shop', name: 'web', uid: UID },
    manifest: { spec: { auth: { method: 'client_secret_basic' } } },
    state: { verifiers: [pending, present], writtenFields: JSON.stringify({ data: ['password'] }) },
  } as unknown as CredentialSubject;
  const data = { password: Buffer.from(PRESENT).toString('base64') };
  const metadata = { name: 'web-oauth', uid: '1', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
  expect(presentSecret(subject, { apiVersion: 'v1', kind: 'Secret', metadata, data })).toBe(PRESENT);
});
