import { describe, expect, it } from 'vitest';
import { ManifestFolder } from '../../src/manifests/manifest-folder.ts';
import { contentsOf, machineClient } from './a-folder.ts';

function clientNames(set: { readonly objects: readonly { readonly name: string }[] }) {
  return set.objects.map(({ name }) => name);
}

describe('a file that breaks', () => {
  it('keeps all its objects as they last were good, and says where it is broken', async () => {
    const folder = new ManifestFolder();
    await folder.update(
      contentsOf({ 'a.yaml': `${machineClient('one')}---\n${machineClient('two')}`, 'b.yaml': machineClient('b') }),
    );
    const set = await folder.update(
      contentsOf({ 'a.yaml': `${machineClient('new')}---\nspec: [`, 'b.yaml': machineClient('c') }),
    );
    expect(clientNames(set)).toEqual(['one', 'two', 'c']);
    expect(set.faults).toMatchObject([{ reason: 'InvalidYaml', place: { file: 'a.yaml', document: 2, line: 8 } }]);
    expect(set.staleFiles).toEqual(['a.yaml']);
  });

  it('keeps them when the file is YAML but no manifest, and names the field', async () => {
    const folder = new ManifestFolder();
    await folder.update(contentsOf({ 'a.yaml': machineClient('one') }));
    const set = await folder.update(contentsOf({ 'a.yaml': machineClient('one', '  scopes: 5\n') }));
    expect(set.objects[0]?.manifest).not.toHaveProperty('spec.scopes');
    expect(set.faults).toMatchObject([{ reason: 'InvalidManifest', place: { line: 7, field: 'spec.scopes' } }]);
  });

  it('keeps them through several broken states until it is good again', async () => {
    const folder = new ManifestFolder();
    await folder.update(contentsOf({ 'a.yaml': machineClient('one') }));
    await folder.update(contentsOf({ 'a.yaml': '[' }));
    expect(clientNames(await folder.update(contentsOf({ 'a.yaml': '{' })))).toEqual(['one']);
    const mended = await folder.update(contentsOf({ 'a.yaml': machineClient('two') }));
    expect([clientNames(mended), mended.faults, mended.staleFiles]).toEqual([['two'], [], []]);
  });

  it('keeps them while the file cannot be read, and drops them when it is gone', async () => {
    const folder = new ManifestFolder();
    await folder.update(contentsOf({ 'sub/a.yaml': machineClient('one') }));
    const place = { document: undefined, line: undefined, field: undefined };
    for (const file of ['sub/a.yaml', 'sub']) {
      const unreadable = { place: { ...place, file }, reason: 'Unreadable', message: '' };
      const set = await folder.update({ ...contentsOf({}), faults: [unreadable] });
      expect([clientNames(set), set.staleFiles]).toEqual([['one'], ['sub/a.yaml']]);
    }
    expect(clientNames(await folder.update(contentsOf({ 'sub/a.yaml': '' })))).toEqual([]);
    await folder.update(contentsOf({ 'sub/a.yaml': machineClient('one') }));
    expect(clientNames(await folder.update(contentsOf({})))).toEqual([]);
  });

  it('gives its sound documents when it never was good', async () => {
    const set = await new ManifestFolder().update(contentsOf({ 'a.yaml': `${machineClient('one')}---\n[` }));
    expect([clientNames(set), set.faults.length, set.staleFiles]).toEqual([['one'], 1, []]);
  });
});

describe('an unknown field', () => {
  it('is a warning here, as a server ignores it and kubectl would not', async () => {
    const set = await new ManifestFolder().update(contentsOf({ 'a.yaml': machineClient('one', '  scope: [a]\n') }));
    expect(set.faults).toEqual([]);
    expect(set.warnings).toMatchObject([{ place: { line: 7, field: 'spec.scope' } }]);
  });
});
