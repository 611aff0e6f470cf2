import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { admitAll, admitOne, clientDocument, MACHINE, policyDocument, summaryOf, WEB } from '../world.ts';

const SECRET = 'a-secret-of-more-than-thirty-two-bytes';

describe('an admitted client', () => {
  it('has the defaults of its kind', () => {
    const { client } = admitOne([clientDocument(WEB, { uid: 'u-1' })]);
    expect(client).toMatchObject({
      uid: 'u-1',
      clientId: 'team.app',
      displayName: 'team.app',
      authMethod: 'client_secret_basic',
      grantTypes: ['authorization_code'],
      defaultScopes: [],
      audiences: ['urn:grantry:ns:team:default'],
      consent: 'Required',
      requireState: false,
      revokeTokensBefore: 0,
      tokens: {
        accessTokenFormat: 'jwt',
        accessTokenLifetimeSeconds: 600,
        refreshTokenIdleLifetimeSeconds: 1_209_600,
        refreshTokenLifetimeSeconds: 7_776_000,
        refreshTokenRotation: 'Always',
        refreshTokenReuseGraceSeconds: 10,
      },
    });
  });

  it('has five conditions of its generation, all True', () => {
    const { conditions } = admitOne([clientDocument(MACHINE)]);
    expect(summaryOf(conditions)).toEqual([
      'Accepted=True/Accepted',
      'ResolvedRefs=True/ResolvedRefs',
      'CredentialsReady=True/SecretGenerated',
      'Programmed=True/Programmed',
      'Ready=True/Ready',
    ]);
    expect(new Set(conditions.map(({ observedGeneration }) => observedGeneration))).toEqual(new Set([3]));
  });

  it('is served but not Ready while the replicas are behind', () => {
    const programmed = () => ({ status: 'Unknown', reason: 'NoReplicas', message: 'None.' }) as const;
    const { client, conditions } = admitOne([clientDocument(MACHINE)], { programmed });
    expect(client?.clientId).toBe('team.app');
    expect(summaryOf(conditions).slice(3)).toEqual(['Programmed=Unknown/NoReplicas', 'Ready=Unknown/NoReplicas']);
  });

  it('keeps the time before which its tokens are revoked', () => {
    const { client } = admitOne([clientDocument({ ...MACHINE, revokeTokensBefore: '2026-01-31T12:00:00+01:00' })]);
    expect(client?.revokeTokensBefore).toBe(Date.UTC(2026, 0, 31, 11));
  });

  it.each(['Café 2', 'می\u200Cخواهم', 'क्\u200Dष', '書店', '🛒 Shop', '❤\uFE0F Shop', 'متجر'])(
    'may be called %j',
    (displayName) => {
      expect(admitOne([clientDocument({ ...WEB, displayName })]).client?.displayName).toBe(displayName);
    },
  );

  it.each([
    ...['\u202Ebank', 'a\u2066b', 'a\u200Bb', 'a\u2028b', 'a\u2029b', 'a\u200Fb', 'a\uFEFFb', 'a\u00ADb', '\u3164'],
    ...['Sh\u200Dop', 'Sh\u200Cop', '\u200Dمتجر', 'a\uFE0Fb', 'a\u{E0041}b', ''],
  ])('is never called %j', (displayName) => {
    const { client, conditions } = admitOne([clientDocument({ ...WEB, displayName })]);
    expect([client, conditions[0]?.reason]).toEqual([undefined, 'InvalidManifest']);
  });

  it('may say that its explicit id is the one derived for it', () => {
    expect(admitOne([clientDocument({ ...MACHINE, clientId: 'team.app' })]).client?.clientId).toBe('team.app');
  });

  it('may leave fields null, as the API server allows', () => {
    const spec = { ...MACHINE, clientId: null, defaultAudience: null, auth: { clientSecret: null }, tokens: null };
    expect(admitOne([clientDocument(spec, { labels: { a: null } })]).client?.clientId).toBe('team.app');
  });

  it('may have a name of 100 characters of four bytes, and not of 101', () => {
    const named = (length: number) => admitOne([clientDocument({ ...WEB, displayName: '🔑'.repeat(length) })]);
    expect(named(100).client?.displayName).toHaveLength(200);
    expect(named(101).faults.map(({ path }) => path)).toEqual([['spec', 'displayName']]);
  });
});

