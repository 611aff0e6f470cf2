import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LocalRevokedTokens } from '../../src/local-state/local-revoked-tokens.ts';
import { StateFiles } from '../../src/local-state/state-files.ts';
import { memoryStores } from '../../src/memory/stores.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'grantry-test-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** What a process that starts at this second would have. */
async function openAt(second: number): Promise<LocalRevokedTokens> {
  const clock = { now: () => second * 1000 };
  const store = memoryStores({ clock }).revokedTokens;
  return LocalRevokedTokens.open({ store, state: await StateFiles.open(directory), clock });
}

const lines = () => readFile(join(directory, '.grantry/revoked-tokens'), 'utf8');

describe('marks on revoked tokens', () => {
  it('outlive a restart until the token would have died, and then leave the file', async () => {
    const first = await openAt(100);
    await Promise.all([first.mark('long', 300), first.mark('short', 200)]);
    const second = await openAt(199);
    expect([await second.has('long'), await second.has('short'), await second.has('none')]).toEqual([
      true,
      true,
      false,
    ]);
    const third = await openAt(200);
    expect([await third.has('long'), await third.has('short')]).toEqual([true, false]);
    expect(await lines()).toBe('300 long\n');
  });

  it('outlive a half-written line and one that is none', async () => {
    await (await openAt(100)).mark('one', 300);
    await appendFile(join(directory, '.grantry/revoked-tokens'), 'x y z\n300');
    const again = await openAt(101);
    expect(await again.has('one')).toBe(true);
    await again.mark('two', 300);
    expect(await (await openAt(102)).has('two')).toBe(true);
  });

  it('are kept although the folder was removed meanwhile', async () => {
    const tokens = await openAt(100);
    await rm(join(directory, '.grantry'), { recursive: true });
    await tokens.mark('one', 300);
    expect(await (await openAt(101)).has('one')).toBe(true);
  });
});
