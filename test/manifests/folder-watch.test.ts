import { appendFile, mkdir, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { FolderContents } from '../../src/manifests/folder.ts';
import { FolderWatch, type FolderWatchParts } from '../../src/manifests/folder-watch.ts';
import { folderOf, removeFolder } from './a-folder.ts';

/** Long after a change must have been noticed, on a busy machine too; the slow poll does not come before. */
const PATIENCE_MILLISECONDS = 15_000;
const POLL = 10 * PATIENCE_MILLISECONDS;

const open: { close: () => Promise<void> }[] = [];
afterEach(async () => {
  for (const { close } of open.splice(0)) await close();
});

async function watching(files: Readonly<Record<string, string>>, more: Pick<FolderWatchParts, 'rescan'> = {}) {
  const folder = await folderOf(files);
  const states: FolderContents[] = [];
  const onChange = (contents: FolderContents) => states.push(contents);
  const watch = new FolderWatch(Object.assign({ root: folder, onChange, poll: POLL }, more));
  states.push(await watch.start());
  open.push({ close: () => watch.close().then(() => removeFolder(folder)) });
  const now = () =>
    Object.fromEntries(
      [...(states.at(-1)?.files ?? [])].map(([file, text]) => [file.slice(folder.length + 1), `${text}`]),
    );
  /** Waits until the watch has seen exactly these files. */
  const until = async (expected: Readonly<Record<string, string>>) => {
    const begin = performance.now();
    while (JSON.stringify(now()) !== JSON.stringify(expected)) {
      if (performance.now() - begin > PATIENCE_MILLISECONDS) expect(now()).toEqual(expected);
      await sleep(5);
    }
  };
  const scan = () => watch.scan();
  return { path: (...names: string[]) => join(folder, ...names), states, until, now, scan };
}

async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.tmp`, text);
  await rename(`${path}.tmp`, path);
}

describe('a watched folder', () => {
  it('notices a file that is replaced by a rename, every time', async () => {
    const { path, until } = await watching({ 'a.yaml': 'v0' });
    for (const version of ['v1', 'v2', 'v3']) {
      await replace(path('a.yaml'), version);
      await until({ 'a.yaml': version });
    }
  });

  it('notices a file that is written in place, also after a rename', async () => {
    const { path, until } = await watching({ 'a.yaml': 'v0' });
    await writeFile(path('a.yaml'), 'v1');
    await until({ 'a.yaml': 'v1' });
    await replace(path('a.yaml'), 'v2');
    await until({ 'a.yaml': 'v2' });
    await appendFile(path('a.yaml'), '!');
    await until({ 'a.yaml': 'v2!' });
  });

  it('notices the swap of ..data by which a ConfigMap volume changes', async () => {
    const { path, until } = await watching({
      '..2026_1/a.yaml': 'v1',
      '..2026_2/a.yaml': 'v2',
      '..2026_3/a.yaml': 'v3',
    });
    await symlink('..2026_1', path('..data'));
    await symlink('..data/a.yaml', path('a.yaml'));
    await until({ 'a.yaml': 'v1' });
    for (const version of ['2', '3']) {
      await symlink(`..2026_${version}`, path('..data_tmp'));
      await rename(path('..data_tmp'), path('..data'));
      await rm(path(`..2026_${Number(version) - 1}`), { recursive: true });
      await until({ 'a.yaml': `v${version}` });
    }
  });

  it('notices files in a folder that is new, removed, or made again', async () => {
    const { path, until } = await watching({ 'a.yaml': 'a' });
    for (const version of ['1', '2']) {
      await mkdir(path('sub/deeper'), { recursive: true });
      await writeFile(path('sub/deeper/b.yaml'), version);
      await until({ 'a.yaml': 'a', 'sub/deeper/b.yaml': version });
      await writeFile(path('sub/deeper/b.yaml'), `${version}!`);
      await until({ 'a.yaml': 'a', 'sub/deeper/b.yaml': `${version}!` });
      await rm(path('sub'), { recursive: true });
      await until({ 'a.yaml': 'a' });
    }
  });

  it('notices a deleted file and a renamed one', async () => {
    const { path, until } = await watching({ 'a.yaml': 'a', 'b.yaml': 'b' });
    await unlink(path('a.yaml'));
    await until({ 'b.yaml': 'b' });
    await rename(path('b.yaml'), path('c.yaml'));
    await until({ 'c.yaml': 'b' });
  });

  it('notices a change of a file that only a link leads to', async () => {
    const elsewhere = await folderOf({ 'x.yaml': 'v0' });
    open.push({ close: () => removeFolder(elsewhere) });
    const { path, until } = await watching({});
    await symlink(join(elsewhere, 'x.yaml'), path('a.yaml'));
    await until({ 'a.yaml': 'v0' });
    await writeFile(join(elsewhere, 'x.yaml'), 'v1');
    await until({ 'a.yaml': 'v1' });
  });

  it('takes neither a half-written nor a just emptied file for its new state', async () => {
    // Far longer than the pause between the two writes, however busy the machine is.
    const { path, until, states } = await watching({ 'a.yaml': 'old' }, { rescan: 1000 });
    await writeFile(path('a.yaml'), '');
    // The watch has scanned by then.
    await sleep(100);
    await writeFile(path('a.yaml'), 'new');
    await until({ 'a.yaml': 'new' });
    expect(states.flatMap(({ files }) => [...files.values()].map(String))).toEqual(['old', 'new']);
  });

  it('given a file that is written before a scan and deleted right after it → notices both', async () => {
    const { path, states, until, scan } = await watching({});
    await writeFile(path('a.yaml'), 'a');
    await scan();
    expect(states.map(({ files }) => [...files.values()].map(String))).toEqual([[], ['a']]);
    await unlink(path('a.yaml'));
    await until({});
  });

  it('says nothing when nothing changed', async () => {
    const { path, states } = await watching({ 'a.yaml': 'a' });
    await writeFile(path('a.yaml'), 'a');
    await writeFile(path('notes.txt'), 'b');
    await mkdir(path('empty'));
    await sleep(300);
    expect(states).toHaveLength(1);
  });

  it('says nothing more once it is closed', async () => {
    const folder = await folderOf({ 'a.yaml': 'a' });
    const states: FolderContents[] = [];
    const watch = new FolderWatch({ root: folder, onChange: (contents) => states.push(contents) });
    await watch.start();
    await writeFile(join(folder, 'a.yaml'), 'b');
    await watch.close();
    await sleep(200);
    expect(states).toEqual([]);
    await removeFolder(folder);
  });
});
