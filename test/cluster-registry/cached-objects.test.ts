// What a token server caches: of an object what it reads, and of a client that its own manifest refuses little, and enough
// to come to the verdict of the controller, which has the whole object.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  VERIFIER_SECRET_TYPE,
  verifierSecretData,
  verifierSecretName,
} from '../../src/admission/client-secrets/client-verifier.ts';
import { clientVerdict, validateClient, validateManifest } from '../../src/admission/clients/admit-client.ts';
import { claimOf } from '../../src/admission/clients/client-uniqueness.ts';
import { cachedVerifiers, clientCache, isReadableClient } from '../../src/cluster-registry/cached-objects.ts';
import { ReleaseSecrets } from '../../src/cluster-registry/release-secrets.ts';
import { type KubernetesObject, objectKey } from '../../src/kubernetes/objects/resources.ts';
import { sourceOf } from '../../src/kubernetes/objects/source-object.ts';
import { CLIENT_AUTH_METHODS } from '../../src/oauth/client-auth/index.ts';
import { clientDocument, contextOf, policyDocument } from '../admission/world.ts';

const ISSUER = 'https://id.example';
const metadata = {
  uid: '3f2b8c1e-8d4a-4c5e-9b7f-0a1b2c3d4e5f',
  resourceVersion: '42',
  generation: 3,
  creationTimestamp: '2026-01-01T00:00:00.000Z',
};
const objectOf = (spec: object) => clientDocument({ ...spec }, metadata) as unknown as KubernetesObject;
const cached = clientCache({
  className: 'default',
  issuer: ISSUER,
  supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
});

function cachedOf(spec: object) {
  const client = cached(objectOf(spec));
  if (!isReadableClient(client)) throw new Error('it is of another class');
  return client;
}

/** Each a rule of the protocol broken, at a size that the schema permits. */
const LARGE: readonly (readonly [string, string, object])[] = [
  ['keys of a method that there is not', 'UnsupportedAuthMethod', withKeys()],
  ['redirect URIs', 'InvalidRedirectUri', { redirectUris: values(32, (n) => `app:${n}${'x'.repeat(1000)}`) }],
  ['audiences', 'InvalidAudience', { ...machine(), audiences: values(32, (n) => `${n}${'x'.repeat(500)}`) }],
  ['scopes', 'InvalidScope', { ...machine(), scopes: values(100, (n) => `"${n}${'x'.repeat(100)}`) }],
  ['a field of a wrong type', 'InvalidManifest', { ...machine(), redirectUris: values(10, () => 'x'.repeat(5000)) }],
  ['many fields of a wrong type', 'InvalidManifest', { ...machine(), scopes: values(100, (n) => n) }],
  ['more than 64 KiB', 'InvalidManifest', { ...machine(), redirectUris: values(10, () => 'x'.repeat(50_000)) }],
  [
    'literals of a client that asks for a grant there is not',
    'UnsupportedGrantType',
    {
      grantTypes: ['password'],
      auth: { clientSecret: { extraData: Object.fromEntries(values(15, (n) => [`k${n}`, 'x'.repeat(4000)])) } },
    },
  ],
];

function values<Value>(count: number, make: (index: number) => Value): readonly Value[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function machine(): object {
  return { grantTypes: ['client_credentials'] };
}

function withKeys(): object {
  const keys = values(4, (n) => ({ kty: 'RSA', x5c: [`${n}${'x'.repeat(7900)}`] }));
  return { auth: { method: 'client_secret_jwt', privateKeyJwt: { jwks: { keys } } } };
}

const LONG = { note: 'x'.repeat(5000) };
const BALLAST = {
  labels: LONG,
  annotations: LONG,
  managedFields: [LONG],
  ownerReferences: [LONG],
} as unknown as Partial<KubernetesObject['metadata']>;

it('an OAuthClient with large metadata and status → its identity and what was read', () => {
  const object = objectOf({ ...machine(), unknown: LONG });
  const { metadata: identity } = object;
  const client = cached({ ...object, metadata: { ...identity, ...BALLAST }, status: LONG });
  expect(client.metadata).toEqual(identity);
  expect(Object.keys(client)).toEqual(['apiVersion', 'kind', 'metadata', 'read']);
  expect(JSON.stringify(client).length).toBeLessThan(3000);
});

it.each([
  ['of another class', { className: 'other', displayName: 'x'.repeat(100) }, {}],
  ['that is being deleted', machine(), { deletionTimestamp: '2026-01-02T00:00:00Z' }],
])('an OAuthClient %s → not readable, its identity all the same', (_, spec, changed) => {
  const object = objectOf(spec);
  const client = cached({ ...object, metadata: { ...object.metadata, ...changed } });
  expect(client.metadata).toEqual({ ...object.metadata, ...changed });
  expect(isReadableClient(client)).toBe(false);
  if (!('deletionTimestamp' in changed)) expect(client.read).toBeUndefined();
});

it('a verifier Secret with large metadata → its identity and the verifiers', () => {
  const verifiers = [{ verifier: Buffer.alloc(32, 200), revision: 4, expiresAt: 1_800_000_000_000 }];
  const { metadata: identity } = objectOf({});
  const named = { ...identity, name: verifierSecretName('uid-of-client') };
  const data = verifierSecretData({ revision: 9, verifiers });
  const metadata = { ...named, ...BALLAST };
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: VERIFIER_SECRET_TYPE, data };
  const read = { uid: 'uid-of-client', revision: 9, verifiers };
  expect(cachedVerifiers(secret)).toEqual({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: named,
    type: VERIFIER_SECRET_TYPE,
    verifiers: read,
  });
});

