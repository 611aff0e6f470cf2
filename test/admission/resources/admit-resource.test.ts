import { describe, expect, it } from 'vitest';
import { policyDocument, resourceDocument, resourcesOf, summaryOf, verdictsOf, type WorldSettings } from '../world.ts';

const ANY = policyDocument({ allow: { resources: ['**'] } });

function faultsOf(spec: object, settings: WorldSettings = {}, documents: readonly unknown[] = [ANY]) {
  const [verdict] = verdictsOf(resourcesOf([...documents, resourceDocument({ ...spec })], settings));
  return verdict?.faults.map(({ reason, path }) => `${reason} ${path.join('.')}`);
}

describe('the identifier of a resource', () => {
  it.each([
    'https://notes.example.com',
    'https://notes.example.com/',
    'https://notes.example.com:8443/api/v1',
    'https://xn--nten-6qa.example.com/api',
    'http://localhost:3000/api',
    'http://127.0.0.1/api',
    'urn:example:notes',
    'urn:grantry:ns:team:notes',
  ])('%s → accepted', (resource) => {
    expect(faultsOf({ resource })).toEqual([]);
  });

  it.each([
    ...['notes', 'https://', 'http://notes.example.com', 'ftp://notes.example.com/', 'https://notes.example.com/#api'],
    ...['https://Notes.example.com/', 'HTTPS://notes.example.com/', 'https://notes.example.com:443/api'],
    ...['https://notes.example.com/a/../api', 'https://notes.example.com/%61pi', 'https://notes.example.com/api?a=b'],
    ...['https://user@notes.example.com/', 'https://notes.example.com./api', 'https://nоtes.example.com/'],
    ...['https://notes.example.com\\api', 'https://0x7f.1/', 'https://notes.example.com/\u200B'],
    ...['urn:Example:notes', 'URN:example:notes', 'urn:x', 'urn:example:a%20b', 'urn:example:a?b'],
    ...['urn:grantry:ns:other:notes', 'urn:grantry:ns:team', 'urn:grantry:ns:teamster:notes'],
    ...['https://id.example', 'https://id.example/'],
  ])('%s → InvalidResource', (resource) => {
    expect(faultsOf({ resource }, { issuer: 'https://id.example' })).toEqual(['InvalidResource spec.resource']);
  });

  it('given none → derived, which the baseline permits and other identifiers not', () => {
    const [verdict] = verdictsOf(resourcesOf([resourceDocument({})]));
    expect(verdict?.resource?.identifier).toBe('urn:grantry:ns:team:notes');
    expect(summaryOf(verdict?.conditions ?? [])).toEqual([
      ...['Accepted=True/Accepted', 'Programmed=True/Programmed', 'Ready=True/Ready'],
    ]);
    expect(faultsOf({ resource: 'urn:example:notes' }, {}, [])).toEqual(['PolicyViolation spec.resource']);
  });
});

describe('the scopes of a resource', () => {
  it.each(['openid', 'profile', 'email', 'address', 'phone', 'groups', 'offline_access', 'team/re ad', 'team/"', ''])(
    'given %j → InvalidScope',
    (name) => {
      expect(faultsOf({ scopes: [{ name: 'team/read' }, { name }] })).toEqual(['InvalidScope spec.scopes.1.name']);
    },
  );

  it('given one that allow.scopes does not permit → PolicyViolation, and no token for it by another field', () => {
    expect(faultsOf({ scopes: [{ name: 'other/read' }] })).toEqual(['PolicyViolation spec.scopes.0.name']);
    const wider = policyDocument({ allow: { scopes: ['other/*'] } });
    expect(faultsOf({ scopes: [{ name: 'other/read' }] }, {}, [wider])).toEqual([]);
  });

  it('given two policies that each permit a half → refused, by the first one', () => {
    const halves = [
      policyDocument({ allow: { resources: ['urn:example:notes'], scopes: [] } }, 'a'),
      policyDocument({ allow: { resources: [], scopes: ['team/*'] } }, 'b'),
    ];
    const spec = { resource: 'urn:example:notes', scopes: [{ name: 'team/read' }] };
    expect(faultsOf(spec, {}, halves)).toEqual(['PolicyViolation spec.scopes.0.name']);
  });
});

it('given an unreadable policy of the namespace → nothing is permitted', () => {
  expect(faultsOf({}, {}, [policyDocument({ allow: { resources: 7 } })])).toEqual(['PolicyViolation ']);
});

