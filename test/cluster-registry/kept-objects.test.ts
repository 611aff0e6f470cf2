// What a token server keeps of the objects of which there are many says the same as the objects themselves.

import { describe, expect, it } from 'vitest';
import {
  VERIFIER_SECRET_TYPE,
  verifierSecretData,
  verifierSecretName,
} from '../../src/admission/client-secrets/client-verifier.ts';
import { ClientReader, type ReadClient } from '../../src/admission/clients/client-reader.ts';
import { API_VERSION } from '../../src/admission/kinds/manifest.ts';
import { clientKeeper, isReadableClient } from '../../src/cluster-registry/kept-client.ts';
import { keptOfSecret, verifiersOf } from '../../src/cluster-registry/release-secrets.ts';
import { ServedClient } from '../../src/cluster-registry/served-client.ts';
import { type KubernetesObject, objectKey } from '../../src/kubernetes/objects/resources.ts';
import { CLIENT_AUTH_METHODS } from '../../src/oauth/client-auth/index.ts';
import type { Client, TokenSettings } from '../../src/oauth/registry/client.ts';
import { aKey } from '../oauth/values/signed-tokens.ts';

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
    const kept = keptOfSecret(secret, key);
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

function readOf(spec: object): ReadClient {
  const read = new ClientReader().read({ apiVersion: API_VERSION, kind: 'OAuthClient', metadata: { name: 'a' }, spec });
  if (read.shared === undefined) throw new Error('it cannot be read');
  return read;
}

const ASSERTION: NonNullable<Client['assertion']> = {
  keys: { jwksUri: 'https://a.example/keys' },
  algorithms: ['ES256'],
  acceptTokenEndpointAudience: true,
};

