import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { matchesSelector } from '../../../src/admission/policies/label-selector.ts';
import { admitAll, admitOne, clientDocument, MACHINE, policyDocument, resourceDocument, WEB } from '../world.ts';

describe('a namespace selector', () => {
  const selector = (parts: Partial<Parameters<typeof matchesSelector>[0]>) => ({
    matchLabels: {},
    matchExpressions: [],
    ...parts,
  });
  const labels = { tier: 'gold', team: 'a' };

  it.each([
    ['selects everything when empty', selector({}), true],
    ['matches labels', selector({ matchLabels: { tier: 'gold' } }), true],
    ['refuses another value', selector({ matchLabels: { tier: 'silver' } }), false],
    ['refuses a label that is not there', selector({ matchLabels: { toString: 'x' } }), false],
    ['In', selector({ matchExpressions: [{ key: 'team', operator: 'In', values: ['a', 'b'] }] }), true],
    ['In without the label', selector({ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }), false],
    ['NotIn', selector({ matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['a'] }] }), false],
    [
      'NotIn without the label',
      selector({ matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] }),
      true,
    ],
    ['Exists', selector({ matchExpressions: [{ key: 'team', operator: 'Exists', values: [] }] }), true],
    [
      'Exists of an inherited name',
      selector({ matchExpressions: [{ key: 'valueOf', operator: 'Exists', values: [] }] }),
      false,
    ],
    ['DoesNotExist', selector({ matchExpressions: [{ key: 'team', operator: 'DoesNotExist', values: [] }] }), false],
    [
      'needs all of it',
      selector({ matchLabels: { tier: 'gold' }, matchExpressions: [{ key: 'zone', operator: 'Exists', values: [] }] }),
      false,
    ],
  ])('%s', (_, given, expected) => {
    expect(matchesSelector(given, labels)).toBe(expected);
  });
});