it('given an object of another class, or one that is being deleted → left out', () => {
  const deleted = { deletionTimestamp: '2026-01-01T00:00:00Z' };
  const documents = [resourceDocument({ className: 'staging' }), resourceDocument({}, { name: 'gone', ...deleted })];
  expect(verdictsOf(resourcesOf(documents))).toEqual([]);
});

describe('several resources', () => {
  const at = (day: number) => ({ creationTimestamp: `2026-01-0${day}T00:00:00Z` });
  const everywhere = (allow: object) => ({ ...policyDocument({ namespaceSelector: {}, allow }, 'everywhere') });
  const resource = 'https://notes.example.com/api';

  function reasonsOf(documents: readonly unknown[]) {
    const all = verdictsOf(resourcesOf(documents));
    return Object.fromEntries(all.map(({ object, conditions }) => [object.namespace, conditions.at(-1)?.reason]));
  }

  it('given one identifier twice, the slash at the end aside → the oldest has it, and the message names no holder', () => {
    const documents = [
      everywhere({ resources: ['https://**'] }),
      resourceDocument({ resource: `${resource}/` }, { namespace: 'late', uid: 'a', ...at(2) }),
      resourceDocument({ resource }, { namespace: 'early', uid: 'b', ...at(1) }),
    ];
    expect(reasonsOf(documents)).toEqual({ late: 'ResourceConflict', early: 'Ready' });
    const [late] = verdictsOf(resourcesOf(documents));
    expect(JSON.stringify(late?.conditions)).not.toContain('early');
  });

  it('given the same age → the smaller uid has it', () => {
    const documents = [
      everywhere({ resources: ['https://**'] }),
      resourceDocument({ resource }, { namespace: 'two', uid: 'b', ...at(1) }),
      resourceDocument({ resource }, { namespace: 'one', uid: 'a', ...at(1) }),
    ];
    expect(reasonsOf(documents)).toEqual({ two: 'ResourceConflict', one: 'Ready' });
  });

  it('given one that a policy lists letter by letter → it wins over an older one', () => {
    const listed = policyDocument({ allow: { resources: [resource] } });
    const globbed = policyDocument(
      { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'early' } }, allow: { resources: ['**'] } },
      'early',
    );
    const documents = [
      ...[listed, globbed],
      resourceDocument({ resource }, { namespace: 'early', uid: 'a', ...at(1) }),
      resourceDocument({ resource }, { namespace: 'team', uid: 'b', ...at(2) }),
    ];
    expect(reasonsOf(documents)).toEqual({ early: 'ResourceConflict', team: 'Ready' });
  });

  it('given a holder with a wrong scope → it keeps the identifier; one that may not have it does not', () => {
    const other = resourceDocument({ resource }, { namespace: 'late', uid: 'b', ...at(2) });
    const holder = (spec: object) =>
      resourceDocument({ resource, ...spec }, { namespace: 'early', uid: 'a', ...at(1) });
    const policy = everywhere({ resources: ['https://**'] });
    expect(reasonsOf([policy, holder({ scopes: [{ name: 'openid' }] }), other])).toEqual({
      early: 'InvalidScope',
      late: 'ResourceConflict',
    });
    const [lateOnly] = [
      policyDocument(
        { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'late' } }, allow: { resources: ['**'] } },
        'late',
      ),
    ];
    expect(reasonsOf([lateOnly, holder({}), other])).toEqual({ early: 'PolicyViolation', late: 'Ready' });
  });

  it('given more than the limit → the youngest are refused; refused ones take no place', () => {
    const documents = [
      policyDocument({ limits: { maxResourcesPerNamespace: 2 } }),
      ...[1, 2, 3, 4].map((day) =>
        resourceDocument(day === 1 ? { scopes: [{ name: 'openid' }] } : {}, { name: `r${day}`, ...at(day) }),
      ),
    ];
    const reasons = verdictsOf(resourcesOf(documents)).map(({ conditions }) => conditions.at(-1)?.reason);
    expect(reasons).toEqual(['InvalidScope', 'Ready', 'Ready', 'ResourceLimitExceeded']);
  });

  it('given a policy without a limit, or none → fifty have their places', () => {
    const many = Array.from({ length: 51 }, (_, index) => resourceDocument({}, { name: `r${index}` }));
    for (const documents of [many, [policyDocument({}), ...many]]) {
      const reasons = verdictsOf(resourcesOf(documents)).map(({ conditions }) => conditions.at(-1)?.reason);
      const counted = ['Ready', 'ResourceLimitExceeded'].map((reason) => reasons.filter((it) => it === reason).length);
      expect(counted).toEqual([50, 1]);
    }
  });

  it('given a holder that is deleted → the next one is accepted, and named as changed', () => {
    const resources = resourcesOf([
      everywhere({ resources: ['https://**'] }),
      resourceDocument({ resource }, { namespace: 'early', ...at(1) }),
      resourceDocument({ resource }, { namespace: 'late', ...at(2) }),
    ]);
    expect([...resources.accepted.keys()]).toEqual(['early/notes']);
    resources.delete('early/notes');
    expect(resources.recompute()).toEqual({ verdicts: ['late/notes'], granting: ['early/notes', 'late/notes'] });
    expect([...resources.accepted.keys()]).toEqual(['late/notes']);
    expect(resources.recompute()).toEqual({ verdicts: [], granting: [] });
  });

  describe('of which one is refused', () => {
    const holder = (spec: object, metadata: object = {}) =>
      resourceDocument({ resource, ...spec }, { namespace: 'early', ...at(1), ...metadata });
    const policy = everywhere({ resources: ['https://**'] });
    const withheldOf = (...documents: readonly unknown[]) => [...resourcesOf(documents).withheld.keys()];

    it.each([
      ['a scope of the issuer', { scopes: [{ name: 'openid' }] }],
      ['a scope that no policy permits', { scopes: [{ name: 'other/read' }] }],
      ['a lifetime that is too short', { tokens: { maxLifetime: '10s' } }],
      ['a language that is none', { displayNames: { '!': 'Notes' } }],
    ])('for %s → withheld, with its owner, and the next one does not get the identifier', (_, spec) => {
      const other = resourceDocument({ resource }, { namespace: 'late', uid: 'b', ...at(2) });
      const resources = resourcesOf([policy, holder(spec), other]);
      expect([[...resources.accepted.keys()], [...resources.withheld.keys()]]).toEqual([[], ['early/notes']]);
      expect(resources.ownerOf(resource)).toBe('early');
    });

    it('over the limit → withheld', () => {
      const limited = { ...policyDocument({ allow: { resources: ['**'] }, limits: { maxResourcesPerNamespace: 1 } }) };
      const late = resourceDocument({ resource }, { name: 'late', ...at(2) });
      expect(withheldOf(limited, resourceDocument({}, at(1)), late)).toEqual(['team/late']);
    });

    it.each([
      ['no right to its identifier', [policyDocument({ namespaceSelector: {} }, 'other'), holder({})]],
      ['a manifest that cannot be read', [policy, holder({ discovery: 7 })]],
      [
        'an identifier that another one has',
        [policy, holder({ scopes: [{ name: 'openid' }] }, { namespace: 'late', uid: 'b', ...at(2) }), holder({})],
      ],
    ])('for %s → not withheld', (_, documents) => {
      expect(withheldOf(...documents)).toEqual([]);
    });

    it('and then mended, and then deleted → withheld until then, and each change is named', () => {
      const broken = [policy, holder({ scopes: [{ name: 'openid' }] })];
      const [refused] = verdictsOf(resourcesOf(broken));
      const [sound] = verdictsOf(resourcesOf([policy, holder({})]));
      if (refused === undefined || sound === undefined) throw new Error('there is none');
      const resources = resourcesOf([policy]);
      const state = () => [resources.accepted.size, resources.withheld.size, resources.ownerOf(resource)];
      const GRANTING = ['early/notes'];
      resources.put(sound.object);
      expect(resources.recompute().granting).toEqual(GRANTING);
      expect(state()).toEqual([1, 0, 'early']);
      resources.put(refused.object);
      expect(resources.recompute().granting).toEqual(GRANTING);
      expect(state()).toEqual([0, 1, 'early']);
      resources.put(sound.object);
      expect(resources.recompute().granting).toEqual(GRANTING);
      expect(state()).toEqual([1, 0, 'early']);
      resources.put(refused.object);
      resources.recompute();
      resources.delete('early/notes');
      expect(resources.recompute().granting).toEqual(GRANTING);
      expect(state()).toEqual([0, 0, undefined]);
    });
  });

  it('given a change of one among many → it alone is named', () => {
    const resources = resourcesOf(['one', 'two', 'three'].map((name) => resourceDocument({}, { name })));
    const [changed] = verdictsOf(resources);
    if (changed === undefined) throw new Error('there is none');
    resources.put({ ...changed.object });
    expect(resources.recompute().verdicts).toEqual(['team/one']);
  });
});
