import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FieldPath } from '../../src/admission/kinds/field-path.ts';
import { parseFile } from '../../src/manifests/documents.ts';
import { placeIn } from '../../src/manifests/outline.ts';
import { blockedMilliseconds, COSTLY_BEFORE, costlyYaml, threadMilliseconds } from './costly-yaml.ts';

function parse(text: string | Uint8Array, file = 'a.yaml') {
  return parseFile(file, typeof text === 'string' ? Buffer.from(text) : text);
}

function values(text: string, file?: string) {
  const { documents, faults } = parse(text, file);
  expect(faults).toEqual([]);
  return documents.map((document) => document.value);
}

describe('the documents of a file', () => {
  it('are read one after the other', () => {
    expect(values('a: 1\n---\na: 2\n---\n')).toEqual([{ a: 1 }, { a: 2 }, null]);
  });

  it('mean what they mean to kubectl: yes is a boolean, a date and 10:30 are text, << merges', () => {
    expect(values('a: yes\nb: 2026-01-01\nc: 10:30\nd: &d {x: 1}\ne: {<<: *d, z: 2}')).toEqual([
      { a: true, b: '2026-01-01', c: '10:30', d: { x: 1 }, e: { x: 1, z: 2 } },
    ]);
  });

  it('may begin with a byte order mark', () => {
    expect(values('\ufeffa: 1')).toEqual([{ a: 1 }]);
  });

  it('are strict JSON in a .json file', () => {
    expect(values('{"a": ["yes", null, 1e3]}', 'a.json')).toEqual([{ a: ['yes', null, 1000] }]);
    expect(parse('{a: 1}', 'a.json').faults).toMatchObject([{ reason: 'InvalidYaml' }]);
  });
});

describe('a file that cannot be used is a fault and nothing worse', () => {
  const nine = (item: string) => `[${Array(9).fill(item).join(',')}]`;
  const bomb = [
    'a: &a x',
    ...[...'bcdefghij'].map((key, index) => `${key}: &${key} ${nine(`*${'abcdefghij'[index]}`)}`),
  ];
  const cases: readonly [string, string | Uint8Array][] = [
    ['bytes that are not UTF-8', new Uint8Array([0x61, 0x3a, 0xff])],
    ['aliases that multiply', bomb.join('\n')],
    ['too many aliases', `a: &a 1\nb: [${Array(200).fill('*a').join(',')}]`],
    ['an alias inside what it stands for', 'a: &a\n  b: *a'],
    ['a key named __proto__', 'a:\n  __proto__: {b: 1}'],
    ['a list as key', '? [a]\n: 1'],
    ['a map as key within a list', '- {{a: 1}: 2}'],
    ['an alias of a list as key', 'a: &a [b]\nc: {? *a : 1}'],
    ['a key that comes twice', 'a: 1\na: 2'],
    ['a number beyond all bounds', 'a: .inf'],
    ['deep nesting', '['.repeat(100_000)],
    ['deep nesting that the parser takes', `${'['.repeat(400)}${']'.repeat(400)}`],
    ['deep nesting of blocks', '- '.repeat(50_000)],
    ['an open quote', 'a: "b'],
    ['a tab as indentation', 'a:\n\t- b'],
  ];
  it.each(cases)('%s', (_, text) => {
    const { documents, faults } = parse(text);
    expect(documents).toEqual([]);
    expect(faults.length).toBeGreaterThan(0);
  });

  it('and the sound documents beside it are still read', () => {
    const { documents, faults } = parse('a: 1\n---\nb: [\n---\nc: 3\n');
    expect(documents.map((document) => document.value)).toEqual([{ a: 1 }, { c: 3 }]);
    expect(faults).toMatchObject([{ reason: 'InvalidYaml', place: { document: 2 } }]);
  });

  it('and its text is not quoted: it may be that of a Secret', () => {
    for (const text of ['{"a": hunter2hunter2}', '"\\hunter2"', '*hunter2', 'a: !hunter2 [b', '%hunter2\n---\na']) {
      for (const file of ['a.json', 'a.yaml']) {
        expect(JSON.stringify(parse(text, file).faults)).not.toContain('hunter2');
      }
    }
  });

  it('reads many keys in linear time', () => {
    const text = Array.from({ length: 50_000 }, (_, index) => `k${index}: v`).join('\n');
    expect(threadMilliseconds(() => expect(values(text)).toHaveLength(1))).toBeLessThan(10_000);
  });

  it('whatever the text is', () => {
    const yamlish = fc.string({ unit: fc.constantFrom(...'{}[]:-?&*!|>%@ \n\t"\'#ab0') });
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), yamlish), (text) => {
        for (const file of ['a.yaml', 'a.json']) {
          for (const document of parse(text, file).documents) {
            expect(() => JSON.stringify(document.value)).not.toThrow();
            expect(placeIn(document, ['a', 0]).line ?? 1).toBeGreaterThan(0);
          }
        }
      }),
    );
  });
});

describe('a file of the size that is parsed on the main thread', () => {
  it.each(COSTLY_BEFORE)('of %s → a fault, and the event loop is held for less than 250 ms', (_, text) => {
    expect(blockedMilliseconds(() => parse(text))).toBeLessThan(250);
    expect(parse(text)).toMatchObject({ documents: [], faults: [{ reason: 'InvalidYaml' }] });
  });

  it('of any YAML indicators → the event loop is held for less than 250 ms', () => {
    fc.assert(
      fc.property(costlyYaml, (text) => {
        expect(blockedMilliseconds(() => parse(text))).toBeLessThan(250);
      }),
      { numRuns: 50 },
    );
  });

  it('with an alias of a word as key is read', () => {
    expect(values('a: &a b\nc: {? *a : 1}')).toEqual([{ a: 'b', c: { b: 1 } }]);
  });
});

describe('the place of a field', () => {
  const [, document] = parse('x: 1\n---\nkind: A\nspec:\n  scopes:\n    - a\n    - b\n', 'dir/a.yaml').documents;
  const at = (path: FieldPath) => document && placeIn(document, path);

  it('is the line of its key, counted in the file', () => {
    expect(at(['spec', 'scopes'])).toEqual({
      file: 'dir/a.yaml',
      document: 2,
      line: 5,
      field: 'spec.scopes',
    });
  });

  it('is the line of a member of a list', () => {
    expect(at(['spec', 'scopes', 1])).toMatchObject({ line: 7, field: 'spec.scopes[1]' });
  });

  it('is the nearest line around a field that is not there', () => {
    expect(at(['spec', 'auth', 'method'])).toMatchObject({ line: 4, field: 'spec.auth.method' });
    expect(at([])).toMatchObject({ line: 3, field: undefined });
  });

  it('puts a key that is no plain word in quotes, as conditions do', () => {
    expect(at(['metadata', 'labels', 'app.kubernetes.io/name'])).toMatchObject({
      field: 'metadata.labels["app.kubernetes.io/name"]',
    });
  });
});