it('a served client says what the judge said', () => {
  const tokens: TokenSettings = {
    accessTokenFormat: 'jwt',
    accessTokenLifetimeSeconds: 1,
    refreshTokenIdleLifetimeSeconds: 2,
    refreshTokenLifetimeSeconds: 3,
    refreshTokenRotation: 'Always',
    refreshTokenReuseGraceSeconds: 4,
  };
  const client: Client = {
    uid: 'uid-1',
    clientId: 'team.app',
    namespace: 'team',
    name: 'app',
    maxState: 6,
    displayName: 'App',
    authMethod: 'client_secret_post',
    tokens,
    idTokens: { signingAlgorithm: 'ES384', lifetimeSeconds: 7 },
    revokeTokensBefore: 5,
    admittedBy: 'baseline',
    grantTypes: ['refresh_token'],
    scopes: ['a', 'b'],
    defaultScopes: ['a'],
    groups: ['a*'],
    backchannelLogoutUri: 'https://a.example/logout',
    audiences: ['urn:a', 'urn:b'],
    resources: [{ namespace: undefined, name: 'notes', scopes: ['c'] }],
    defaultAudience: 'urn:b',
    resourceServerAudiences: ['urn:c'],
    consent: 'Skip',
    signIn: { identityProviders: ['local'], groups: ['a'] },
    requireState: true,
    clientUri: 'https://a.example',
    policyUri: 'https://b.example',
    tosUri: 'https://c.example',
    secretVerifiers: [Buffer.alloc(32, 200), Buffer.alloc(32, 1)],
    assertion: ASSERTION,
    certificate: { name: 'sanDns', value: 'a.example' },
    serviceAccounts: [{ name: 'a', uid: 'uid-of-a' }],
    senderConstraint: 'DPoP',
    redirectUris: ['https://a.example/cb'],
    postLogoutRedirectUris: ['https://a.example/bye'],
    allowedCorsOrigins: ['https://a.example'],
  };
  const template: Client = {
    ...client,
    uid: 'uid-2',
    clientId: 'team.other',
    namespace: 'elsewhere',
    name: 'other',
    maxState: 7,
    displayName: 'Other',
    secretVerifiers: [],
    clientUri: undefined,
    policyUri: undefined,
    tosUri: undefined,
    backchannelLogoutUri: undefined,
    redirectUris: [],
    postLogoutRedirectUris: [],
    allowedCorsOrigins: [],
  };
  const fields = Object.keys(client) as (keyof Client)[];
  const { uid, clientId, displayName, redirectUris } = client;
  const credentials = { verifiers: client.secretVerifiers };
  const { clientUri, policyUri, tosUri, allowedCorsOrigins, audiences, defaultAudience, backchannelLogoutUri } = client;
  const { postLogoutRedirectUris } = client;
  const nothing = {
    postLogoutRedirectUris: [],
    clientUri: undefined,
    policyUri: undefined,
    tosUri: undefined,
    allowedCorsOrigins: [],
    backchannelLogoutUri: undefined,
  };
  const own = { uid, namespace: 'team', name: undefined, maxState: 6, credentials, template };
  for (const [set, said] of [
    [
      {
        postLogoutRedirectUris,
        displayName,
        redirectUris,
        clientUri,
        policyUri,
        tosUri,
        allowedCorsOrigins,
        backchannelLogoutUri,
      },
      client,
    ],
    [
      { displayName, redirectUris },
      { ...client, ...nothing },
    ],
    [
      { redirectUris: ['https://a.example/cb', 'https://b.example/cb'] },
      {
        ...client,
        ...nothing,
        displayName: 'team.app',
        redirectUris: ['https://a.example/cb', 'https://b.example/cb'],
      },
    ],
    [{}, { ...client, ...nothing, displayName: 'team.app', redirectUris: [] }],
  ] as const) {
    const reading = readOf({ ...set, audiences, defaultAudience });
    const served = new ServedClient({ ...own, clientId, reading });
    expect(Object.fromEntries(fields.map((field) => [field, served[field]]))).toEqual(said);
  }
  const renamed = new ServedClient({ ...own, name: 'app', clientId: 'shown', reading: readOf({}) });
  expect(renamed).toMatchObject({ clientId: 'shown', name: 'app' });
  // Text that is kept already stands for one verifier, and for no other number of them.
  const text = Buffer.alloc(32, 7).toString('latin1');
  const [one, two, none] = [[Buffer.alloc(32, 7)], client.secretVerifiers, []];
  for (const secretVerifiers of [one, two, none]) {
    const reading = readOf({});
    const kept = new ServedClient({
      uid,
      namespace: 'team',
      name: undefined,
      clientId,
      maxState: 6,
      reading,
      credentials: { verifiers: secretVerifiers },
      text,
      template,
    });
    expect(kept.secretVerifiers).toEqual(secretVerifiers);
  }
});

it('a served client has its own keys and accounts, and not those of the client whose other fields it shares', () => {
  const identity = { uid: 'uid-1', namespace: 'team', name: undefined, clientId: 'team.app', maxState: 6 };
  const template = {
    assertion: ASSERTION,
    serviceAccounts: [{ name: 'worker', uid: 'of-another' }],
  } as unknown as Client;
  const served = (auth: object, credentials: object) =>
    new ServedClient({
      ...identity,
      reading: readOf({ auth }),
      template,
      credentials: { verifiers: [], ...credentials },
    });
  const own: Client['assertion'] = { ...ASSERTION, keys: [aKey('ES256').key] };
  const byConfigMap = { method: 'private_key_jwt', privateKeyJwt: { jwksConfigMapRef: { name: 'keys' } } };
  expect(served(byConfigMap, { assertion: own }).assertion).toBe(own);
  const byManifest = { method: 'private_key_jwt', privateKeyJwt: { jwksUri: 'https://a.example' } };
  expect(served(byManifest, { assertion: { ...ASSERTION } }).assertion).toBe(ASSERTION);
  const serviceAccounts = [{ name: 'worker', uid: 'own' }];
  const byAccount = { method: 'kubernetes_service_account', serviceAccounts: [{ name: 'worker' }] };
  const client = served(byAccount, { serviceAccounts });
  expect([client.serviceAccounts, client.secretVerifiers]).toEqual([serviceAccounts, []]);
});
