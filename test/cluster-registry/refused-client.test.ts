// What a token server caches of a client that its own manifest refuses: little, and enough to judge it as the controller
// does, which has the whole object.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clientVerdict, findClient, judgeRead } from '../../src/admission/clients/admit-client.ts';
import { specOf } from '../../src/admission/clients/client-reader.ts';
import { claimOf } from '../../src/admission/clients/client-uniqueness.ts';
import { clientKeeper, isReadableClient } from '../../src/cluster-registry/kept-client.ts';
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
const keep = clientKeeper({
  className: 'default',
  issuer: ISSUER,
  supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
});

function cachedOf(spec: object) {
  const object = objectOf(spec);
  const kept = keep(object, objectKey(object.metadata));
  if (!isReadableClient(kept)) throw new Error('it is of another class');
  return kept;
}

/** Each a rule of the protocol broken, at a size that the schema permits. */
const LARGE: readonly (readonly [string, string, object])[] = [
  ['keys of a method that there is not', 'UnsupportedAuthMethod', withKeys()],
  ['redirect URIs', 'InvalidRedirectUri', { redirectUris: values(32, (n) => `app:${n}${'x'.repeat(1000)}`) }],
  ['audiences', 'InvalidAudience', { ...machine(), audiences: values(32, (n) => `${n}${'x'.repeat(500)}`) }],
  ['scopes', 'InvalidScope', { ...machine(), scopes: values(100, (n) => `"${n}${'x'.repeat(100)}`) }],
  ['a field of a wrong type', 'InvalidManifest', { ...machine(), redirectUris: values(10, () => 'x'.repeat(5000)) }],
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

describe('a client that a rule refuses', () => {
  it.each(LARGE)('for %s → cached without them, refused as %s', (_, reason, spec) => {
    const { reading, ruleFaults } = cachedOf(spec);
    const faults = reading.shared === undefined ? reading.faults : ruleFaults;
    expect(faults.map((fault) => fault.reason)).toContain(reason);
    expect(JSON.stringify([reading, ruleFaults]).length).toBeLessThan(2000);
  });

  it('with an id of its own → cached with what policies read, without the details of its credentials', () => {
    const scopes = ['team/read'];
    const { reading } = cachedOf({ ...withKeys(), clientId: 'team_app', scopes });
    if (reading.shared === undefined) throw new Error('it was not read');
    expect(specOf(reading)).toMatchObject({ clientId: 'team_app', scopes, auth: { method: 'client_secret_jwt' } });
    expect(JSON.stringify(reading).length).toBeLessThan(2000);
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
        const cached = cachedOf(said);
        const { reading, ruleFaults } = cached;
        const read =
          reading.shared === undefined
            ? { manifest: undefined, faults: reading.faults }
            : { manifest: { spec: specOf(reading) }, faults: [], ruleFaults };
        const found = judgeRead(cached, read, world);
        const expected = findClient(sourceOf(objectOf(said)), world);
        if (ruleFaults.length > 0) refused++;
        // The cache has its own order of age, and only an accepted client counts towards a limit.
        const { createdAt: _, maxClientsPerNamespace, ...claim } = claimOf(found);
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
