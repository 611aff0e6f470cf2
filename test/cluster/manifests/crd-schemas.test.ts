// The CRDs against the schemas of admission, asked of a real API server: what one refuses the other refuses, over all
// examples and over manifests made up from the CRDs. Both accept what only admission can decide.

import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CLIENT_POLICY } from '../../../src/admission/kinds/client-policy.ts';
import { formatPath } from '../../../src/admission/kinds/field-path.ts';
import { IDENTITY_PROVIDER } from '../../../src/admission/kinds/identity-provider.ts';
import { fieldsOf } from '../../../src/admission/kinds/manifest.ts';
import { OAUTH_CLIENT } from '../../../src/admission/kinds/oauth-client.ts';
import { PROTECTED_RESOURCE } from '../../../src/admission/kinds/protected-resource.ts';
import { SIGNING_KEY } from '../../../src/admission/kinds/signing-key.ts';
import { admitAll, documentsOf } from '../../admission/world.ts';
import type { Manifest } from '../setup/cluster.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { malformedValuesOf, type Schema, valuesOf } from './generated-manifests.ts';

const CRDS = join(import.meta.dirname, '../../../crds');
const SCHEMAS = {
  OAuthClient: OAUTH_CLIENT,
  ProtectedResource: PROTECTED_RESOURCE,
  IdentityProvider: IDENTITY_PROVIDER,
  SigningKey: SIGNING_KEY,
  ClientPolicy: CLIENT_POLICY,
} as const;
type Kind = keyof typeof SCHEMAS;

interface CustomResourceDefinition {
  readonly spec: {
    readonly scope: string;
    readonly names: { readonly kind: Kind; readonly plural: string };
    readonly versions: readonly [{ readonly schema: { readonly openAPIV3Schema: Schema } }];
  };
}

const definitions = new Map(
  globSync('*.yaml', { cwd: CRDS }).map((file) => {
    const definition = parse(readFileSync(join(CRDS, file), 'utf8')) as CustomResourceDefinition;
    return [definition.spec.names.kind, definition.spec] as const;
  }),
);

/** Where admission finds the fault that a rule of a CRD finds too, by the rule's message. */
const RULES_OF_ADMISSION: Readonly<Record<string, RegExp>> = {
  'defaultAudience is required with more than one audience or resource': /^spec\.defaultAudience$/,
  'defaultAudience is not one of audiences': /^spec\.defaultAudience$/,
  'ids beginning with usr_ are kept for people': /^spec\.clientId$/,
  'clientSecret counts only with the methods client_secret_basic and client_secret_post': /^spec\.auth\.clientSecret$/,
  'privateKeyJwt counts only with the method private_key_jwt': /^spec\.auth\.privateKeyJwt$/,
  'tls counts only with the methods tls_client_auth and self_signed_tls_client_auth': /^spec\.auth\.tls$/,
  'serviceAccounts counts only with the method kubernetes_service_account': /^spec\.auth\.serviceAccounts$/,
  // The methods that these blocks belong to are refused as a whole, and the blocks with any other.
  'only one of jwks, jwksUri and jwksConfigMapRef can be given': /^spec\.auth\.(method|privateKeyJwt)$/,
  'only one of subjectDn, sanDns, sanUri, sanIp and sanEmail can be given': /^spec\.auth\.(method|tls)$/,
  'must be at least 24h': /^spec\.(auth\.clientSecret\.rotation\.interval|rotation\.retain)$/,
  'must be from 1s to 24h': /^spec\.tokens\.accessTokenLifetime$/,
  'must be from 1m to 24h': /^spec\.tokens\.idTokenLifetime$/,
  'must be from 1s to 8784h': /^spec\.tokens\.refreshToken(Idle)?Lifetime$/,
  'must be at most 60s': /^spec\.tokens\.refreshTokenReuseGrace$/,
  'must be at least 1m': /^spec\.tokens\.maxLifetime$/,
  'must be at least 10m': /^spec\.rotation\.prePublish$/,
  'interval must be longer than prePublish': /^spec\.rotation\.interval$/,
};