describe('policies', () => {
  const reasonsOf = (...documents: readonly unknown[]) => admitOne(documents).faults.map(({ reason }) => reason);

  it('leave the lists they do not speak of to the baseline', () => {
    expect(reasonsOf(clientDocument(WEB), policyDocument({ allow: { grantTypes: ['authorization_code'] } }))).toEqual(
      [],
    );
    const wide = { ...WEB, scopes: ['other/read'] };
    expect(reasonsOf(clientDocument(wide), policyDocument({ allow: { grantTypes: ['**'] } }))).toEqual([
      'PolicyViolation',
    ]);
  });

  it('take the place of the baseline, also when they permit less', () => {
    expect(reasonsOf(clientDocument(WEB), policyDocument({ allow: { scopes: [] } }))).toEqual(['PolicyViolation']);
  });

  it('permit a client when any one of them permits all of it, and name that one', () => {
    const strict = policyDocument({ allow: { scopes: [] } }, 'a-strict');
    const wide = policyDocument({ allow: { scopes: ['**'] } }, 'b-wide');
    const verdict = admitOne([clientDocument(MACHINE), wide, strict]);
    expect(verdict.policy).toBe('b-wide');
    expect(verdict.client?.clientId).toBe('team.app');
  });

  it('that all refuse: the faults are those of the alphabetically first', () => {
    const client = clientDocument({ ...WEB, consent: 'Skip' });
    const first = policyDocument({}, 'a');
    const second = policyDocument({ allow: { scopes: [], consentSkip: true } }, 'b');
    const verdict = admitOne([client, second, first]);
    expect(verdict.policy).toBe('a');
    expect(verdict.faults.map(({ path }) => path)).toEqual([['spec', 'consent']]);
  });

  it('of another class do not count', () => {
    const verdict = admitOne([clientDocument(WEB), policyDocument({ className: 'staging', allow: { scopes: [] } })]);
    expect(verdict.policy).toBe('(baseline)');
  });

  it('that cannot be read permit nothing, and the baseline does not step in', async () => {
    const { clients, policies } = await admitAll([
      clientDocument(WEB),
      policyDocument({ allow: { scopes: 'team/*' } }),
    ]);
    expect(policies.map(({ conditions }) => conditions[0]?.reason)).toEqual(['InvalidManifest']);
    expect(clients.map(({ conditions }) => conditions[0]?.reason)).toEqual(['PolicyViolation']);
  });

  const gold = { kind: 'Namespace', metadata: { name: 'team', labels: { tier: 'gold', zone: 'a' } } };
  it.each<[string, unknown, boolean]>([
    ['none', undefined, true],
    ['text', 'team', true],
    ['a list', ['tier', 'gold'], true],
    ['labels that are a list', { matchLabels: ['gold'] }, true],
    ['one unreadable label', { matchLabels: { tier: 7 } }, true],
    ['a label that matches and an unreadable one', { matchLabels: { tier: 'gold', zone: { a: 1 } } }, true],
    ['a label that does not match and an unreadable one', { matchLabels: { tier: 'silver', zone: 7 } }, false],
    ['an unknown operator', { matchExpressions: [{ key: 'tier', operator: 'Like', values: ['g*'] }] }, true],
    [
      'a requirement that is not met and an unknown operator',
      {
        matchExpressions: [
          { key: 'tier', operator: 'NotIn', values: ['gold'] },
          { key: 'zone', operator: 'Like' },
        ],
      },
      false,
    ],
    [
      'a label that does not match and requirements that are text',
      { matchLabels: { tier: 'silver' }, matchExpressions: 'all' },
      false,
    ],
    ['a requirement that is met and one without values', { matchExpressions: [{ key: 'tier', operator: 'In' }] }, true],
  ])(
    'with %s as selector → permit nothing where the readable part of it matches',
    async (_, namespaceSelector, applies) => {
      const broken = policyDocument({ namespaceSelector, allow: { scopes: ['**'] } });
      const { clients, policies } = await admitAll([clientDocument(WEB), gold, broken]);
      expect(clients.map(({ policy }) => policy)).toEqual([applies ? 'team-policy' : '(baseline)']);
      expect(clients.map(({ conditions }) => conditions[0]?.reason)).toEqual([
        applies ? 'PolicyViolation' : 'Accepted',
      ]);
      const [accepted] = policies[0]?.conditions ?? [];
      expect(accepted).toMatchObject({ status: 'False', reason: 'InvalidManifest' });
      expect(accepted?.message).toMatch(/^spec\.namespaceSelector.* permits nothing/);
    },
  );

  it('with anything at all as selector → no error, and without any readable part of it nothing is permitted', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 4 }), async (namespaceSelector) => {
        const documents = [clientDocument(WEB), policyDocument({ namespaceSelector, allow: { scopes: [] } })];
        const { clients, policies } = await admitAll(documents);
        const isReadable = policies.every(({ faults }) => faults.length === 0);
        if (!isReadable) expect(clients.map(({ policy }) => policy)).toEqual(['team-policy']);
      }),
    );
  });

  it('fill the namespace into every glob', () => {
    const spec = {
      clientId: 'team-portal',
      scopes: ['x:team'],
      audiences: ['https://team.example.com/api'],
      redirectUris: ['https://team.apps.example.com/cb', 'com.example.team:/cb'],
      allowedCorsOrigins: ['https://team.apps.example.com'],
    };
    const allow = {
      clientIds: [`\${namespace}-*`],
      scopes: [`x:\${namespace}`],
      audiences: [`https://\${namespace}.example.com/*`],
      redirectHosts: [`\${namespace}.apps.example.com`],
      redirectSchemes: [`com.example.\${namespace}`],
      corsOrigins: [`https://\${namespace}.apps.example.com`],
    };
    expect(reasonsOf(clientDocument(spec), policyDocument({ allow }))).toEqual([]);
    const elsewhere = clientDocument(spec, { namespace: 'other' });
    const everywhere = { ...policyDocument({ allow }), spec: { namespaceSelector: {}, allow } };
    expect(reasonsOf(elsewhere, everywhere)).toHaveLength(6);
  });

  it.each([
    ['no list', undefined, 'keys.example.com', false],
    ['an empty list', [], 'keys.example.com', false],
    ['the host', ['keys.example.com'], 'keys.example.com:8443', true],
    ['a star for one label', ['*.example.com'], 'keys.example.com', true],
    ['a star for one label', ['*.example.com'], 'a.keys.example.com', false],
    ['the namespace', [`keys.\${namespace}.svc.cluster.local`], 'keys.team.svc.cluster.local', true],
    ['the namespace', [`keys.\${namespace}.svc.cluster.local`], 'keys.other.svc.cluster.local', false],
    ['every host', ['**'], 'localhost', true],
  ])('given %s of hosts for keys (%j) → those at %s are permitted: %s', (_, jwksHosts, host, isPermitted) => {
    const auth = { method: 'private_key_jwt', privateKeyJwt: { jwksUri: `https://${host}/jwks.json` } };
    const policies = jwksHosts === undefined ? [] : [policyDocument({ allow: { jwksHosts } })];
    const { faults } = admitOne([clientDocument({ ...MACHINE, auth }), ...policies]);
    const ofKeys = faults.filter(({ path }) => path.at(-1) === 'jwksUri').map(({ path, reason }) => [reason, ...path]);
    const refused = ['PolicyViolation', 'spec', 'auth', 'privateKeyJwt', 'jwksUri'];
    expect(ofKeys).toEqual(isPermitted ? [] : [refused]);
  });

  it('never let a variable stand in for an id with a dot', () => {
    const client = clientDocument({ ...MACHINE, clientId: 'team.other' });
    const policy = policyDocument({ allow: { clientIds: [`\${namespace}.other`] } });
    const { faults } = admitOne([client, policy], { unknownFields: 'ignore' });
    expect(faults.map(({ reason }) => reason)).toEqual(['ClientIdNotPermitted']);
  });

  it('validate what a resource server answers for as they validate audiences', () => {
    const client = clientDocument({ grantTypes: [], resourceServer: { audiences: ['https://api.example.com/a'] } });
    expect(reasonsOf(client, policyDocument({ allow: { audiences: ['https://api.example.com/*'] } }))).toEqual([]);
    expect(reasonsOf(client, policyDocument({ allow: { audiences: ['https://api.example.org/*'] } }))).toEqual([
      'PolicyViolation',
    ]);
  });

  describe('what a resource server answers for, where a resource has it as identifier', () => {
    const API = 'https://api.example.com/a';
    const byPolicy = policyDocument({ allow: { resources: [API], audiences: [] } });
    const serving = (audience: string, metadata = {}) =>
      clientDocument({ grantTypes: [], resourceServer: { audiences: [audience] } }, metadata);

    it.each([API, `${API}/`])('in its own namespace → needs no permission: %s', (audience) => {
      expect(reasonsOf(serving(audience), byPolicy, resourceDocument({ resource: API }))).toEqual([]);
    });

    it('in another namespace → needs one', () => {
      const foreign = serving(API, { namespace: 'other' });
      expect(reasonsOf(foreign, byPolicy, resourceDocument({ resource: API }))).toEqual(['PolicyViolation']);
    });

    it('of a resource that is refused and holds it → needs none', () => {
      const refused = resourceDocument({ resource: API, scopes: [{ name: 'openid' }] });
      expect(reasonsOf(serving(API), byPolicy, refused)).toEqual([]);
    });

    it('of a resource that may not have it → needs one', () => {
      const other = policyDocument({ allow: { resources: ['urn:example:*'], audiences: [] } });
      expect(reasonsOf(serving(API), other, resourceDocument({ resource: API }))).toEqual(['PolicyViolation']);
    });

    it('as an audience of its own tokens → needs one', () => {
      const client = clientDocument({ ...MACHINE, audiences: [API] });
      expect(reasonsOf(client, byPolicy, resourceDocument({ resource: API }))).toEqual(['PolicyViolation']);
    });
  });

  it('let a namespace without one have everything when the default is AllowAll, except borrowed ids with a dot', () => {
    const spec = {
      ...WEB,
      scopes: ['anything:at/all'],
      consent: 'Skip',
      redirectUris: ['http://127.0.0.1/cb', 'com.example.app:/cb'],
      allowedCorsOrigins: ['https://app.example.com'],
      clientId: 'portal',
    };
    const settings = { defaultPolicy: 'AllowAll' } as const;
    expect(admitOne([clientDocument(spec)], settings).policy).toBe('(allow-all)');
    const dotted = admitOne([clientDocument({ ...spec, clientId: 'other.app' })], settings);
    expect(dotted.faults.map(({ reason }) => reason)).toEqual(['ClientIdNotPermitted']);
  });
});