describe('text in a manifest', () => {
  it.each([
    ['half a surrogate pair', 'a\ud800'],
    ['a control character', 'a\u0007'],
    ['nothing', ''],
  ])('that is %s is refused', (_, displayName) => {
    const { faults } = admitOne([clientDocument({ ...WEB, displayName })]);
    expect(faults.map(({ path, reason }) => [path.join('.'), reason])).toEqual([
      ['spec.displayName', 'InvalidManifest'],
    ]);
  });
});

describe('unknown fields', () => {
  const misspelt = clientDocument({ ...MACHINE, scope: 'x', auth: { methd: 'none' } }, { lables: {} });

  it('are refused one by one where unknown fields are refused, each at its place', () => {
    const { faults, client } = admitOne([misspelt]);
    expect(client).toBeUndefined();
    expect(faults.map(({ path }) => path.join('.'))).toEqual(['metadata.lables', 'spec.auth.methd', 'spec.scope']);
  });

  it('are ignored by a server', () => {
    const { faults, client } = admitOne([misspelt], { unknownFields: 'ignore' });
    expect(faults).toEqual([]);
    expect(client?.authMethod).toBe('client_secret_basic');
  });

  it.each([
    ['logoUri', 'https://shop.example.com/logo.svg'],
    ['logoUri', 'no address'],
    ['contacts', ['shop-team@example.com']],
    ['requirePushedAuthorizationRequests', false],
    ['requirePushedAuthorizationRequests', true],
  ])('the former %s with %j → the same client to a server, refused where unknown fields are', (field, value) => {
    const former = clientDocument({ ...WEB, [field]: value });
    const { client, faults } = admitOne([former], { unknownFields: 'ignore' });
    expect(faults).toEqual([]);
    expect(client).toEqual(admitOne([clientDocument(WEB)], { unknownFields: 'ignore' }).client);
    expect(admitOne([former]).faults.map(({ path }) => path.join('.'))).toEqual([`spec.${field}`]);
  });

  it.each([false, true])('a policy with the former limit on pushed requests at %j → permits as without', (value) => {
    const former = policyDocument({ limits: { requirePushedAuthorizationRequests: value } });
    const { client } = admitOne([clientDocument(WEB), former], { unknownFields: 'ignore' });
    expect(client?.clientId).toBe('team.app');
  });

  it('a private key is refused even by a server', () => {
    const jwks = { keys: [{ kty: 'OKP', crv: 'Ed25519', x: 'AA', d: 'private' }] };
    const spec = { ...MACHINE, auth: { method: 'private_key_jwt', privateKeyJwt: { jwks } } };
    const { manifest, faults } = admitOne([clientDocument(spec)], { unknownFields: 'ignore' });
    expect(manifest).toBeUndefined();
    const path = ['spec', 'auth', 'privateKeyJwt', 'jwks', 'keys', 0, 'd'];
    expect(faults).toEqual([expect.objectContaining({ path, reason: 'InvalidManifest' })]);
  });
});

describe('the audiences of a client', () => {
  const audiencesOf = (spec: object, metadata: object = {}, ...policies: readonly unknown[]) =>
    admitOne([clientDocument({ ...MACHINE, ...spec }, { ...metadata }), ...policies]).client?.audiences;

  it('none in the manifest → the default one of its own namespace alone, whatever its policy permits', () => {
    const scopes = { scopes: ['other/read'], defaultScopes: [] };
    expect(audiencesOf({ audiences: [] })).toEqual(['urn:grantry:ns:team:default']);
    expect(audiencesOf(scopes, { namespace: 'other' })).toEqual(['urn:grantry:ns:other:default']);
    const strict = policyDocument({ allow: { audiences: [] } });
    expect(audiencesOf({}, {}, strict)).toEqual(['urn:grantry:ns:team:default']);
  });

  it('those in the manifest → no others', () => {
    expect(audiencesOf({ audiences: ['urn:grantry:ns:team:api'] })).toEqual(['urn:grantry:ns:team:api']);
  });

  it('the default one of another namespace → PolicyViolation without a policy that lists it', () => {
    for (const spec of [
      { audiences: ['urn:grantry:ns:other:default'] },
      { resourceServer: { audiences: ['urn:grantry:ns:other:default'] } },
    ]) {
      const { faults } = admitOne([clientDocument({ ...MACHINE, ...spec })]);
      expect(faults.map(({ reason }) => reason)).toEqual(['PolicyViolation']);
    }
  });

  it('the issuer, which is for the endpoints of grantry → InvalidAudience, also where a policy permits it', () => {
    const policy = policyDocument({ allow: { audiences: ['**'] } });
    for (const [path, spec] of [
      [['spec', 'audiences', 1], { audiences: ['urn:a', 'https://id.example'], defaultAudience: 'urn:a' }],
      [['spec', 'resourceServer', 'audiences', 0], { resourceServer: { audiences: ['https://id.example'] } }],
    ] as const) {
      const documents = [clientDocument({ ...MACHINE, ...spec }), policy];
      const { faults, client } = admitOne(documents, { issuer: 'https://id.example' });
      expect(faults.map(({ reason, path }) => [reason, path])).toEqual([['InvalidAudience', path]]);
      expect(client).toBeUndefined();
      expect(admitOne(documents, { issuer: 'https://id.example:8443' }).faults).toEqual([]);
    }
  });
});