/** Rules that stand for what the schemas of admission say. */
const RULES_OF_THE_SCHEMAS = [
  'metadata.name has more than 63 characters',
  'a key has more than 317 characters',
  'browsers send no default port',
  'needs exactly one of namespaces and namespaceSelector',
  'needs values for In and NotIn, and none for Exists and DoesNotExist',
  ...['needs oidc for the type OIDC', 'has oidc, which is not for the type GitHub'],
  ...['has gitHub, which is not for the type OIDC', 'has organizations and anyone: one of them only'],
  ...['must be from 5m to 2160h', 'lacks openid, without which there is no ID token'],
  'stands for many tenants: write the issuer of one, with its id',
  'has a group with a comma in allow.groups, which no person has without groups.allowCommas',
];

/** The bounds on the size of a whole, which no CRD can express. */
const SIZE_ISSUE = /^is larger than [0-9]+ KiB as JSON$/;

/** Examples that the API server takes: it has one object of a uid only, and leaves names of certificates, accounts and algorithms, and what needs a scope, to admission. */
const OF_ADMISSION_ALONE = [
  ...['uid-twice.yaml', 'tls-without-a-name.yaml', 'tls-name-with-spaces-between.yaml', 'tls-ip-malformed.yaml'],
  ...['tls-name-of-a-self-signed-certificate.yaml', 'signing-algorithm-symmetric.yaml'],
  ...['groups-without-their-scope.yaml', 'logout-uri-without-openid.yaml'],
  ...['logout-uri-http.yaml', 'logout-uri-with-fragment.yaml'],
  ...['service-account-default.yaml', 'service-accounts-missing.yaml', 'resource-language-unknown.yaml'],
];

/** Rules about a change. */
const RULES_OF_CHANGE = [
  ...['resource cannot be changed', 'clientId cannot be changed', 'className cannot be changed'],
  'type cannot be changed',
];

/** The least that an IdentityProvider says. */
const PROVIDER = { type: 'OIDC', clientSecretRef: { name: 'a' }, oidc: { issuer: 'https://id.example' } };

const cluster = sharedCluster();
let namespace: string;
beforeAll(async () => {
  namespace = await cluster.namespace();
});

interface Cause {
  /** Empty where the refusal is about no field. */
  readonly field: string;
  readonly message: string;
}

/** What the API server says to a new object: undefined when it would take it, else why not. */
async function causesOf(
  manifest: Manifest,
  fieldValidation: 'Strict' | 'Ignore',
): Promise<readonly Cause[] | undefined> {
  const spec = definitions.get(manifest.kind as Kind);
  if (spec === undefined) throw new Error(`no CRD for ${manifest.kind}`);
  const scope = spec.scope === 'Namespaced' ? `/namespaces/${namespace}` : '';
  const path = `/apis/${manifest.apiVersion}${scope}/${spec.names.plural}?dryRun=All&fieldValidation=${fieldValidation}`;
  const metadata = { ...manifest.metadata };
  if (spec.scope === 'Namespaced') Object.assign(metadata, { namespace });
  const { status, body } = await cluster.call('POST', path, { body: { ...manifest, metadata } });
  if (status === 201) return undefined;
  expect([400, 404, 422]).toContain(status);
  const causes: readonly Cause[] = body.details?.causes ?? [];
  return causes.length > 0 ? causes : [{ field: '', message: String(body.message) }];
}

async function refusalOf(...asked: Parameters<typeof causesOf>): Promise<readonly string[] | undefined> {
  return (await causesOf(...asked))?.map(({ message }) => message);
}

/** The messages of the rules that say how a string is written. */
const FORMS: ReadonlySet<string> = new Set(
  [...definitions.values()].flatMap(({ versions: [version] }) =>
    rulesOf(version.schema.openAPIV3Schema)
      .filter(({ rule }) => rule.startsWith('self.matches('))
      .map(({ message }) => message),
  ),
);

function rulesOf(schema: Schema): readonly { readonly rule: string; readonly message: string }[] {
  const below = [...Object.values(schema.properties ?? {}), schema.items, schema.additionalProperties];
  return [
    ...(schema['x-kubernetes-validations'] ?? []),
    ...below.flatMap((child) => (child === undefined ? [] : rulesOf(child))),
  ];
}

