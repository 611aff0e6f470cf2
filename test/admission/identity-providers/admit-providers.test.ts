import { describe, expect, it } from 'vitest';
import { registryProviders } from '../../../src/admission/identity-providers/admit-providers.ts';
import { admitProvidersOf, summaryOf } from '../world.ts';

type Fields = Readonly<Record<string, unknown>>;

const ISSUER = 'https://id.corp.example';

function provider(spec: Fields, metadata: Fields = {}): Fields {
  return {
    apiVersion: 'grantry.dev/v1alpha1',
    kind: 'IdentityProvider',
    metadata: { name: 'corp', ...metadata },
    spec: { type: 'OIDC', clientSecretRef: { name: 'client' }, oidc: { issuer: ISSUER }, ...spec },
  };
}

/** @param organizations without any, every account may sign in */
function gitHub(host: string, metadata: Fields, organizations: readonly string[] = []): Fields {
  const anyone = organizations.length === 0;
  return provider({ type: 'GitHub', oidc: undefined, gitHub: { host, organizations, anyone } }, metadata);
}

function secret(stringData: Fields, more: Fields = {}): Fields {
  const type = 'grantry.dev/identity-provider';
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'client' }, type, stringData, ...more };
}

const CLIENT = secret({ 'client-id': 'grantry', 'client-secret': 'of-corp' });

/** Named and aged by a number. */
function numbered(number: number, spec: Fields = { oidc: { issuer: `https://id-${number}.example` } }): Fields {
  const creationTimestamp = new Date(Date.UTC(2026, 0, number)).toISOString();
  return provider(spec, { name: `corp-${number}`, uid: `uid-corp-${number}`, creationTimestamp });
}

function reasonsOf(documents: readonly Fields[]): readonly (string | undefined)[] {
  return admitProvidersOf(documents).map(({ faults }) => faults.map(({ reason }) => reason).join() || undefined);
}

function served(documents: readonly Fields[], wanted = 'corp') {
  return registryProviders(admitProvidersOf(documents)).find(({ name }) => name === wanted);
}

describe('what is served', () => {
  it('given the least manifest → every default', () => {
    expect(served([provider({}), CLIENT])).toEqual({
      uid: 'uid-0',
      name: 'corp',
      generation: 3,
      displayName: 'corp',
      isSuspended: false,
      revokedBefore: undefined,
      verifyEvery: 86_400_000,
      allow: { emailDomains: [], groups: [] },
      groups: { include: ['**'], prefix: 'corp:', allowCommas: false },
      credentials: { clientId: 'grantry', clientSecret: 'of-corp', authorities: undefined },
      type: 'OIDC',
      issuer: ISSUER,
      scopes: ['openid', 'profile', 'email'],
      clientAuth: 'client_secret_basic',
      subjectClaim: 'sub',
      claims: {
        username: 'preferred_username',
        displayName: 'name',
        email: 'email',
        emailVerified: 'email_verified',
        groups: 'groups',
      },
      assumeEmailVerified: false,
      requiredClaims: [],
      acrValues: [],
    });
  });

  it('given GitHub → its host without the usual port, and logins in lower case', () => {
    const document = gitHub('github.corp.example:443', { name: 'corp' }, ['Corp-Org']);
    expect(served([document, CLIENT])).toMatchObject({
      type: 'GitHub',
      host: 'github.corp.example',
      organizations: ['corp-org'],
    });
  });

  it('given an empty prefix → it stays empty', () => {
    expect(served([provider({ groups: { prefix: '' } }), CLIENT])?.groups.prefix).toBe('');
  });

  it.each(['\n', '\r\n'])('given values that end with %j, as files do → they are read without it', (end) => {
    const written = secret({ 'client-id': `grantry${end}`, 'client-secret': `of-corp${end}` });
    const credentials = { clientId: 'grantry', clientSecret: 'of-corp', authorities: undefined };
    expect(served([provider({}), written])?.credentials).toEqual(credentials);
  });

  it.each(['of-corp\n\n', '\nof-corp', 'of\ncorp', 'of-corp\t', '\n', ''])(
    'given the client secret %j → SecretKeyMissing',
    (value) => {
      const written = secret({ 'client-id': 'grantry', 'client-secret': value });
      const [verdict] = admitProvidersOf([provider({}), written]);
      expect(summaryOf(verdict?.conditions ?? [])).toContain('ResolvedRefs=False/SecretKeyMissing');
    },
  );

  it('given clientAuth none → no client secret, though the Secret has one', () => {
    const spec = { oidc: { issuer: ISSUER, clientAuth: 'none' } };
    const credentials = { clientId: 'grantry', clientSecret: undefined, authorities: undefined };
    expect(served([provider(spec), CLIENT])?.credentials).toEqual(credentials);
    expect(served([provider(spec), secret({ 'client-id': 'grantry' })])?.credentials).toEqual(credentials);
  });

  it.each([
    ['accepted', 'http on loopback', 'http://127.0.0.1:5556/dex'],
    ['accepted', 'a slash at the end', 'https://corp.auth0.example/'],
    ['refused', 'http elsewhere', 'http://127.0.0.1.example'],
    ['refused', 'a user name', 'https://ada@id.example'],
    ['refused', 'a fragment', 'https://id.example#x'],
    ['refused', 'the tenants of Entra', 'https://login.microsoftonline.com/organizations/v2.0'],
    ['accepted', 'a tenant that is named common-corp', 'https://login.microsoftonline.com/common-corp/v2.0'],
  ])('%s: an issuer with %s', (outcome, _, issuer) => {
    const reason = outcome === 'refused' ? 'InvalidManifest' : undefined;
    expect(reasonsOf([provider({ oidc: { issuer } }), CLIENT])).toEqual([reason]);
  });

  it.each([
    ['accepted', 'https://corp.example/groups'],
    ['accepted', 'resource_access.grantry.roles'],
    ['accepted', '/realm_access/roles'],
    ['accepted', '/a~1b/~0c'],
    ['refused', ''],
    ['refused', '/'],
    ['refused', '/a//b'],
    ['refused', '/a~2'],
    ['refused', 'two\nlines'],
  ])('%s: the claim %j', (outcome, groups) => {
    const reason = outcome === 'refused' ? 'InvalidManifest' : undefined;
    expect(reasonsOf([provider({ oidc: { issuer: ISSUER, claims: { groups } } }), CLIENT])).toEqual([reason]);
  });

  it('given organizations beside anyone → refused', () => {
    const both = { type: 'GitHub', oidc: undefined, gitHub: { organizations: ['corp'], anyone: true } };
    expect(reasonsOf([provider(both), CLIENT])).toEqual(['InvalidManifest']);
  });

  it('given a change of one → only that is another object; without any, the list is the same', () => {
    const others = [numbered(2), CLIENT];
    const before = registryProviders(admitProvidersOf([numbered(1), ...others]));
    expect(registryProviders(admitProvidersOf([numbered(1), ...others]), before)).toBe(before);
    const renamed = numbered(1, { oidc: { issuer: 'https://id-1.example' }, displayName: 'Corp' });
    const after = registryProviders(admitProvidersOf([renamed, ...others]), before);
    expect(after.map((one, at) => one === before[at])).toEqual([false, true]);
  });
});