it('a verifier Secret that is deleted → its expiry is not awaited', () => {
  const verifiers = [{ verifier: Buffer.alloc(32, 200), revision: 4, expiresAt: 1_800_000_000_000 }];
  const metadata = { ...objectOf({}).metadata, name: verifierSecretName('uid-of-client') };
  const data = verifierSecretData({ revision: 9, verifiers });
  const object = cachedVerifiers({ apiVersion: 'v1', kind: 'Secret', metadata, type: VERIFIER_SECRET_TYPE, data });
  const secrets = new ReleaseSecrets();
  const change = { key: objectKey(metadata), object };
  expect(secrets.apply({ type: 'put', ...change })).toEqual({ part: 'verifier', uid: 'uid-of-client' });
  expect(secrets.nextExpiry).toBe(1_800_000_000_000);
  expect(secrets.apply({ type: 'delete', ...change })).toEqual({ part: 'verifier', uid: 'uid-of-client' });
  expect(secrets.nextExpiry).toBeUndefined();
});

describe('a client that a rule refuses', () => {
  it.each(LARGE)('for %s → cached without them, refused as %s', (_, reason, spec) => {
    const { read } = cachedOf(spec);
    const faults = [...read.faults, ...(read.ruleFaults ?? [])];
    expect(faults.map((fault) => fault.reason)).toContain(reason);
    expect(JSON.stringify(read).length).toBeLessThan(2000);
  });

  it('with an id of its own → cached with what policies read, without the details of its credentials', () => {
    const scopes = ['team/read'];
    const { read } = cachedOf({ ...withKeys(), clientId: 'team_app', scopes });
    expect(read.manifest?.spec).toMatchObject({ clientId: 'team_app', scopes, auth: { method: 'client_secret_jwt' } });
    expect(JSON.stringify(read).length).toBeLessThan(2000);
  });

  it('whatever else is in its manifest → the verdict and the claims that the whole object has', () => {
    const permitting = { allow: { clientIds: ['team_*'], scopes: ['**'], grantTypes: ['**'] } };
    const worlds = [
      contextOf([]),
      contextOf([], { defaultPolicy: 'Deny' }),
      contextOf([policyDocument({ allow: {} }, 'a'), policyDocument(permitting, 'b')]),
      contextOf([policyDocument({ allow: { clientIds: ['team_*'] } }, 'a'), policyDocument({ allow: {} }, 'b')]),
    ].map((world) => ({ ...world, issuer: ISSUER, unknownFields: 'ignore' as const }));
    const auth = fc.record(
      {
        method: fc.constantFrom('none', 'client_secret_basic', 'private_key_jwt', 'unknown'),
        clientSecret: fc.record(
          {
            source: fc.constantFrom('Generate', 'Existing'),
            secretName: fc.constantFrom('app-oauth', 'other-oauth', 'third'),
            preset: fc.constantFrom('none', 'unknown'),
          },
          { requiredKeys: [] },
        ),
      },
      { requiredKeys: [] },
    );
    const spec = fc.record(
      {
        auth,
        clientId: fc.constantFrom('team.app', 'team_app', 'other_app', 'usr_app'),
        suspended: fc.boolean(),
        grantTypes: fc.constantFrom(['client_credentials'], ['authorization_code'], ['password'], ['refresh_token']),
        redirectUris: fc.constantFrom([], ['https://app.example/cb'], ['javascript:alert(1)']),
        scopes: fc.constantFrom(['team/read'], ['other/read'], ['"']),
        audiences: fc.constantFrom(['urn:grantry:ns:team:api'], [ISSUER], ['relative']),
        consent: fc.constantFrom('Required', 'Skip'),
        senderConstraint: fc.constantFrom('None', 'DPoP'),
      },
      { requiredKeys: [] },
    );
    let refused = 0;
    fc.assert(
      fc.property(spec, fc.constantFrom(...worlds), (said, world) => {
        const client = cachedOf(said);
        const found = validateManifest(sourceOf(client), client.read, world);
        const expected = validateClient(sourceOf(objectOf(said)), world);
        if ((client.read.ruleFaults ?? []).length > 0) refused++;
        // Only an accepted client counts towards a limit.
        const { maxClientsPerNamespace, ...claim } = claimOf(found);
        expect(claimOf(expected)).toMatchObject({ ...claim, ...(claim.isAccepted && { maxClientsPerNamespace }) });
        const reasons = [clientVerdict(found), clientVerdict(expected)].map(
          ({ conditions }) => conditions.at(-1)?.reason,
        );
        expect(reasons[0]).toBe(reasons[1]);
      }),
      { numRuns: 2000 },
    );
    expect(refused).toBeGreaterThan(500);
  });
});