const messageOf = (cause: string, messages: readonly string[]) => messages.find((message) => cause.includes(message));

/** Holds the API server's word on a manifest to that of the schema and of admission; whether it would be taken. */
async function expectAgreement(manifest: Manifest, unknownFields: 'refuse' | 'ignore'): Promise<boolean> {
  const causes = await causesOf(manifest, unknownFields === 'refuse' ? 'Strict' : 'Ignore');
  const refusal = causes?.map(({ message }) => message);
  const schema = SCHEMAS[manifest.kind as Kind][unknownFields].safeParse(manifest);
  const shown = JSON.stringify({ manifest, refusal, issues: schema.error?.issues }, null, 1);
  // A rule that cannot be computed says nothing that a person understands.
  expect(refusal?.join() ?? '', shown).not.toMatch(/conversion error/);
  if (!schema.success) {
    if (schema.error.issues.every(({ message }) => SIZE_ISSUE.test(message))) return false;
    expect(refusal, `only the schema of admission refuses ${shown}`).toBeDefined();
    for (const { field, message } of causes ?? []) {
      const form = messageOf(message, [...FORMS]);
      if (form === undefined || (unknownFields === 'ignore' && form.startsWith('can match no'))) continue;
      const said = schema.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
      expect(said, `only the CRD says it of ${shown}`).toContain(
        `${field.replaceAll(/\[([^\]]*)\]/g, '.$1')}: ${form}`,
      );
    }
    return false;
  }
  if (refusal === undefined) return true;
  // Servers read a policy with entries that can match nothing: it was accepted once.
  if (unknownFields === 'ignore' && refusal.every((cause) => cause.includes('can match no'))) return false;
  // Admission leaves out what is of another class.
  const admitted = { ...manifest, spec: { ...fieldsOf(manifest.spec), className: 'default' } };
  if (['SigningKey', 'IdentityProvider'].includes(manifest.kind)) Reflect.deleteProperty(admitted.spec, 'className');
  const { clients, keys, policies, resources, providers } = await admitAll([admitted], {
    unknownFields,
    otherSecrets: 'assumed',
  });
  const faults = [...clients, ...keys, ...policies, ...resources, ...providers].flatMap((verdict) =>
    verdict.faults.map(({ path }) => formatPath(path)),
  );
  for (const cause of refusal) {
    const rule = messageOf(cause, Object.keys(RULES_OF_ADMISSION));
    expect(rule, `only the CRD refuses ${shown}`).toBeDefined();
    expect(faults, `only a rule of the CRD refuses ${shown}`).toContainEqual(
      expect.stringMatching(RULES_OF_ADMISSION[rule ?? ''] ?? /^$/),
    );
  }
  return false;
}

function examplesIn(folder: 'valid' | 'invalid') {
  return readdirSync(join(CRDS, 'examples', folder)).map((file) => {
    const text = readFileSync(join(CRDS, 'examples', folder, file), 'utf8');
    const manifests = documentsOf(text).filter((document) => String(fieldsOf(document).kind) in SCHEMAS);
    const reason = /^# reason: (\w+)$/m.exec(text)?.[1];
    return { file, reason, manifests: manifests as readonly Manifest[] };
  });
}

describe('the examples', () => {
  it.each(examplesIn('valid'))('$file is taken by the API server', async ({ manifests }) => {
    for (const manifest of manifests) expect(await expectAgreement(manifest, 'refuse')).toBe(true);
  });

  it.each(examplesIn('invalid'))('$file is refused by both or by neither', async ({ file, reason, manifests }) => {
    const taken: boolean[] = [];
    for (const manifest of manifests) taken.push(await expectAgreement(manifest, 'refuse'));
    if (reason === 'InvalidManifest' && !OF_ADMISSION_ALONE.includes(file)) expect(taken).toContain(false);
  });
});