describe('the default audience', () => {
  const issuer = 'https://id.example';
  const faultsOf = (spec: object, settings: object = { issuer }) => {
    const policy = policyDocument({ allow: { audiences: ['**'] } });
    return admitOne([clientDocument({ ...WEB, ...spec }), policy], settings).faults.map(({ path }) => path);
  };

  it.each([{}, { audiences: ['urn:a'] }, { audiences: ['urn:a', 'urn:b'] }, { resources: [{ name: 'a' }] }])(
    'given %j, may be the issuer where a scope is openid, and nowhere else',
    (spec) => {
      const withIssuer = { ...spec, scopes: ['openid'], defaultScopes: [], defaultAudience: issuer };
      expect(faultsOf(withIssuer)).toEqual([]);
      expect(faultsOf({ ...withIssuer, scopes: ['team/read'] })).toEqual([['spec', 'defaultAudience']]);
    },
  );

  it('given another web address → InvalidAudience; where the issuer is not known, it may be it', () => {
    const spec = { scopes: ['openid'], defaultScopes: [], audiences: ['urn:a'], defaultAudience: `${issuer}/` };
    expect(faultsOf(spec)).toEqual([['spec', 'defaultAudience']]);
    expect(faultsOf(spec, {})).toEqual([]);
    expect(faultsOf({ ...spec, defaultAudience: 'urn:b' }, {})).toEqual([['spec', 'defaultAudience']]);
  });
});