describe('what a policy does not permit', () => {
  const messageOf = (spec: Readonly<Record<string, unknown>>, ...policies: readonly unknown[]) =>
    admitOne([clientDocument(spec), ...policies]).faults.map(({ message }) => message);
  const scoped = { ...WEB, scopes: ['other/read'] };
  const loopback = { ...WEB, redirectUris: ['http://127.0.0.1/callback'] };

  it('by the baseline comes with its list and the policy that the namespace needs', () => {
    expect(messageOf(scoped)).toEqual([
      expect.stringMatching(/\(baseline\).*team\/\*.*namespace team .*allow\.scopes/),
    ]);
    expect(messageOf(loopback)).toEqual([
      expect.stringContaining('The namespace team needs a ClientPolicy with allow.loopbackRedirects: true.'),
    ]);
    expect(messageOf({ ...WEB, redirectUris: ['com.example.app:/cb'] })).toEqual([
      expect.stringContaining('permits none'),
    ]);
  });

  it('for it leaves the list out comes with the list that stands in', () => {
    expect(messageOf(scoped, policyDocument({ allow: {} }))).toEqual([
      expect.stringContaining('left out there, so it is team/*, openid'),
    ]);
    const scheme = { ...WEB, redirectUris: ['com.example.app:/cb'] };
    expect(messageOf(scheme, policyDocument({ allow: {} }))).toEqual([
      expect.stringContaining('left out there, so it permits none'),
    ]);
  });

  it('by a list of its own never comes with that list', () => {
    const [message] = messageOf(scoped, policyDocument({ allow: { scopes: ['tenant-b/*'] } }));
    expect(message).not.toContain('tenant-b');
    expect(message).not.toContain('left out');
    expect(messageOf(scoped, policyDocument({ allow: { scopes: [] } }))).toEqual([
      expect.stringContaining('permits none'),
    ]);
  });
});