describe.each(Object.keys(SCHEMAS) as Kind[])('manifests made up as a %s', (kind) => {
  const spec = definitions.get(kind)?.versions[0].schema.openAPIV3Schema.properties?.spec;
  if (spec === undefined) throw new Error(`no schema of ${kind}`);
  const metadata = { name: 'made-up', ...(kind !== 'ClientPolicy' && { namespace: 'team' }) };
  const manifests = valuesOf(spec).map(
    (value): Manifest => ({ apiVersion: 'grantry.dev/v1alpha1', kind, metadata, spec: value }),
  );

  const malformed = malformedValuesOf(spec, '.spec');

  it.each([...new Set(malformed.map(([path]) => path))])('with %s malformed → both say in which form', async (path) => {
    for (const [, value] of malformed.filter(([each]) => each === path)) {
      const manifest = { apiVersion: 'grantry.dev/v1alpha1', kind, metadata, spec: value as object };
      const said = (await refusalOf(manifest, 'Strict')) ?? [];
      expect([JSON.stringify(value), said.filter((message) => messageOf(message, [...FORMS]))]).toHaveProperty('1.0');
      expect(await expectAgreement(manifest, 'refuse')).toBe(false);
    }
  });

  it.each(['refuse', 'ignore'] as const)(
    'are accepted or refused alike by the API server and by admission, unknown fields: %s',
    async (unknownFields) => {
      const samples = fc.sample(manifests, { numRuns: 300, seed: 34 });
      const taken = [];
      for (const manifest of samples) taken.push(await expectAgreement(manifest, unknownFields));
      // Both must happen often, or nothing was compared.
      expect(taken.filter((each) => each).length).toBeGreaterThan(60);
      expect(taken.filter((each) => !each).length).toBeGreaterThan(30);
    },
  );
});