describe('a refused client', () => {
  it('is not served, and what follows from acceptance is not known', () => {
    const { client, conditions, wantsSecret } = admitOne([clientDocument({ ...MACHINE, audiences: ['urn:other'] })], {
      verifiersOf: () => [],
    });
    expect(client).toBeUndefined();
    expect(wantsSecret).toBe(false);
    expect(summaryOf(conditions)).toEqual([
      'Accepted=False/PolicyViolation',
      'ResolvedRefs=True/ResolvedRefs',
      'CredentialsReady=Unknown/Pending',
      'Programmed=Unknown/Pending',
      'Ready=False/PolicyViolation',
    ]);
  });

  it('that is suspended says so first, and that is no fault', () => {
    const { client, conditions, faults } = admitOne([clientDocument({ ...MACHINE, suspended: true })]);
    expect(client).toBeUndefined();
    expect(faults).toEqual([]);
    expect(summaryOf(conditions)[0]).toBe('Accepted=False/Suspended');
  });

  it('lists everything that is wrong, and its condition the first of it', () => {
    const spec = { grantTypes: ['implicit', 'authorization_code'], scopes: ['a b'], consent: 'Skip' };
    const { conditions, faults } = admitOne([clientDocument(spec)]);
    expect(faults.map(({ reason }) => reason).sort()).toEqual(
      ['UnsupportedGrantType', 'MissingRedirectUri', 'InvalidScope', 'PolicyViolation'].sort(),
    );
    expect(conditions[0]?.reason).toBe('UnsupportedGrantType');
  });

  it('that only wants to be an API, and leaves grantTypes to the default → the message says grantTypes: []', () => {
    const api = { resourceServer: { audiences: ['urn:grantry:ns:shop:default'] } };
    const { conditions } = admitOne([clientDocument(api)]);
    expect(conditions[0]).toMatchObject({
      reason: 'MissingRedirectUri',
      message: expect.stringContaining('grantTypes: []'),
    });
    expect(admitOne([clientDocument({ ...api, grantTypes: [] })]).conditions[0]?.reason).not.toBe('MissingRedirectUri');
  });

  it('names missing references', () => {
    const jwksConfigMapRef = { name: 'absent' };
    const byKey = { method: 'private_key_jwt', privateKeyJwt: { jwksConfigMapRef } };
    const byToken = { method: 'kubernetes_service_account', serviceAccounts: [{ name: 'absent' }] };
    const reasonsOf = (auth: object) =>
      admitOne([clientDocument({ ...MACHINE, auth })]).faults.map(({ reason }) => reason);
    expect(reasonsOf(byKey)).toEqual(['ConfigMapNotFound']);
    expect(reasonsOf(byToken)).toEqual(['ServiceAccountNotFound']);
  });

  it('may use every lifetime up to its limit and none above', () => {
    const policy = policyDocument({ limits: { maxAccessTokenLifetime: '24h', maxRefreshTokenLifetime: '8784h' } });
    const faultsOf = (tokens: object) => {
      const spec = { ...WEB, grantTypes: ['authorization_code', 'refresh_token'], tokens };
      return admitOne([clientDocument(spec), policy]).faults.map(({ reason }) => reason);
    };
    expect(
      faultsOf({ accessTokenLifetime: '24h', refreshTokenLifetime: '8784h', refreshTokenReuseGrace: '1m' }),
    ).toEqual([]);
    expect(faultsOf({ accessTokenLifetime: '86401s' })).toContain('InvalidTokenSettings');
    expect(faultsOf({ refreshTokenIdleLifetime: '0s' })).toEqual(['InvalidTokenSettings']);
    expect(faultsOf({ refreshTokenReuseGrace: '61s' })).toEqual(['InvalidTokenSettings']);
  });

  it.each([
    ['the baseline', undefined, '1h', '3601s'],
    ['a policy', '10h', '36000s', '36001s'],
    ['a policy of the greatest lifetime', '24h', '86400s', undefined],
    ['a policy that says more than there is', '48h', '24h', undefined],
  ])('may have ID tokens for 1m to what %s permits, and not a second more', (_, limit, most, tooLong) => {
    const allow = { scopes: ['openid', 'team-a/*'] };
    const policy = policyDocument({ allow, limits: limit === undefined ? {} : { maxIdTokenLifetime: limit } });
    const faultsOf = (idTokenLifetime: string, scopes = ['openid']) =>
      admitOne([clientDocument({ ...WEB, scopes, tokens: { idTokenLifetime } }), policy]).faults.map(
        ({ reason }) => reason,
      );
    expect([faultsOf('1m'), faultsOf('60s'), faultsOf(most)]).toEqual([[], [], []]);
    expect(faultsOf('59s')).toEqual(['InvalidTokenSettings']);
    expect(faultsOf('86401s')).toContain('InvalidTokenSettings');
    if (tooLong === undefined) return;
    expect(faultsOf(tooLong)).toEqual(['PolicyViolation']);
    // Without openid there is no ID token to limit.
    expect(faultsOf(tooLong, ['team-a/read'])).toEqual([]);
  });
});

