import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { ClientSet } from '../../../src/admission/clients/client-set.ts';
import type { SourceObject } from '../../../src/admission/kinds/manifest.ts';
import { admitPolicies } from '../../../src/admission/policies/admit-policies.ts';
import { admitAll, clientDocument, contextOf, MACHINE, policyDocument, sourceObject, summaryOf } from '../world.ts';

const PENDING = { status: 'Unknown', reason: 'Pending', message: '' } as const;

const time = (day: number) => `2026-01-${String(day).padStart(2, '0')}T00:00:00Z`;
const SHARED = policyDocument({ allow: { clientIds: ['shared', 'acme.app'] } });

async function reasonsOf(...documents: readonly unknown[]) {
  const { clients } = await admitAll(documents);
  return Object.fromEntries(clients.map(({ object, conditions }) => [object.name, conditions[0]?.reason]));
}

function claimant(name: string, day: number, more: object = {}, uid = `uid-${name}`) {
  return clientDocument({ ...MACHINE, clientId: 'shared', ...more }, { name, creationTimestamp: time(day), uid });
}

describe('two clients with one client id', () => {
  it('leave it to the older', async () => {
    expect(await reasonsOf(claimant('young', 2), claimant('old', 1), SHARED)).toEqual({
      young: 'ClientIdConflict',
      old: 'Accepted',
    });
  });

  it('of the same age leave it to the smaller uid', async () => {
    expect(await reasonsOf(claimant('b', 1), claimant('a', 1), SHARED)).toEqual({
      b: 'ClientIdConflict',
      a: 'Accepted',
    });
  });

  it('leave it to the one that a policy lists it for, however young, and the loser learns nothing of it', async () => {
    const explicit = claimant('explicit', 9, { clientId: 'acme.app' });
    const spec = { ...MACHINE, scopes: ['acme/read'], defaultScopes: [] };
    const derived = clientDocument(spec, { name: 'app', namespace: 'acme', creationTimestamp: time(1) });
    const { clients } = await admitAll([explicit, derived, SHARED]);
    expect(clients.map(({ conditions }) => conditions[0]?.reason)).toEqual(['Accepted', 'ClientIdConflict']);
    expect(JSON.stringify(clients[1]?.conditions)).not.toContain('team');
  });

  it('leave it to the older also while that is suspended or otherwise refused', async () => {
    expect(await reasonsOf(claimant('young', 2), claimant('old', 1, { suspended: true }), SHARED)).toEqual({
      young: 'ClientIdConflict',
      old: 'Suspended',
    });
    expect(
      await reasonsOf(claimant('young', 2), claimant('old', 1, { scopes: [], consent: 'Skip' }), SHARED),
    ).toMatchObject({
      young: 'ClientIdConflict',
    });
  });

  it('leave it to the younger when the older may not have it or cannot be read', async () => {
    const stranger = clientDocument(
      { ...MACHINE, clientId: 'shared', scopes: [], defaultScopes: [] },
      { name: 'stranger', namespace: 'elsewhere', creationTimestamp: time(1) },
    );
    expect(await reasonsOf(claimant('young', 2), stranger, SHARED)).toEqual({
      young: 'Accepted',
      stranger: 'ClientIdNotPermitted',
    });
    expect(await reasonsOf(claimant('young', 2), claimant('broken', 1, { scopes: 'x' }), SHARED)).toEqual({
      young: 'Accepted',
      broken: 'InvalidManifest',
    });
  });

  it('never leave two of them served, whatever the order they come in', async () => {
    const claimants = [1, 2, 2, 3, 3].map((day, index) => claimant(`c${index}`, day));
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray(claimants, { minLength: 1 }), async (documents) => {
        const { clients } = await admitAll([...documents, SHARED]);
        const served = clients.flatMap(({ client, object }) => (client === undefined ? [] : [object]));
        expect(served).toHaveLength(1);
        const oldest = clients
          .map(({ object }) => object)
          .sort((a, b) => a.createdAt - b.createdAt || (a.uid < b.uid ? -1 : 1));
        expect(served[0]).toBe(oldest[0]);
      }),
    );
  });
});

