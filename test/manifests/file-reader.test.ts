import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { FileReader } from '../../src/manifests/file-reader.ts';
import { placeIn } from '../../src/manifests/outline.ts';

const MEBIBYTE = 1024 * 1024;

/** Texts of a megabyte that keep the parser, or what follows it, busy out of all proportion. */
const COSTLY: readonly [string, string][] = [
  ['nothing but open brackets', '['.repeat(MEBIBYTE)],
  ['a directive on each line', '%A\n'.repeat(MEBIBYTE / 3)],
  ['a list of empty objects', '- {}\n'.repeat(MEBIBYTE / 5)],
  ['a document on each second line', '---\na: 1\n'.repeat(MEBIBYTE / 9)],
  ['merges of a large map', manyMerges(99, 60_000)],
];

function manyMerges(merges: number, keys: number): string {
  const map = Array.from({ length: keys }, (_, index) => `k${index}: 1`).join(', ');
  return `a: &a {${map}}\nb:\n${'- {<<: *a}\n'.repeat(merges)}`;
}

describe('a costly file', () => {
  let reader = new FileReader();
  afterEach(() => reader.close());

  it.each(COSTLY)('with %s is a fault, and everything else goes on meanwhile', async (_, text) => {
    reader = new FileReader({ timeLimitMilliseconds: 1_000 });
    let turns = 0;
    let reading = true;
    const read = reader.read('a.yaml', Buffer.from(text)).finally(() => {
      reading = false;
    });
    while (reading) {
      await nextTurn();
      turns++;
    }
    const { documents, faults } = await read;
    expect(documents).toEqual([]);
    expect(faults).toMatchObject([{ reason: expect.stringMatching(/^(TooLarge|InvalidYaml)$/) }]);
    // Parsed on the main thread, the event loop would run once or twice.
    expect(turns).toBeGreaterThan(20);
  });

  it('does not keep the next one from being read', async () => {
    reader = new FileReader({ timeLimitMilliseconds: 10 });
    const [, costly] = COSTLY[1] as [string, string];
    expect(await reader.read('a.yaml', Buffer.from(costly))).toMatchObject({ faults: [{ reason: 'TooLarge' }] });
    expect(await reader.read('b.yaml', Buffer.from('b: 2'))).toMatchObject({ documents: [{ value: { b: 2 } }] });
  });
});

describe('a large file', () => {
  it('says the same as a small one would, the lines of its fields too', async () => {
    const reader = new FileReader();
    const text = `a: |\n${'  text\n'.repeat(10_000)}list: [1, &x {z: yes}, *x]\nb: 2\n`;
    const { documents, faults } = await reader.read('a.yaml', Buffer.from(text));
    await reader.close();
    expect(faults).toEqual([]);
    expect(documents).toMatchObject([{ number: 1, value: { list: [1, { z: true }, { z: true }], b: 2 } }]);
    expect(documents.map((document) => placeIn(document, ['b']).line)).toEqual([10_003]);
  });

  it('is read after another one, by the same thread', async () => {
    const reader = new FileReader();
    const text = Buffer.from(`a: |\n${'  text\n'.repeat(2_000)}`);
    const found = [
      await reader.read('a.yaml', text),
      await reader.read('b.yaml', text),
      await reader.read('c.yaml', text),
    ];
    await reader.close();
    expect(found.map(({ faults }) => faults)).toEqual([[], [], []]);
  });
});
