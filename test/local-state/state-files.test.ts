import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StateError } from '../../src/local-state/state-error.ts';
import { StateFiles } from '../../src/local-state/state-files.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'grantry-test-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

describe('the state folder', () => {
  it('makes a text once for concurrent callers', async () => {
    const states = await Promise.all(Array.from({ length: 20 }, () => StateFiles.open(directory)));
    const kept = await Promise.all(states.map((state, index) => state.keep('pepper', () => `made by ${index}`)));
    expect(new Set(kept).size).toBe(1);
    expect(await (await StateFiles.open(directory)).keep('pepper', () => 'later')).toBe(kept[0]);
  });

  it('waits for a text that another process is still writing', async () => {
    const state = await StateFiles.open(directory);
    const file = join(directory, '.grantry/pepper');
    await writeFile(file, '');
    const kept = state.keep('pepper', () => 'mine');
    await sleep(50);
    await writeFile(file, 'theirs\n');
    expect(await kept).toBe('theirs');
  });

  it('takes what a person wrote without a line break, and refuses an empty file by its name', async () => {
    const state = await StateFiles.open(directory);
    await writeFile(join(directory, '.grantry/pepper'), 'by hand');
    expect(await state.read('pepper')).toBe('by hand');
    await writeFile(join(directory, '.grantry/pepper'), '');
    await expect(state.read('pepper')).rejects.toThrow(StateError);
  });

  it('is made again when it was removed', async () => {
    const state = await StateFiles.open(directory);
    await rm(join(directory, '.grantry'), { recursive: true });
    expect(await state.list('keys')).toEqual([]);
    await state.keep('keys/a.pem', () => 'key');
    await state.replace('secrets/a.yaml', 'secret');
    expect([await state.list('keys'), await state.list('secrets')]).toEqual([['keys/a.pem'], ['secrets/a.yaml']]);
  });

  it('replaces a text as a whole and leaves nothing else behind', async () => {
    const state = await StateFiles.open(directory);
    for (const text of ['one', 'two', 'two']) await state.replace('secrets/a.yaml', text);
    expect(await readFile(join(directory, '.grantry/secrets/a.yaml'), 'utf8')).toBe('two\n');
    expect(await readdir(join(directory, '.grantry/secrets'))).toEqual(['a.yaml']);
  });

  it('is in memory where there can be no such folder', async () => {
    await writeFile(join(directory, '.grantry'), 'a file');
    const state = await StateFiles.open(directory);
    expect(state.memoryReason).toMatch(/^E/);
    expect(await state.keep('keys/a.pem', () => 'first')).toBe('first');
    expect(await state.keep('keys/a.pem', () => 'second')).toBe('first');
    await state.replace('keys/a.pem', 'third');
    expect([await state.read('keys/a.pem'), await state.list('keys')]).toEqual(['third', ['keys/a.pem']]);
    expect(state.fileOf('keys/a.pem')).toBeUndefined();
  });
});