describe('a client that is served under an id', () => {
  /** To `team` the id of a client in another namespace is listed letter by letter, to `other` by globs only. */
  const listing = (namespace: string, clientIds: readonly string[]) => {
    const namespaceSelector = { matchLabels: { 'kubernetes.io/metadata.name': namespace } };
    return policyDocument({ namespaceSelector, allow: { clientIds, scopes: ['**'] } }, `policy-of-${namespace}`);
  };
  const policies = [
    listing('acme', []),
    listing('team', ['acme.app', 'shared*']),
    listing('other', ['**', '*.app', `\${namespace}.app`]),
  ];
  const ids = [undefined, undefined, 'acme.app', 'acme.app', 'other.app', 'shared', 'shared-too'];
  const claims = fc.uniqueArray(
    fc.record({
      namespace: fc.constantFrom('acme', 'team', 'other'),
      name: fc.constantFrom('app', 'second', 'third'),
      clientId: fc.constantFrom(...ids),
      uid: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    }),
    { selector: ({ namespace, name }) => `${namespace}/${name}`, minLength: 2, maxLength: 6 },
  );
  type Claim = { readonly namespace: string; readonly name: string; readonly clientId?: string | undefined };
  const documentOf = (
    { namespace, name, clientId, uid }: Claim & { readonly uid: string },
    day: number,
    index: number,
  ) =>
    clientDocument(
      { ...MACHINE, ...(clientId !== undefined && { clientId }) },
      { namespace, name, uid: `${uid}-${index}`, creationTimestamp: time(day) },
    );
  const isListed = ({ namespace, name, clientId }: Claim) =>
    namespace === 'team' && clientId === 'acme.app' && `${namespace}.${name}` !== clientId;
  /** The keys of the served clients by id. */
  const holdersIn = async (documents: readonly unknown[]) => {
    const { clients } = await admitAll([...documents, ...policies], { unknownFields: 'ignore' });
    return new Map(
      clients.flatMap(({ client, object }) =>
        client === undefined ? [] : [[client.clientId, `${object.namespace}/${object.name}`] as const],
      ),
    );
  };

  it('keeps it against every object created later, but for an id that an administrator lists letter by letter for the other', async () => {
    let taken = 0;
    await fc.assert(
      fc.asyncProperty(claims, async (given) => {
        const documents: unknown[] = [];
        let before: ReadonlyMap<string, string> = new Map();
        for (const [index, claim] of given.entries()) {
          documents.push(documentOf(claim, index + 1, index));
          const after = await holdersIn(documents);
          for (const [id, holder] of before) {
            if (after.get(id) === holder) continue;
            expect([id, after.get(id)]).toEqual(['acme.app', `${claim.namespace}/${claim.name}`]);
            expect([holder, isListed(claim)]).toEqual(['acme/app', true]);
            taken++;
          }
          before = after;
        }
      }),
      { numRuns: 300 },
    );
    expect(taken).toBeGreaterThan(0);
  });

  it('of a derived and a listed claim → the listed one has the id, whatever the creationTimestamps', async () => {
    const days = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 6, maxLength: 6 });
    const [derived, listed] = [
      { namespace: 'acme', name: 'app', uid: 'x' },
      { namespace: 'team', name: 'fourth', clientId: 'acme.app', uid: 'y' },
    ];
    await fc.assert(
      fc.asyncProperty(claims, days, fc.boolean(), async (given, ages, isFirst) => {
        const others = given.filter((claim) => claim.namespace !== 'acme' && !isListed(claim));
        const both = isFirst ? [derived, listed] : [listed, derived];
        const documents = [...both, ...others].map((claim, index) => documentOf(claim, ages[index % 6] ?? 1, index));
        expect((await holdersIn(documents)).get('acme.app')).toBe('team/fourth');
      }),
    );
  });
});

