import { mkdir, symlink, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { readFolder } from '../../src/manifests/folder.ts';
import { folderOf, removeFolder } from './a-folder.ts';

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await removeFolder(folder);
});

async function made(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await folderOf(files);
  folders.push(folder);
  return folder;
}

async function read(folder: string) {
  const { files, faults } = await readFolder(folder);
  return { files: [...files.keys()].map((file) => file.slice(folder.length + 1)), faults };
}

describe('a folder of manifests', () => {
  it('is read with all folders in it: .yaml, .yml and .json, nothing else, in path order', async () => {
    const folder = await made({ 'b.yml': '', 'a/c.json': '', 'a/b/d.yaml': '', 'readme.md': '', 'x.yaml.bak': '' });
    expect(await read(folder)).toEqual({ files: ['a/b/d.yaml', 'a/c.json', 'b.yml'], faults: [] });
  });

  it('is read without names that begin with a dot', async () => {
    const folder = await made({ '.git/a.yaml': '', '.a.yaml': '', '.grantry/secrets/b.yaml': '', 'c.yaml': '' });
    expect(await read(folder)).toEqual({ files: ['c.yaml'], faults: [] });
  });

  it('is read through links to files and folders, once round a loop at most', async () => {
    const elsewhere = await made({ 'x/a.yaml': '', 'b.yaml': '' });
    const folder = await made({ 'c.yaml': '' });
    await symlink(join(elsewhere, 'x'), join(folder, 'linked'));
    await symlink(join(elsewhere, 'b.yaml'), join(folder, 'linked.yaml'));
    await symlink(folder, join(folder, 'loop'));
    await symlink('itself.yaml', join(folder, 'itself.yaml'));
    await symlink('nowhere.yaml', join(folder, 'dangling.yaml'));
    const { files, faults } = await read(folder);
    expect(files).toEqual(['c.yaml', 'linked.yaml', 'linked/a.yaml']);
    expect(faults).toMatchObject([{ reason: 'Unreadable', place: { file: join(folder, 'itself.yaml') } }]);
  });

  it('is read once, also where links lead to its folders on very many ways', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `d${index}`);
    const folder = await made(Object.fromEntries(names.map((name) => [`${name}/a.yaml`, ''])));
    for (const name of names) {
      for (const other of names) await symlink(join(folder, other), join(folder, name, `to-${other}`));
    }
    const { files, faults } = await read(folder);
    expect([files.length, faults]).toEqual([names.length, []]);
  });

  it('reads one file that is named, whatever it is called', async () => {
    const folder = await made({ '.hidden': 'a: 1' });
    const { files, faults } = await readFolder(join(folder, '.hidden'));
    expect([[...files.values()].map(String), faults]).toEqual([['a: 1'], []]);
  });

  it('says what is missing', async () => {
    const folder = await made({});
    expect((await readFolder(join(folder, 'nowhere'))).faults).toMatchObject([{ reason: 'Unreadable' }]);
  });

  it('refuses a file that no object can be as long as, unread', async () => {
    const folder = await made({ 'a.yaml': '', 'b.yaml': '' });
    await truncate(join(folder, 'a.yaml'), 10 * 1024 ** 3);
    const { files, faults } = await read(folder);
    expect(files).toEqual(['b.yaml']);
    expect(faults).toMatchObject([{ reason: 'TooLarge', place: { file: join(folder, 'a.yaml') } }]);
  });

  it('gives up on folders that lie too deep', async () => {
    const folder = await made({ 'a.yaml': '' });
    await mkdir(join(folder, ...Array<string>(40).fill('d')), { recursive: true });
    expect(await read(folder)).toMatchObject({ files: ['a.yaml'], faults: [{ reason: 'TooLarge' }] });
  });
});