describe('conditions', () => {
  it('given what can be served → those that were observed, and Ready', () => {
    const [verdict] = admitProvidersOf([provider({}), CLIENT]);
    expect(summaryOf(verdict?.conditions ?? [])).toEqual([
      ...['Accepted=True/Accepted', 'ResolvedRefs=True/ResolvedRefs', 'Reachable=True/Reachable'],
      ...['Programmed=True/Programmed', 'Ready=True/Ready'],
    ]);
  });

  it('given suspended → Ready is False with it, there is no fault, and the registry says so', () => {
    const [verdict] = admitProvidersOf([provider({ suspended: true }), CLIENT]);
    expect(verdict?.faults).toEqual([]);
    expect(summaryOf(verdict?.conditions ?? [])).toEqual([
      ...['Accepted=False/Suspended', 'ResolvedRefs=True/ResolvedRefs', 'Reachable=Unknown/Pending'],
      ...['Programmed=Unknown/Pending', 'Ready=False/Suspended'],
    ]);
    expect(verdict?.provider?.isSuspended).toBe(true);
  });

  it('given a Secret of another type → its values are not read', () => {
    const opaque = secret({ 'client-id': 'grantry', 'client-secret': 'pepper' }, { type: 'Opaque' });
    const [verdict] = admitProvidersOf([provider({}), opaque]);
    expect(summaryOf(verdict?.conditions ?? [])).toContain('ResolvedRefs=False/SecretTypeMismatch');
    expect(verdict?.provider).toMatchObject({ credentials: undefined });
  });
});