describe('a namespace with more clients than it may have', () => {
  const limit = policyDocument({ limits: { maxClientsPerNamespace: 2 } });
  const plain = (name: string, day: number, more: object = {}) =>
    clientDocument({ ...MACHINE, ...more }, { name, creationTimestamp: time(day), uid: `uid-${name}` });

  it('keeps its oldest', async () => {
    expect(await reasonsOf(plain('c', 3), plain('a', 1), plain('b', 2), limit)).toEqual({
      a: 'Accepted',
      b: 'Accepted',
      c: 'ClientLimitExceeded',
    });
  });

  it('does not count those that are refused, and counts those that wait for a Secret', async () => {
    const refused = plain('a', 1, { scopes: ['other/read'], defaultScopes: [] });
    const waiting = plain('b', 2, { auth: { clientSecret: { source: 'Existing' } } });
    expect(await reasonsOf(refused, waiting, plain('c', 3), plain('d', 4), limit)).toEqual({
      a: 'PolicyViolation',
      b: 'Accepted',
      c: 'Accepted',
      d: 'ClientLimitExceeded',
    });
  });

  it('does not count against another namespace', async () => {
    const elsewhere = clientDocument(
      { ...MACHINE, scopes: [], defaultScopes: [] },
      { name: 'x', namespace: 'elsewhere', creationTimestamp: time(1) },
    );
    expect(await reasonsOf(elsewhere, plain('a', 2), plain('b', 3), limit)).toMatchObject({ b: 'Accepted' });
  });

  it('may have as many as the widest policy that permits them says', async () => {
    const wider = policyDocument({ limits: { maxClientsPerNamespace: 3 } }, 'z-wider');
    expect(await reasonsOf(plain('a', 1), plain('b', 2), plain('c', 3), limit, wider)).toMatchObject({ c: 'Accepted' });
  });

  it('has 200 places without any policy', async () => {
    const crowd = Array.from({ length: 201 }, (_, index) =>
      clientDocument(MACHINE, {
        name: `c${index}`,
        uid: `uid-${String(index).padStart(3, '0')}`,
        creationTimestamp: time(1),
      }),
    );
    const { clients } = await admitAll(crowd);
    expect(clients.filter(({ client }) => client === undefined).map(({ object }) => object.name)).toEqual(['c200']);
  });
});

describe('the set of clients', () => {
  it('leaves out another class, also when the manifest cannot be read, and what is being deleted', async () => {
    const { clients } = await admitAll([
      clientDocument({ ...MACHINE, className: 'staging' }, { name: 'a' }),
      clientDocument({ ...MACHINE, className: 'staging', scopes: 1 }, { name: 'b' }),
      clientDocument(MACHINE, { name: 'c', deletionTimestamp: time(1) }),
      clientDocument(MACHINE, { name: 'd' }),
    ]);
    expect(clients.map(({ object }) => object.name)).toEqual(['d']);
  });

  it('gives one uid to one object only', async () => {
    const twins = ['first', 'second'].map((name) => clientDocument(MACHINE, { name, uid: 'same' }));
    const { clients } = await admitAll(twins);
    expect(clients.map(({ client }) => client?.clientId)).toEqual(['team.first', undefined]);
    const misread = clientDocument({ scopes: 1 }, { name: 'broken', uid: 'same', creationTimestamp: time(1) });
    expect(await reasonsOf(misread, ...twins)).toEqual({
      broken: 'InvalidManifest',
      first: 'Accepted',
      second: 'InvalidManifest',
    });
  });

  it('reserves the namespace that grantry runs in, unless configured otherwise', async () => {
    const spec = { ...MACHINE, scopes: ['default/read'], defaultScopes: [] };
    const document = clientDocument(spec, { namespace: 'default' });
    const { clients: reserved } = await admitAll([document], { releaseNamespaceReserved: true });
    expect(reserved[0]?.conditions[0]?.reason).toBe('NamespaceReserved');
    expect(reserved[0]?.wantsSecret).toBe(false);
    const { clients: free } = await admitAll([document]);
    expect(free[0]?.client?.clientId).toBe('default.app');
  });
});