describe('the rules of the CRDs', () => {
  it('are all known to these tests', () => {
    const rules = [...definitions.values()].flatMap(({ versions: [version] }) =>
      rulesOf(version.schema.openAPIV3Schema).map(({ message }) => message),
    );
    const known = [...Object.keys(RULES_OF_ADMISSION), ...RULES_OF_THE_SCHEMAS, ...RULES_OF_CHANGE, ...FORMS];
    expect([...new Set(rules)].sort()).toEqual(known.sort());
  });

  it.each([
    ['defaultAudience is required with more than one', { audiences: ['urn:a', 'urn:b'] }],
    ['defaultAudience is required with more than one', { audiences: ['urn:a'], resources: [{ name: 'a' }] }],
    ['defaultAudience is required with more than one', { resources: [{ name: 'a' }, { name: 'b' }] }],
    ['defaultAudience is not one of audiences', { defaultAudience: 'urn:a' }],
    ['ids beginning with usr_ are kept for people', { clientId: 'usr_a' }],
    ['clientSecret counts only', { auth: { method: 'none', clientSecret: {} } }],
    ['privateKeyJwt counts only', { auth: { privateKeyJwt: {} } }],
    ['tls counts only', { auth: { method: 'client_secret_post', tls: {} } }],
    ['serviceAccounts counts only', { auth: { serviceAccounts: [{ name: 'a' }] } }],
    ['only one of jwks', { auth: { method: 'private_key_jwt', privateKeyJwt: { jwks: { keys: [] }, jwksUri: 'a' } } }],
    ['only one of subjectDn', { auth: { method: 'tls_client_auth', tls: { sanDns: 'a', sanIp: 'b' } } }],
    ['must be at least 24h', { auth: { clientSecret: { rotation: { interval: '23h59m' } } } }],
    ['must be from 1s to 24h', { tokens: { accessTokenLifetime: '24h1s' } }],
    ['must be from 1s to 24h', { tokens: { accessTokenLifetime: '0s' } }],
    ['must be from 1m to 24h', { tokens: { idTokenLifetime: '24h1s' } }],
    ['must be from 1m to 24h', { tokens: { idTokenLifetime: '59s' } }],
    ['must be from 1s to 8784h', { tokens: { refreshTokenLifetime: '8784h1s' } }],
    ['must be from 1s to 8784h', { tokens: { refreshTokenIdleLifetime: '0s' } }],
    ['must be at most 60s', { tokens: { refreshTokenReuseGrace: '61s' } }],
    ['browsers send no default port', { allowedCorsOrigins: ['https://app:443'] }],
    ['a key has more than 317 characters', { auth: { clientSecret: { extraData: { ['k'.repeat(318)]: '' } } } }],
  ])('say of a client: %s', async (message, spec) => {
    const manifest = { apiVersion: 'grantry.dev/v1alpha1', kind: 'OAuthClient', metadata: { name: 'a' }, spec };
    expect(await refusalOf(manifest, 'Strict')).toEqual([expect.stringContaining(message)]);
    await expectAgreement(manifest, 'refuse');
  });

  it.each(['made_up_method', 'client_secret_jwt'])('leave %s, an unknown method, to admission', async (method) => {
    const auth = { method, clientSecret: {}, privateKeyJwt: {}, tls: {}, serviceAccounts: [{ name: 'a' }] };
    const manifest = {
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'OAuthClient',
      metadata: { name: 'a' },
      spec: { auth },
    };
    expect(await refusalOf(manifest, 'Strict')).toBeUndefined();
  });

  it.each([
    ['must be at least 10m', { prePublish: '9m59s' }],
    ['must be at least 24h', { retain: '23h' }],
    ['interval must be longer than prePublish', { interval: '24h' }],
    ['interval must be longer than prePublish', { prePublish: '2160h' }],
  ])('say of a signing key: %s', async (message, rotation) => {
    const manifest = {
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'SigningKey',
      metadata: { name: 'a' },
      spec: { rotation },
    };
    expect(await refusalOf(manifest, 'Strict')).toEqual([expect.stringContaining(message)]);
    await expectAgreement(manifest, 'refuse');
  });

  it.each([
    ['must be at least 1m', { tokens: { maxLifetime: '59s' } }],
    ['needs exactly one of', { allowedClients: [{ clients: ['a'] }] }],
    ['needs exactly one of', { allowedClients: [{ namespaces: ['a'], namespaceSelector: {} }] }],
    ['a key has more than 317 characters', { displayNames: { ['k'.repeat(318)]: 'a' } }],
    ['a key has more than 317 characters', { scopes: [{ name: 'a', descriptions: { ['k'.repeat(318)]: 'a' } }] }],
  ])('say of a resource: %s', async (message, spec) => {
    const [apiVersion, kind] = ['grantry.dev/v1alpha1', 'ProtectedResource'];
    const manifest = { apiVersion, kind, metadata: { name: 'a' }, spec };
    expect(await refusalOf(manifest, 'Strict')).toEqual([expect.stringContaining(message)]);
    await expectAgreement(manifest, 'refuse');
  });

  it('keep the identifier of a resource, also when there was none', async () => {
    const resources = `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/protectedresources`;
    const object = (name: string, spec: object) => ({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'ProtectedResource',
      metadata: { name, namespace },
      spec,
    });
    await cluster.apply(object('given', { resource: 'urn:a:b' }), object('derived', {}));
    const change = async (name: string, resource: string | null) =>
      (await cluster.call('PATCH', `${resources}/${name}`, { body: { spec: { resource } } })).body.details?.causes?.[0]
        ?.message;
    expect(await change('given', 'urn:a:c')).toContain('resource cannot be changed');
    expect(await change('given', null)).toContain('resource cannot be changed');
    expect(await change('derived', 'urn:a:b')).toContain('resource cannot be changed');
    expect(await change('given', 'urn:a:b')).toBeUndefined();
  });

  it.each([
    ['needs oidc for the type OIDC', { oidc: undefined }],
    ['has gitHub, which is not for the type OIDC', { gitHub: {} }],
    ['has oidc, which is not for the type GitHub', { type: 'GitHub' }],
    ['one of them only', { type: 'GitHub', oidc: undefined, gitHub: { organizations: ['a'], anyone: true } }],
    ['must be from 5m to 2160h', { verifyEvery: '4m59s' }],
    ['must be from 5m to 2160h', { verifyEvery: '2160h1s' }],
    ['stands for many tenants', { oidc: { issuer: 'https://login.microsoftonline.com/consumers' } }],
    ['has a group with a comma', { allow: { groups: ['dev', 'a,b'] }, groups: { allowCommas: false } }],
    ['lacks openid', { oidc: { issuer: 'https://id.example', scopes: ['email'] } }],
  ])('say of an identity provider: %s', async (message, spec) => {
    const [apiVersion, kind] = ['grantry.dev/v1alpha1', 'IdentityProvider'];
    const manifest = { apiVersion, kind, metadata: { name: 'a' }, spec: { ...PROVIDER, ...spec } };
    expect(await refusalOf(manifest, 'Strict')).toEqual([expect.stringContaining(message)]);
    await expectAgreement(manifest, 'refuse');
  });

  it('keep the type of an identity provider, and change everything else', async () => {
    const providers = `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/identityproviders`;
    const metadata = { name: 'typed', namespace };
    await cluster.apply({ apiVersion: 'grantry.dev/v1alpha1', kind: 'IdentityProvider', metadata, spec: PROVIDER });
    const change = async (spec: object) =>
      (await cluster.call('PATCH', `${providers}/typed`, { body: { spec } })).body.details?.causes?.[0]?.message;
    expect(await change({ type: 'GitHub', oidc: null })).toContain('type cannot be changed');
    expect(await change({ oidc: { issuer: 'https://other.example' }, suspended: true })).toBeUndefined();
  });

  it('hold names to 63 characters', async () => {
    const specs = {
      OAuthClient: {},
      ProtectedResource: {},
      IdentityProvider: PROVIDER,
      SigningKey: {},
      ClientPolicy: { namespaceSelector: {} },
    };
    for (const [kind, spec] of Object.entries(specs)) {
      const manifest = (length: number) => ({
        apiVersion: 'grantry.dev/v1alpha1',
        kind,
        metadata: { name: 'a'.repeat(length) },
        spec,
      });
      expect(await refusalOf(manifest(63), 'Strict')).toBeUndefined();
      expect(await refusalOf(manifest(64), 'Strict')).toEqual([expect.stringContaining('more than 63')]);
    }
  });

  it('keep the client id, also when there was none, and the class', async () => {
    const clients = `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/oauthclients`;
    const object = (name: string, spec: object) => ({
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'OAuthClient',
      metadata: { name, namespace },
      spec,
    });
    await cluster.apply(object('named', { clientId: 'one' }), object('unnamed', {}));
    const change = async (name: string, spec: object) =>
      (await cluster.call('PATCH', `${clients}/${name}`, { body: { spec } })).body.details?.causes?.[0]?.message;
    expect(await change('named', { clientId: 'two' })).toContain('clientId cannot be changed');
    expect(await change('named', { clientId: null })).toContain('clientId cannot be changed');
    expect(await change('unnamed', { clientId: 'one' })).toContain('clientId cannot be changed');
    expect(await change('unnamed', { className: 'other' })).toContain('className cannot be changed');
    expect(await change('named', { displayName: 'Named' })).toBeUndefined();
  });
});

