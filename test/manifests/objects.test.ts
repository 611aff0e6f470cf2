import { describe, expect, it } from 'vitest';
import { machineClient, manifestsOf } from './a-folder.ts';

const UUID_V5 = /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

async function names(text: string) {
  const { objects } = await manifestsOf({ 'a.yaml': text });
  return objects.map(({ kind, namespace, name }) => [kind, namespace, name].join('/'));
}

async function faultsOf(text: string) {
  const { faults } = await manifestsOf({ 'a.yaml': text });
  return faults.map(({ reason, place }) => [reason, place.line, place.field]);
}

describe('an object of a folder', () => {
  it('lives in the namespace default when it names none, unless its kind has no namespace', async () => {
    expect(await names(machineClient('app'))).toEqual(['OAuthClient/default/app']);
    expect(await names('apiVersion: v1\nkind: Namespace\nmetadata: {name: team, namespace: x}')).toEqual([
      'Namespace//team',
    ]);
  });

  it('has a uid that depends on its kind, namespace and name alone', async () => {
    const [first] = (await manifestsOf({ 'a.yaml': machineClient('app') })).objects;
    const [moved, other] = (
      await manifestsOf({ 'z.yaml': `# moved\n${machineClient('app')}---\n${machineClient('b')}` })
    ).objects;
    expect(first?.uid).toMatch(UUID_V5);
    expect(moved?.uid).toBe(first?.uid);
    expect(other?.uid).not.toBe(first?.uid);
  });

  it('keeps a uid and a creationTimestamp that it gives itself', async () => {
    const text = machineClient('app').replace(
      '  name: app',
      '  name: app\n  uid: u-1\n  creationTimestamp: "2026-01-01T00:00:00Z"',
    );
    expect((await manifestsOf({ 'a.yaml': text })).objects).toMatchObject([
      { uid: 'u-1', createdAt: Date.UTC(2026, 0, 1) },
    ]);
  });

  it('is as old as its creationTimestamp says, else younger than any that has one, in path order', async () => {
    const dated = machineClient('dated').replace(
      '  name: dated',
      '  name: dated\n  creationTimestamp: 2026-01-01T00:00:00Z',
    );
    const { objects } = await manifestsOf({
      'a.yaml': machineClient('a'),
      'b.yaml': machineClient('b'),
      'c.yaml': dated,
    });
    const byAge = objects.toSorted((one, other) => one.createdAt - other.createdAt);
    expect(byAge.map(({ name }) => name)).toEqual(['dated', 'a', 'b']);
  });
});

describe('a List', () => {
  it('is unpacked as kubectl does, a typed one and one within another too', async () => {
    const inner = 'apiVersion: v1\n    kind: SecretList\n    items:\n      - metadata: {name: s}';
    expect(await names(`apiVersion: v1\nkind: List\nitems:\n  - ${inner}\n`)).toEqual(['Secret/default/s']);
  });

  it('shows the place of an item in it', async () => {
    const text =
      'apiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: Secret\n    metadata: {name: A_B}\n';
    expect(await faultsOf(text)).toEqual([['InvalidManifest', 6, 'items[0].metadata.name']]);
  });

  it('is not followed for ever', async () => {
    const deep = `${'{apiVersion: v1, kind: List, items: ['.repeat(30)}${']}'.repeat(30)}`;
    expect(await faultsOf(deep)).toMatchObject([['InvalidManifest', 1, expect.anything()]]);
  });
});