describe('a provider with a fault', () => {
  const FAULTS: readonly (readonly [string, Fields, readonly Fields[]])[] = [
    ['its Secret is missing', provider({}), []],
    ['its Secret lacks a key', provider({}), [secret({ 'client-id': 'grantry' })]],
    ['its certificate is broken', provider({}), [secret({ 'client-id': 'a', 'client-secret': 'b', 'ca.crt': 'x' })]],
    ['a field is broken', provider({ allow: { emailDomains: ['@'] } }), [CLIENT]],
  ];
  it.each(FAULTS)('given that %s → it is served without credentials', (_, document, others) => {
    const [verdict] = admitProvidersOf([document, ...others]);
    expect(verdict?.faults).toHaveLength(1);
    expect(verdict?.provider).toMatchObject({ type: 'OIDC', issuer: ISSUER, credentials: undefined });
  });

  it.each(FAULTS)(
    'given that %s → the one beside it has no fault, and stays the same object',
    (_, document, others) => {
      const oidc = { issuer: 'https://good.example' };
      const good = [
        provider({ clientSecretRef: { name: 'good' }, oidc }, { name: 'good', uid: 'uid-good' }),
        secret({ 'client-id': 'grantry', 'client-secret': 'of-good' }, { metadata: { name: 'good' } }),
      ];
      const before = registryProviders(admitProvidersOf([provider({}), CLIENT, ...good]));
      const verdicts = admitProvidersOf([document, ...others, ...good]);
      expect(verdicts.map(({ faults }) => faults.length)).toEqual([1, 0]);
      const isGood = ({ name }: { readonly name: string }) => name === 'good';
      expect(registryProviders(verdicts, before).find(isGood)).toBe(before.find(isGood));
      expect(before.find(isGood)?.credentials).toBeDefined();
    },
  );

  it('given GitHub for no organization, or the issuer of an older one, with a good Secret → no credentials', () => {
    const open = provider({ type: 'GitHub', oidc: undefined });
    expect(reasonsOf([open, CLIENT])).toEqual(['OrganizationsMissing']);
    expect(served([open, CLIENT])).toMatchObject({ type: 'GitHub', organizations: [], credentials: undefined });
    const same = { oidc: { issuer: ISSUER } };
    const documents = [numbered(1, same), numbered(2, same), CLIENT];
    expect(served(documents, 'corp-2')).toMatchObject({ issuer: ISSUER, credentials: undefined });
    expect(served(documents, 'corp-1')?.credentials).toBeDefined();
  });

  it('given a manifest that cannot be read → its kill switches, verifyEvery and domains count all the same', () => {
    const spec = { verifyEvery: '1h', revokeTokensBefore: '2026-01-02T03:04:05Z', displayName: '' };
    const broken = provider({ ...spec, suspended: true, allow: { emailDomains: ['corp.example', 7] } });
    expect(served([broken, CLIENT])).toMatchObject({
      isSuspended: true,
      verifyEvery: 3_600_000,
      revokedBefore: Date.UTC(2026, 0, 2, 3, 4, 5),
      allow: { emailDomains: ['corp.example'], groups: [] },
      credentials: undefined,
    });
    expect(served([provider({ displayName: '' }), CLIENT])).toMatchObject({
      isSuspended: false,
      verifyEvery: 86_400_000,
    });
  });

  it.each<[string, Fields]>([
    ['is being deleted', { deletionTimestamp: '2026-01-01T00:00:00Z' }],
    ['is named local', { name: 'local' }],
    ['is in another namespace', { namespace: 'team' }],
  ])('given one that %s → it is not served', (_, metadata) => {
    expect(registryProviders(admitProvidersOf([provider({}, metadata), CLIENT]))).toEqual([]);
  });
});

describe('several providers', () => {
  it('given one issuer twice → the oldest has it, whatever the order', () => {
    const same = { oidc: { issuer: ISSUER } };
    expect(reasonsOf([numbered(2, same), numbered(1, same), CLIENT])).toEqual(['IssuerTaken', undefined]);
  });

  it('given one host twice, once with its usual port → the oldest has it; another port is another host', () => {
    const hosts = ['github.corp.example', 'github.corp.example:443', 'github.corp.example:8443'];
    const documents = hosts.map((host, index) =>
      gitHub(host, { name: `g-${index}`, uid: `uid-g-${index}`, creationTimestamp: `2026-01-0${index + 1}T00:00:00Z` }),
    );
    expect(reasonsOf([...documents, CLIENT])).toEqual([undefined, 'IssuerTaken', undefined]);
  });

  it('given that the oldest of an issuer is suspended or broken → it keeps the issuer', () => {
    const same = { oidc: { issuer: ISSUER } };
    const suspended = numbered(1, { ...same, suspended: true });
    expect(reasonsOf([suspended, numbered(2, same), CLIENT])).toEqual([undefined, 'IssuerTaken']);
    const lacksSecret = numbered(1, { ...same, clientSecretRef: { name: 'absent' } });
    expect(reasonsOf([lacksSecret, numbered(2, same), CLIENT])).toEqual(['SecretNotFound', 'IssuerTaken']);
  });

  it('given 17 → the youngest is one too many; one that cannot count takes no place', () => {
    const seventeen = Array.from({ length: 17 }, (_, index) => numbered(17 - index));
    expect(reasonsOf([...seventeen, CLIENT])).toEqual(['TooManyProviders', ...Array(16).fill(undefined)]);
    const reserved = provider({}, { name: 'local', uid: 'uid-local', creationTimestamp: '2025-01-01T00:00:00Z' });
    expect(reasonsOf([reserved, ...seventeen.slice(1), CLIENT])).toEqual([
      'NameReserved',
      ...Array(16).fill(undefined),
    ]);
  });

  it('given several → oldest first, those without credentials too', () => {
    const lacksSecret = numbered(2, { oidc: { issuer: ISSUER }, clientSecretRef: { name: 'absent' } });
    const providers = registryProviders(admitProvidersOf([numbered(3), lacksSecret, numbered(1), CLIENT]));
    expect(providers.map(({ name, credentials }) => [name, credentials !== undefined])).toEqual([
      ['corp-1', true],
      ['corp-2', false],
      ['corp-3', true],
    ]);
  });
});
