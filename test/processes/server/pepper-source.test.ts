import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { PepperSource } from '../../../src/processes/server/pepper-source.ts';
import { until } from '../../until.ts';

// Only to count the reads, which are real ones.
vi.mock('node:fs/promises', { spy: true });
const reads = vi.mocked(readFile);

const [ONE, OTHER] = ['one'.repeat(11), 'other'.repeat(7)];

function inSecret() {
  const secret: { text: string | undefined } = { text: undefined };
  return { secret, source: new PepperSource({ file: undefined, namespace: 'here', secretText: () => secret.text }) };
}

describe('the pepper of a replica', () => {
  it('is waited for, and used as soon as the Secret is there', async () => {
    const { secret, source } = inSecret();
    await source.refresh();
    expect(source.missing).toMatch(/grantry-pepper in here/);
    secret.text = `${ONE}\n`;
    await source.refresh();
    expect((await source.whenAvailable()).map(String)).toEqual([ONE]);
    expect([source.missing, source.outdated]).toEqual([undefined, undefined]);
  });

  it('is the first to the end, also when there is another one, none or one that is of no use', async () => {
    const { secret, source } = inSecret();
    secret.text = ONE;
    await source.refresh();
    for (const text of [OTHER, `${ONE}\n${OTHER}`, 'short', undefined]) {
      secret.text = text;
      await source.refresh();
      expect(source.outdated).toBeDefined();
      expect(source.missing).toBeUndefined();
    }
    secret.text = ONE;
    await source.refresh();
    expect(source.outdated).toBeUndefined();
    expect((await source.whenAvailable()).map(String)).toEqual([ONE]);
  });

  it('is read from its file once that can be used', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'grantry-pepper-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'pepper');
    const source = new PepperSource({ file, namespace: 'here', secretText: () => OTHER });
    await source.refresh();
    expect(source.missing).toContain('ENOENT');
    await writeFile(file, ONE);
    await until('it is read', () => source.missing === undefined);
    expect((await source.whenAvailable()).map(String)).toEqual([ONE]);
  });

  it('stays the one that its file had first, and another one there is reported', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'grantry-pepper-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'pepper');
    await writeFile(file, ONE);
    const source = new PepperSource({ file, namespace: 'here', secretText: () => undefined });
    await source.refresh();
    expect(source.outdated).toBeUndefined();
    await writeFile(file, `${ONE}\n${OTHER}`);
    await until('it is reported', () => source.outdated?.includes('restart') === true);
    expect((await source.whenAvailable()).map(String)).toEqual([ONE]);
    await writeFile(file, ONE);
    await until('all is well', () => source.outdated === undefined);
  });

  it('is read from its file once a second, however often it is looked for, also while a read is under way', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'grantry-pepper-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'pepper');
    await writeFile(file, ONE);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const readsOfSecond = async () => {
      reads.mockClear();
      vi.advanceTimersByTime(1000);
      await Promise.allSettled(reads.mock.results.map(({ value }) => value));
      // The sources of other tests may still be reading theirs.
      return reads.mock.calls.filter(([path]) => path === file).length;
    };
    const source = new PepperSource({ file, namespace: 'here', secretText: () => undefined });
    await Promise.all([source.refresh(), source.refresh()]);
    await source.refresh();
    expect([await readsOfSecond(), await readsOfSecond()]).toEqual([1, 1]);
  });
});