describe('a label or annotation of a generated Secret', () => {
  const REPLICATE = 'replicator.v1.mittwald.de/replicate-to';
  const asking = (field: 'labels' | 'annotations', key: string, more: object = {}) =>
    clientDocument({ ...MACHINE, auth: { clientSecret: { secretTemplate: { [field]: { [key]: 'x' } }, ...more } } });
  const permitting = (...secretMetadata: readonly string[]) => policyDocument({ allow: { secretMetadata } });
  const reasonsOf = (...documents: readonly unknown[]) => admitOne(documents).faults.map(({ reason }) => reason);

  it.each(['labels', 'annotations'] as const)(
    'under a prefix, in %s → refused until a policy lists it, and the condition names field and remedy',
    (field) => {
      const { client, conditions } = admitOne([asking(field, REPLICATE)]);
      expect(client).toBeUndefined();
      expect(conditions[0]).toMatchObject({ type: 'Accepted', status: 'False', reason: 'PolicyViolation' });
      expect(conditions[0]?.message).toMatch(
        new RegExp(
          `^spec\\.auth\\.clientSecret\\.secretTemplate\\.${field}\\["${REPLICATE}"\\]: .*allow\\.secretMetadata`,
        ),
      );
      expect(conditions[0]?.message).toContain('The namespace team needs a ClientPolicy with allow.secretMetadata');
      expect(reasonsOf(asking(field, REPLICATE), permitting('replicator.v1.mittwald.de/*'))).toEqual([]);
      expect(reasonsOf(asking(field, REPLICATE), permitting('replicator.v1.mittwald.de/replicate-from'))).toEqual([
        'PolicyViolation',
      ]);
      expect(reasonsOf(asking(field, REPLICATE), permitting())).toEqual(['PolicyViolation']);
    },
  );

  it.each(['team', 'app.kubernetes.io/part-of'])('%s → permitted, also by a policy that lists none', (key) => {
    for (const field of ['labels', 'annotations'] as const) {
      expect(reasonsOf(asking(field, key))).toEqual([]);
      expect(reasonsOf(asking(field, key), permitting())).toEqual([]);
    }
  });

  it.each(['grantry.dev/client', 'kubernetes.io/x', 'meta.helm.sh/x', 'argocd.argoproj.io/x'])(
    '%s → refused by the protocol alone, also where a policy lists everything',
    (key) => {
      expect(reasonsOf(asking('labels', key))).toEqual(['InvalidSecretTemplate']);
      expect(reasonsOf(asking('labels', key), permitting('**'))).toEqual(['InvalidSecretTemplate']);
    },
  );

  it('is permitted where the default is AllowAll, and of no account for a Secret that exists', () => {
    expect(admitOne([asking('labels', REPLICATE)], { defaultPolicy: 'AllowAll' }).faults).toEqual([]);
    const existing = admitOne([asking('labels', REPLICATE, { source: 'Existing' })], { otherSecrets: 'withheld' });
    expect(existing.faults).toEqual([]);
  });

  it('by a glob with a variable → its own namespace alone', () => {
    const policy = permitting(`\${namespace}.example.com/*`);
    expect(reasonsOf(asking('labels', 'team.example.com/a'), policy)).toEqual([]);
    expect(reasonsOf(asking('labels', 'other.example.com/a'), policy)).toEqual(['PolicyViolation']);
  });
});
