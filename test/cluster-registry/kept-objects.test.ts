// What a token server keeps of the objects of which there are many says the same as the objects themselves.

import { describe, expect, it } from 'vitest';
import {
  VERIFIER_SECRET_TYPE,
  verifierSecretData,
  verifierSecretName,
} from '../../src/admission/client-secrets/client-verifier.ts';
import { clientKeeper, isReadableClient } from '../../src/cluster-registry/kept-client.ts';
import { keptOfSecret, verifiersOf } from '../../src/cluster-registry/release-secrets.ts';
import { type KubernetesObject, objectKey } from '../../src/kubernetes/objects/resources.ts';
import { CLIENT_AUTH_METHODS } from '../../src/oauth/client-auth/index.ts';

const CREATED = '2026-01-01T00:00:07Z';
const identity = { uid: 'uid-1', resourceVersion: '42', creationTimestamp: CREATED };

describe('of a verifier Secret', () => {
  const accepted = (fill: number, expiresAt?: number) => ({
    verifier: new Uint8Array(32).fill(fill),
    revision: fill,
    ...(expiresAt !== undefined && { expiresAt }),
  });

  it.each([
    ['one verifier', [accepted(200)]],
    ['one that ends', [accepted(3, 1_800_000_000_000)]],
    ['two between two secrets', [accepted(255), accepted(254, 1_800_000_000_000)]],
  ])('%s', (_, verifiers) => {
    const metadata = { ...identity, name: verifierSecretName('uid-of-client'), namespace: 'grantry' };
    const data = verifierSecretData({ revision: 9, verifiers });
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: VERIFIER_SECRET_TYPE, data };
    const key = objectKey(metadata);
    const kept = keptOfSecret(secret);
    const { uid, resourceVersion, name, namespace, creationTimestamp } = kept.metadata;
    expect({ uid, resourceVersion, name, namespace }).toEqual({
      uid: 'uid-1',
      resourceVersion: '42',
      name: metadata.name,
      namespace: 'grantry',
    });
    expect(Date.parse(creationTimestamp)).toBe(Date.parse(CREATED));
    const found = verifiersOf({ get: (asked) => (asked === key ? kept : undefined) }, 'grantry', 'uid-of-client');
    expect(found?.revision).toBe(9);
    expect(found?.verifiers.map((each) => ({ ...each, verifier: new Uint8Array(each.verifier) }))).toEqual(verifiers);
  });
});

describe('of an OAuthClient', () => {
  const object = (spec: object, metadata: object = {}): KubernetesObject => ({
    apiVersion: 'grantry.dev/v1alpha1',
    kind: 'OAuthClient',
    spec,
    metadata: { ...identity, name: 'app', namespace: 'team', generation: 3, ...metadata },
  });
  const keep = clientKeeper({
    className: 'default',
    issuer: 'https://id.example',
    supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
  });
  const keptOf = (each: KubernetesObject) => keep(each, objectKey(each.metadata));

  it('which one it is', () => {
    const { name, namespace, uid, generation, createdAt } = keptOf(object({}));
    expect({ name, namespace, uid, generation, createdAt }).toEqual({
      name: 'app',
      namespace: 'team',
      uid: 'uid-1',
      generation: 3,
      createdAt: Date.parse(CREATED) / 1000,
    });
  });

  it.each(['1', '42', '999999999', '1000000000', '99999999999999999999', '0', '042', '4e2', ' 4', '', 'a-7'])(
    'which version of it is known, text that may be anything: %o',
    (resourceVersion) => {
      expect(keptOf(object({}, { resourceVersion })).metadata.resourceVersion).toBe(resourceVersion);
    },
  );

  it('whether it counts here', () => {
    expect(isReadableClient(keptOf(object({})))).toBe(true);
    expect(isReadableClient(keptOf(object({ className: 'other' })))).toBe(false);
    expect(isReadableClient(keptOf(object({}, { deletionTimestamp: CREATED })))).toBe(false);
  });
});