describe('a generated secret', () => {
  it('is wanted while there is no verifier', () => {
    const { client, conditions, wantsSecret } = admitOne([clientDocument(MACHINE)], { verifiersOf: () => [] });
    expect(client).toBeUndefined();
    expect(wantsSecret).toBe(true);
    expect(summaryOf(conditions).slice(2)).toEqual([
      'CredentialsReady=Unknown/Pending',
      'Programmed=Unknown/Pending',
      'Ready=Unknown/Pending',
    ]);
  });

  it('is known by the verifiers of this object, newest first', () => {
    const verifiers = [secretVerifier('u-1', 'new'), secretVerifier('u-1', 'old')];
    const verifiersOf = (uid: string) => (uid === 'u-1' ? verifiers : []);
    const { client, wantsSecret } = admitOne([clientDocument(MACHINE, { uid: 'u-1' })], { verifiersOf });
    expect(client?.secretVerifiers).toEqual(verifiers);
    expect(wantsSecret).toBe(false);
  });

  it('that is only assumed makes a client Ready that is not served', () => {
    const { client, conditions, wantsSecret } = admitOne([clientDocument(MACHINE)], {
      verifiersOf: () => 'assumed',
    });
    expect(client).toBeUndefined();
    expect(wantsSecret).toBe(false);
    expect(conditions.at(-1)?.status).toBe('True');
  });

  it('is never put into a Secret that was not written for this client', () => {
    const client = clientDocument(MACHINE, { uid: 'u-1' });
    const secret = (labels: object) => ({
      kind: 'Secret',
      metadata: { name: 'app-oauth', namespace: 'team', labels },
    });
    const reasonOf = (labels: object) => admitOne([client, secret(labels)]).conditions[2]?.reason;
    expect(reasonOf({})).toBe('SecretNotOwned');
    expect(reasonOf({ 'grantry.dev/client-uid': 'u-2' })).toBe('SecretNotOwned');
    expect(reasonOf({ 'grantry.dev/client-uid': 'u-1' })).toBe('SecretGenerated');
  });

  it('is not wanted by a public client', () => {
    const { client, conditions } = admitOne([clientDocument({ ...WEB, auth: { method: 'none' } })], {
      verifiersOf: () => [],
    });
    expect(client?.secretVerifiers).toEqual([]);
    expect(conditions[2]?.reason).toBe('NotRequired');
  });

  it.each([
    ['a further label of the same domain', { 'app.kubernetes.io/part-of': 'x', plain: 'c' }, []],
    ['a label of ours', { 'grantry.dev/client': 'other' }, ['InvalidSecretTemplate']],
    ['a label below a reserved domain', { 'x.k8s.io/a': 'b' }, ['InvalidSecretTemplate']],
    ['a label of Helm', { 'helm.sh/chart': 'x' }, ['InvalidSecretTemplate']],
    ['a domain that only ends alike', { 'notk8s.io/a': 'b' }, ['PolicyViolation']],
    ['a domain below the one that needs no permission', { 'x.app.kubernetes.io/a': 'b' }, ['InvalidSecretTemplate']],
    ['a domain that only begins alike', { 'app.kubernetes.io.example/a': 'b' }, ['PolicyViolation']],
    ['a label of another operator', { 'replicator.v1.mittwald.de/a': 'b' }, ['PolicyViolation']],
    ['a value no label may have', { a: 'b c' }, ['InvalidSecretTemplate']],
    ['a key no label may have', { 'a b': 'c' }, ['InvalidSecretTemplate']],
  ])('with %s', (_, labels, reasons) => {
    const auth = { clientSecret: { secretTemplate: { labels } } };
    const { faults, conditions } = admitOne([clientDocument({ ...MACHINE, auth })]);
    expect(faults.map(({ reason }) => reason)).toEqual(reasons);
    expect(conditions.at(-1)?.status).toBe(reasons.length === 0 ? 'True' : 'False');
  });
});

describe('where the Secrets of tenants are not read', () => {
  const verifier = new Uint8Array(32).fill(9);
  const admitted = (clientSecret: object, verifiers: readonly Uint8Array[]) =>
    admitOne([clientDocument({ ...MACHINE, auth: { clientSecret } })], {
      otherSecrets: 'withheld',
      verifiersOf: () => verifiers,
    });

  it.each(['Generate', 'Existing'])('a secret with source %s counts by the verifiers kept for it', (source) => {
    expect(admitted({ source }, [verifier]).client?.secretVerifiers).toEqual([verifier]);
  });

  it('a client stays pending whose secret no process has read yet', () => {
    const verdict = admitted({ source: 'Existing' }, []);
    expect(verdict.client).toBeUndefined();
    expect(verdict.faults).toEqual([]);
    expect(verdict.wantsSecret).toBe(false);
    expect(summaryOf(verdict.conditions).at(-1)).toBe('Ready=Unknown/Pending');
  });
});