describe('a manifest with a field of an earlier version', () => {
  it.each([
    ['OAuthClient', { logoUri: 'https://shop.example.com/logo.svg' }, 'spec.logoUri'],
    ['OAuthClient', { contacts: ['shop-team@example.com'] }, 'spec.contacts'],
    ['OAuthClient', { requirePushedAuthorizationRequests: true }, 'spec.requirePushedAuthorizationRequests'],
    [
      'ClientPolicy',
      { namespaceSelector: {}, limits: { requirePushedAuthorizationRequests: true } },
      'spec.limits.requirePushedAuthorizationRequests',
    ],
  ])('%s with %j → refused where fields are validated strictly, else taken', async (kind, spec, path) => {
    const manifest = { apiVersion: 'grantry.dev/v1alpha1', kind, metadata: { name: 'former' }, spec };
    expect(await refusalOf(manifest, 'Strict')).toEqual([expect.stringContaining(`unknown field "${path}"`)]);
    expect(await refusalOf(manifest, 'Ignore')).toBeUndefined();
  });
});

describe('a new object', () => {
  const CONDITIONS = {
    OAuthClient: ['Accepted', 'ResolvedRefs', 'CredentialsReady', 'Programmed', 'Ready'],
    ProtectedResource: ['Accepted', 'Programmed', 'Ready'],
    IdentityProvider: ['Accepted', 'ResolvedRefs', 'Reachable', 'Programmed', 'Ready'],
    SigningKey: ['KeyMaterialReady', 'Ready'],
    ClientPolicy: ['Accepted', 'Ready'],
  };

  it.each(Object.keys(CONDITIONS) as Kind[])(
    'of kind %s has only pending conditions, whatever its author says',
    async (kind) => {
      const specs: Partial<Record<Kind, object>> = {
        ClientPolicy: { namespaceSelector: {}, className: namespace },
        IdentityProvider: PROVIDER,
      };
      const spec = specs[kind] ?? {};
      const status = { conditions: [{ type: 'Ready', status: 'True', reason: 'Ready', message: '' }] };
      const name = `new-${namespace}`;
      const metadata = kind === 'ClientPolicy' ? { name } : { name, namespace };
      const [object] = await cluster.apply({ apiVersion: 'grantry.dev/v1alpha1', kind, metadata, spec, status });
      const { conditions } = fieldsOf(object?.status) as { conditions: Record<string, string>[] };
      expect(conditions.map(({ type }) => type)).toEqual(CONDITIONS[kind]);
      for (const condition of conditions) expect(condition).toMatchObject({ status: 'Unknown', reason: 'Pending' });
    },
  );

  it('has its defaults filled in, also below blocks that are not there', async () => {
    const manifest = {
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'OAuthClient',
      metadata: { name: 'plain', namespace },
      spec: {},
    };
    const [object] = await cluster.apply(manifest);
    expect(object?.spec).toMatchObject({
      className: 'default',
      grantTypes: ['authorization_code'],
      consent: 'Required',
      auth: { method: 'client_secret_basic' },
      tokens: { accessTokenLifetime: '10m', refreshTokenRotation: 'Always' },
    });
  });

  it('accepts the removal of the only field that was applied to it, where it is a signing key', async () => {
    const [apiVersion, kind, metadata] = ['grantry.dev/v1alpha1', 'SigningKey', { name: 'emptied', namespace }];
    for (const revokedKeyIds of [['A'.repeat(43)], []]) {
      const path = `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/signingkeys/emptied?fieldManager=gitops`;
      const body = { apiVersion, kind, metadata, spec: { revokedKeyIds } };
      const { status } = await cluster.call('PATCH', path, { contentType: 'application/apply-patch+yaml', body });
      expect([200, 201]).toContain(status);
    }
  });

  it('is listed by its short name and its category, in columns that read well', async () => {
    const columns = async (...args: string[]) => {
      const { output, errors } = await cluster.kubectl(['get', '-n', namespace, ...args]);
      expect(errors).toBe('');
      return output
        .split('\n', 1)[0]
        ?.trim()
        .split(/\s{2,}/);
    };
    expect(await columns('oac')).toEqual(['NAME', 'CLIENT-ID', 'AUTH', 'READY', 'REASON', 'AGE']);
    const wide = ['SECRET', 'NEXT-ROTATION', 'GRANTS', 'POLICY', 'LAST-USED'];
    expect(await columns('oac', '-o', 'wide')).toEqual(expect.arrayContaining(wide));
    expect(await columns('skey')).toEqual([
      'NAME',
      'ALGORITHM',
      'ACTIVE-KEY',
      'READY',
      'REASON',
      'NEXT-ROTATION',
      'AGE',
    ]);
    expect(await columns('oacp')).toEqual(['NAME', 'READY', 'REASON', 'NAMESPACES', 'CLIENTS', 'AGE']);
    const { output } = await cluster.kubectl(['get', 'grantry', '-n', namespace, '-o', 'name']);
    expect(output).toContain('oauthclient.grantry.dev/plain');
  });

  it('is explained by kubectl', async () => {
    const { output } = await cluster.kubectl(['explain', 'oauthclient.spec.auth.clientSecret.rotation.interval']);
    expect(output.replaceAll(/\s+/g, ' ')).toContain('How often the secret is replaced, 24h at least.');
  });
});