describe('two clients whose secret would be generated into one Secret', () => {
  const shared = { auth: { clientSecret: { secretName: 'shared' } } };
  const named = (name: string, day: number, more: object = shared, namespace = 'team') =>
    clientDocument({ ...MACHINE, ...more }, { name, namespace, creationTimestamp: time(day), uid: `uid-${name}` });

  async function credentialsOf(...documents: readonly unknown[]) {
    const { clients } = await admitAll(documents, { verifiersOf: () => [] });
    return Object.fromEntries(
      clients.map(({ object, conditions, wantsSecret }) => [object.name, [conditions[2]?.reason, wantsSecret]]),
    );
  }

  it('leave it to the older, and the younger gets none', async () => {
    expect(await credentialsOf(named('young', 2), named('old', 1))).toEqual({
      young: ['SecretNotOwned', false],
      old: ['Pending', true],
    });
  });

  it('leave it to the older also when the younger has that name by default', async () => {
    const byName = named('old', 1, { auth: { clientSecret: { secretName: 'young-oauth' } } });
    expect(await credentialsOf(named('young', 2, {}), byName)).toEqual({
      young: ['SecretNotOwned', false],
      old: ['Pending', true],
    });
  });

  it('leave it to the older also while that is suspended', async () => {
    expect(await credentialsOf(named('young', 2), named('old', 1, { ...shared, suspended: true }))).toMatchObject({
      young: ['SecretNotOwned', false],
    });
  });

  it('have one each in namespaces of their own', async () => {
    const elsewhere = named('b', 2, { ...shared, scopes: [], defaultScopes: [] }, 'elsewhere');
    expect(await credentialsOf(named('a', 1), elsewhere)).toEqual({ a: ['Pending', true], b: ['Pending', true] });
  });
});

describe('the class of an install', () => {
  it('is the default one for a manifest whose own cannot be read: one install must report it', async () => {
    const odd = clientDocument({ ...MACHINE, className: 5 });
    const policy = policyDocument({ className: 5 });
    const { clients, policies } = await admitAll([odd, policy]);
    expect([...clients, ...policies].map(({ conditions }) => conditions[0]?.reason)).toEqual([
      'InvalidManifest',
      'InvalidManifest',
    ]);
  });
});