describe('an existing secret', () => {
  const auth = { clientSecret: { source: 'Existing', keys: { clientSecret: 'secret', previousClientSecret: 'old' } } };
  const client = clientDocument({ ...MACHINE, auth }, { uid: 'u-1' });
  const secret = (values: object) => ({
    kind: 'Secret',
    metadata: { name: 'app-oauth', namespace: 'team' },
    ...values,
  });
  const encode = (value: string) => Buffer.from(value).toString('base64');

  it('is verified by its value and the one before it', () => {
    const verdict = admitOne([client, secret({ stringData: { secret: SECRET, old: `${SECRET}-old` } })]);
    expect(verdict.client?.secretVerifiers).toEqual([
      secretVerifier('u-1', SECRET),
      secretVerifier('u-1', `${SECRET}-old`),
    ]);
    expect(verdict.conditions[2]?.reason).toBe('SecretAdopted');
  });

  it('need not have a value before it', () => {
    const verdict = admitOne([client, secret({ data: { secret: encode(SECRET) } })]);
    expect(verdict.client?.secretVerifiers).toEqual([secretVerifier('u-1', SECRET)]);
  });

  it('is read from stringData before data, and from base64 over several lines', () => {
    const both = secret({ data: { secret: encode(`${SECRET}-data`) }, stringData: { secret: SECRET } });
    expect(admitOne([client, both]).client?.secretVerifiers).toEqual([secretVerifier('u-1', SECRET)]);
    const folded = secret({ data: { secret: encode(SECRET).replace(/(.{10})/g, '$1\n') } });
    expect(admitOne([client, folded]).client?.secretVerifiers).toEqual([secretVerifier('u-1', SECRET)]);
  });

  it('needs 32 bytes, not 32 characters', () => {
    const reasonOf = (value: string) =>
      admitOne([client, secret({ stringData: { secret: value } })]).conditions[2]?.reason;
    expect(reasonOf('x'.repeat(31))).toBe('WeakSecret');
    expect(reasonOf('x'.repeat(32))).toBe('SecretAdopted');
    expect(reasonOf('é'.repeat(16))).toBe('SecretAdopted');
  });

  it.each([
    ['letters, digits and - . _ ~', `${SECRET}-._~`, false],
    ['a plus', `${SECRET}+`, true],
    ['padding', `${SECRET}==`, true],
    ['a letter of another script', `${SECRET}é`, true],
  ])('with %s is used, and whether a consumer has to encode it is said', (_, value, isWarned) => {
    const { client: served, conditions } = admitOne([client, secret({ stringData: { secret: value } })]);
    expect(served?.secretVerifiers).toEqual([secretVerifier('u-1', value)]);
    expect(conditions[2]).toMatchObject({ status: 'True', reason: 'SecretAdopted' });
    expect(conditions[2]?.message.includes('6749')).toBe(isWarned);
    // The same is said by who knows of it without the value.
    const otherSecrets = isWarned ? 'withheld_reserved' : 'withheld';
    const withheld = admitOne([client], { otherSecrets, verifiersOf: () => [secretVerifier('u-1', value)] });
    expect(withheld.conditions[2]).toEqual(conditions[2]);
  });

  it.each([
    ['a number', { stringData: { secret: 1234567890123456 } }],
    ['a broken data map', { data: 'x' }],
    ['bytes that are no text', { data: { secret: Buffer.alloc(40, 0xff).toString('base64') } }],
    ['an inherited name', {}],
    ['a tab', { stringData: { secret: `${SECRET}\t` } }],
  ])('of %s is SecretKeyMissing', (_, values) => {
    const { client: served, conditions } = admitOne([client, secret(values)]);
    expect(served).toBeUndefined();
    expect(summaryOf(conditions).slice(1, 3)).toEqual([
      'ResolvedRefs=False/SecretKeyMissing',
      'CredentialsReady=Unknown/Pending',
    ]);
  });

  it('that does not do is named where the manifest names it, by the keys it has and no value', () => {
    const faultsOf = (clientSecret: object, values: object) => {
      const document = clientDocument({ ...MACHINE, auth: { clientSecret: { source: 'Existing', ...clientSecret } } });
      return admitOne([document, secret(values)]).faults;
    };
    const short = { stringData: { 'client-secret': 'hunter2' } };
    const other = { stringData: { password: 'hunter2' }, data: { 'tls.key': encode(SECRET) } };
    expect(faultsOf({}, short)).toMatchObject([{ reason: 'WeakSecret', path: ['spec', 'auth', 'clientSecret'] }]);
    const [fault] = faultsOf({ secretName: 'app-oauth' }, other);
    expect(fault).toMatchObject({
      reason: 'SecretKeyMissing',
      path: ['spec', 'auth', 'clientSecret', 'secretName'],
      message: expect.stringMatching(/"tls.key", "password"/),
    });
    expect(fault?.message).not.toContain('hunter2');
  });

  it('is never taken from another namespace', () => {
    const elsewhere = {
      ...secret({ stringData: { secret: SECRET } }),
      metadata: { name: 'app-oauth', namespace: 'other' },
    };
    expect(admitOne([client, elsewhere]).faults.map(({ reason }) => reason)).toEqual(['SecretNotFound']);
  });

  it('that is only assumed makes a client Ready that is not served', () => {
    const verdict = admitOne([client], { otherSecrets: 'assumed' });
    expect(verdict.client).toBeUndefined();
    expect(verdict.conditions.at(-1)?.status).toBe('True');
  });

  it('never stands in a message', () => {
    const short = 'hunter2-hunter2';
    const verdict = admitOne([client, secret({ stringData: { secret: short } })]);
    expect(JSON.stringify([verdict.conditions, verdict.faults])).not.toContain(short);
  });
});

