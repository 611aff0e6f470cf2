// How many keys are published; which of them are served, and by what rank, is tested in test/controller/ and test/cluster/.

import { expect, it } from 'vitest';
import type { StoredKey } from '../../../src/admission/keys/key-secret.ts';
import { mayPublish } from '../../../src/admission/keys/served-keys.ts';
import { sourceObject } from '../world.ts';

function keys(count: number, state: StoredKey['state'], signingKeyName = 'ring'): readonly StoredKey[] {
  const times = { publishedAt: 0, activatedAt: undefined, removeAfter: undefined, handledRotateAt: undefined };
  return Array.from({ length: count }, (_, index) => {
    const keyId = `${signingKeyName}-${state}-${index}`;
    return { signingKeyName, keyId, algorithm: 'ES256', state, ...times };
  });
}

function ring(name: string, spec: object) {
  return sourceObject({ apiVersion: 'grantry.dev/v1alpha1', kind: 'SigningKey', metadata: { name }, spec });
}

it.each([
  ['15 keys', [], [...keys(1, 'Active'), ...keys(14, 'Retiring')], true],
  ['16 keys', [], [...keys(1, 'Active'), ...keys(15, 'Retiring')], false],
  [
    '16 keys of rings that are gone or not',
    [ring('ring', {})],
    [...keys(1, 'Active'), ...keys(15, 'Published', 'gone')],
    false,
  ],
  ['a revoked key among 16', [], [...keys(1, 'Active'), ...keys(14, 'Retiring'), ...keys(1, 'Revoked')], true],
  [
    'a key among 16 that a SigningKey revokes',
    [ring('ring', { revokedKeyIds: ['ring-Retiring-0'] })],
    [...keys(1, 'Active'), ...keys(15, 'Retiring')],
    true,
  ],
  [
    'a suspended ring among 16',
    [ring('off', { suspended: true })],
    [...keys(15, 'Active'), ...keys(1, 'Active', 'off')],
    true,
  ],
  ['16 keys of which none signs', [], keys(16, 'Retiring'), true],
])('given %s → whether one more may be published: %#', (_, rings, stored, expected) => {
  expect(mayPublish(rings, stored)).toBe(expected);
});