describe('a client of a set that does not know everything yet', () => {
  let policies: readonly SourceObject[];
  let labels: Map<string, Readonly<Record<string, string>>>;
  let clients: ClientSet<SourceObject>;

  beforeEach(() => {
    [policies, labels] = [[], new Map()];
    const { references, policies: _, ...context } = contextOf([]);
    const { namespaceLabels: __, ...unknown } = references;
    clients = new ClientSet({
      ...context,
      unknownFields: 'ignore',
      policies: () =>
        admitPolicies({ className: 'default', unknownFields: 'ignore', policies }).map(({ policy }) => policy),
      namespaceLabels: (namespace) => labels.get(namespace),
      factsOf: () => ({ ...unknown, secret: () => 'withheld', verifiersOf: () => [], programmed: PENDING }),
    });
  });

  const permits = (namespaceSelector: object, scopes = ['gold']) => {
    const allow = { scopes, grantTypes: ['client_credentials'], clientIds: ['shop'] };
    policies = [sourceObject(policyDocument({ namespaceSelector, allow }))];
    return namesOf(clients.revalidate());
  };
  const observed = (namespace: string, others: Readonly<Record<string, string>> = {}) => {
    labels.set(namespace, { 'kubernetes.io/metadata.name': namespace, ...others });
    return namesOf(clients.revalidate(namespace));
  };
  const namesOf = (objects: readonly SourceObject[]) => objects.map(({ namespace }) => namespace);
  const add = (namespace: string) => {
    const spec = { clientId: 'shop', grantTypes: ['client_credentials'], scopes: ['gold'] };
    clients.put(sourceObject(clientDocument(spec, { name: 'worker', namespace, uid: namespace })));
    clients.validate(`${namespace}/worker`);
  };
  const validateAll = () => {
    for (const key of clients.keys()) clients.validate(key);
    clients.recompute();
  };
  const verdict = (namespace: string) => {
    clients.recompute();
    const { conditions, wantsSecret } = clients.verdict(`${namespace}/worker`);
    return [summaryOf(conditions)[0], wantsSecret];
  };

  it.each([
    ['DoesNotExist', {}],
    ['NotIn', { values: ['restricted'] }],
  ])('of a namespace that is not observed is permitted nothing by %s', (operator, values) => {
    permits({ matchExpressions: [{ key: 'tier', operator, ...values }] });
    add('team');
    expect(verdict('team')).toEqual(['Accepted=Unknown/Pending', false]);
    expect(observed('team', { tier: 'restricted' })).toEqual(['team']);
    expect(verdict('team')).toEqual(['Accepted=False/ClientIdNotPermitted', false]);
    expect(observed('team')).toEqual(['team']);
    expect(verdict('team')).toEqual(['Accepted=True/Accepted', true]);
  });

  it('of a namespace that is not observed keeps no id from others', () => {
    permits({});
    observed('younger');
    add('older');
    add('younger');
    expect(verdict('younger')).toEqual(['Accepted=True/Accepted', true]);
    expect(observed('older')).toEqual(['older']);
    clients.validate('older/worker');
    expect([verdict('older')[0], verdict('younger')[0]]).toEqual([
      'Accepted=True/Accepted',
      'Accepted=False/ClientIdConflict',
    ]);
  });

  it('given a policy of another namespace, or none that changed → is not validated again', () => {
    for (const namespace of ['older', 'team', 'younger']) add(namespace);
    observed('team');
    observed('younger');
    expect(permits({ matchLabels: { 'kubernetes.io/metadata.name': 'team' } })).toEqual(['team']);
    expect(permits({ matchLabels: { 'kubernetes.io/metadata.name': 'team' } })).toEqual([]);
    expect(permits({ matchLabels: { 'kubernetes.io/metadata.name': 'team' } }, ['**'])).toEqual(['team']);
    expect(permits({ matchLabels: { 'kubernetes.io/metadata.name': 'younger' } })).toEqual(['team', 'younger']);
    policies = [];
    expect(namesOf(clients.revalidate())).toEqual(['younger']);
  });

  it('that changed its id → frees the former one when it is validated, and no earlier', () => {
    permits({});
    observed('older');
    observed('younger');
    add('older');
    add('younger');
    validateAll();
    const renamed = { grantTypes: ['client_credentials'], scopes: ['gold'] };
    clients.put(sourceObject(clientDocument(renamed, { name: 'worker', namespace: 'older', uid: 'older' })));
    expect(namesOf(clients.recompute())).toEqual([]);
    expect(clients.faultsAmongAll('younger/worker').map(({ reason }) => reason)).toEqual(['ClientIdConflict']);
    clients.validate('older/worker');
    expect(namesOf(clients.recompute())).toEqual(['younger']);
    expect(clients.faultsAmongAll('younger/worker')).toEqual([]);
    clients.delete('older/worker');
    expect(clients.get('older/worker')).toBeUndefined();
    expect(() => clients.validate('older/worker')).toThrow();
    expect(clients.faultsAmongAll('older/worker')).toEqual([]);
    expect(() => clients.verdict('older/worker')).toThrow();
  });

  it('given facts beside those that the set looks up → a verdict by them, with their faults', () => {
    permits({});
    observed('team');
    add('team');
    expect(clients.verdict('team/worker').client).toBeUndefined();
    expect(clients.verdict('team/worker', { verifiersOf: () => [new Uint8Array(32)] }).client?.clientId).toBe('shop');
    const fault = { path: ['spec'], reason: 'SecretNotReadable', message: 'x' } as const;
    const refused = clients.verdict('team/worker', { verifiersOf: () => [new Uint8Array(32)], faults: [fault] });
    expect([refused.client, refused.faults]).toEqual([undefined, [fault]]);
  });
});