describe('a manifest that is anything at all', () => {
  const neighbour = clientDocument(MACHINE, { name: 'neighbour', creationTimestamp: '2026-01-01T00:00:00Z' });

  const almostAnything = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.array(fc.oneof(fc.webUrl(), fc.string(), fc.constantFrom('authorization_code', 'team/read')), { maxLength: 4 }),
    fc.constantFrom('10m', 'none', 'team/read', `\${namespace}`, { method: 'none' }, { source: 'Existing' }),
  );
  const fields = [
    ...['clientId', 'displayName', 'clientUri', 'policyUri', 'suspended', 'revokeTokensBefore', 'auth', 'grantTypes'],
    ...['redirectUris', 'postLogoutRedirectUris', 'allowedCorsOrigins', 'scopes', 'defaultScopes', 'audiences'],
    ...['defaultAudience', 'resourceServer', 'consent', 'requireState', 'senderConstraint', 'tokens'],
  ];
  const almostASpec = fc.dictionary(fc.constantFrom(...fields), almostAnything, { maxKeys: 12 });

  it('has a verdict with all five conditions, and harms no other', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.jsonValue({ maxDepth: 6 }), almostASpec), fc.boolean(), async (value, strict) => {
        const broken = { ...clientDocument({}, { name: 'broken' }), spec: value };
        const { clients } = await admitAll([broken, neighbour], { unknownFields: strict ? 'refuse' : 'ignore' });
        for (const verdict of clients) expect(verdict.conditions).toHaveLength(5);
        expect(clients.at(-1)?.client?.clientId).toBe('team.neighbour');
      }),
    );
  });

  it('never throws, whichever field holds what it should not', async () => {
    const values: readonly unknown[] = [
      null,
      0,
      -1,
      Number.NaN,
      '',
      'x'.repeat(100_000),
      '\ud800',
      [],
      [[]],
      [null],
      {},
      true,
      { constructor: 1 },
    ];
    const paths = [
      ...['apiVersion', 'kind', 'metadata', 'spec', 'status', '__proto__'].map((field) => [field]),
      ...['name', 'namespace', 'uid', 'labels', 'deletionTimestamp', 'generation'].map((field) => ['metadata', field]),
      ...['className', 'clientId', 'auth', 'grantTypes', 'redirectUris', 'scopes', 'audiences', 'defaultAudience'].map(
        (field) => ['spec', field],
      ),
      ...['tokens', 'resourceServer', 'revokeTokensBefore', 'allowedCorsOrigins', 'clientUri', 'toString'].map(
        (field) => ['spec', field],
      ),
    ];
    for (const [first = '', second] of paths) {
      for (const value of values) {
        const sound: Record<string, unknown> = { ...clientDocument(WEB) };
        const changed = second === undefined ? value : { ...(sound[first] as object), [second]: value };
        const broken = Object.defineProperty({ ...sound }, first, { value: changed, enumerable: true });
        const { clients } = await admitAll([{ ...neighbour }, broken]);
        expect(clients[0]?.client?.clientId).toBe('team.neighbour');
      }
    }
  });

  it('is not read deeper than its schema, even when it contains itself', () => {
    const endless: Record<string, unknown> = { ...MACHINE };
    endless.tokens = endless;
    endless.auth = { clientSecret: { extraData: endless } };
    const { conditions } = admitOne([clientDocument(endless)]);
    expect(conditions[0]?.reason).toBe('InvalidManifest');
  });
});