describe('what is no object of ours', () => {
  it('is named once and passed over', async () => {
    const deployment = 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n';
    const { ignoredKinds, faults, objects } = await manifestsOf({
      'a.yaml': `${deployment}---\n${deployment}`,
      'b.yaml': deployment,
    });
    expect({ ignoredKinds, faults, objects }).toEqual({
      ignoredKinds: ['apps/v1 Deployment'],
      faults: [],
      objects: [],
    });
  });

  it('is a fault when it is of our group', async () => {
    expect(await faultsOf('apiVersion: grantry.dev/v1alpha1\nkind: OauthClient\nmetadata: {name: a}')).toEqual([
      ['InvalidManifest', 2, 'kind'],
    ]);
    expect(await faultsOf('apiVersion: grantry.dev/v9\nkind: OAuthClient\nmetadata: {name: a}')).toEqual([
      ['InvalidManifest', 1, 'apiVersion'],
    ]);
  });

  it('is a fault with the remedy: the nearest kind, or the version there is', async () => {
    const messageOf = async (text: string) => (await manifestsOf({ 'a.yaml': text })).faults[0]?.message;
    expect(await messageOf('apiVersion: grantry.dev/v1alpha1\nkind: OauthClients')).toContain('OAuthClient?');
    expect(await messageOf('apiVersion: grantry.dev/v1\nkind: SigningKeys')).toContain('SigningKey?');
    expect(await messageOf('apiVersion: grantry.dev/v1\nkind: OAuthClient')).toContain('grantry.dev/v1alpha1');
  });

  it.each([
    ['a list', '- a'],
    ['a word', 'hello'],
    ['a number', '5'],
    ['without a kind', 'apiVersion: v1'],
    ['without an apiVersion', 'kind: Secret'],
    ['without metadata', 'apiVersion: v1\nkind: Secret'],
    ['without a name', 'apiVersion: v1\nkind: Secret\nmetadata: {}'],
    ['with a number as name', 'apiVersion: v1\nkind: Secret\nmetadata: {name: 5}'],
    ['with a path as name', 'apiVersion: v1\nkind: Secret\nmetadata: {name: ../../etc/passwd}'],
    ['with a path as namespace', 'apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: ../x}'],
    ['with an object as uid', 'apiVersion: v1\nkind: Secret\nmetadata: {name: a, uid: {}}'],
    ['with a time that is none', 'apiVersion: v1\nkind: Secret\nmetadata: {name: a, creationTimestamp: soon}'],
  ])('is a fault %s', async (_, text) => {
    expect(await faultsOf(text)).toHaveLength(1);
    expect(await names(text)).toEqual([]);
  });
});

describe('the same kind, namespace and name twice', () => {
  it('is a fault that names both places, and the first stays', async () => {
    const { objects, faults } = await manifestsOf({
      'a.yaml': machineClient('app'),
      'b.yaml': `---\n${machineClient('app')}`,
    });
    expect(objects.map(({ place }) => place.file)).toEqual(['a.yaml']);
    expect(faults).toMatchObject([{ reason: 'DuplicateObject', place: { file: 'b.yaml', line: 2 } }]);
    expect(faults[0]?.message).toContain('a.yaml:1');
  });

  it('is distinguished from the same name in another namespace or kind', async () => {
    const elsewhere = machineClient('app').replace('  name: app', '  name: app\n  namespace: team');
    const secret = 'apiVersion: v1\nkind: Secret\nmetadata: {name: app}';
    const { objects, faults } = await manifestsOf({
      'a.yaml': [machineClient('app'), elsewhere, secret].join('---\n'),
    });
    expect([objects.length, faults]).toEqual([3, []]);
  });

  it('holds for a copied uid too: grants are keyed by it', async () => {
    const copy = (name: string) => machineClient(name).replace(`  name: ${name}`, `  name: ${name}\n  uid: u-1`);
    const { objects, faults } = await manifestsOf({ 'a.yaml': `${copy('one')}---\n${copy('two')}` });
    expect(objects.map(({ name }) => name)).toEqual(['one']);
    expect(faults).toMatchObject([{ reason: 'DuplicateObject' }]);
  });

  it('never takes an object away that has its uid from its own name, whichever comes first', async () => {
    const inTeam = (team: string, name: string, more = '') =>
      machineClient(name).replace(`  name: ${name}`, `  name: ${name}\n  namespace: ${team}${more}`);
    const victim = inTeam('team-b', 'victim');
    const [{ uid } = { uid: '' }] = (await manifestsOf({ 'b.yaml': victim })).objects;
    const thief = inTeam('team-a', 'thief', `\n  uid: ${uid}`);
    for (const thiefFile of ['a.yaml', 'c.yaml']) {
      const { objects, faults } = await manifestsOf({ [thiefFile]: thief, 'b.yaml': victim });
      expect(objects.map(({ name }) => name)).toEqual(['victim']);
      expect(faults).toMatchObject([
        { reason: 'DuplicateObject', place: { file: thiefFile, field: 'metadata.uid', line: 6 } },
      ]);
    }
  });

  it('lets an object write the uid that it would have anyway', async () => {
    const [{ uid } = { uid: '' }] = (await manifestsOf({ 'a.yaml': machineClient('app') })).objects;
    const text = machineClient('app').replace('  name: app', `  name: app\n  uid: ${uid}`);
    expect(await manifestsOf({ 'a.yaml': text })).toMatchObject({ objects: [{ uid }], faults: [] });
  });
});
