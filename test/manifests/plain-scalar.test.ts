import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { fieldsOf } from '../../src/admission/kinds/manifest.ts';
import { parseFile } from '../../src/manifests/documents.ts';
import { manifestsOf } from './a-folder.ts';
import { OF_VERSION_1_1, shortScalars } from './short-scalars.ts';

/** The value that a plain scalar has in a manifest; `refused` where the file has a fault. */
function readScalar(scalar: string): unknown {
  const { documents, faults } = parseFile('a.yaml', Buffer.from(`a: ${scalar}\n`));
  return faults.length > 0 ? 'refused' : fieldsOf(documents[0]?.value).a;
}

describe('a plain scalar of a manifest', () => {
  it.each([
    'e0',
    'E1',
    '-e1',
    '+E7',
    '.',
    '+.',
    '-.',
    '._',
    '._1',
    '.1_',
    '1e999',
    '.5e999',
    '0x',
    '0b',
    '0b2',
    '0o8',
    '10:30',
    '1.2.3',
  ])('%s → text, as for kubectl', (scalar) => {
    expect(readScalar(scalar)).toBe(scalar);
  });

  it.each([
    ['08', 8],
    ['017', 15],
    ['0o17', 15],
    ['-0x1F', -31],
    ['0B11', 3],
    ['0O17', 15],
    ['!!int 5', 5],
    ['!!float 5', 5],
    ['0b-1', -1],
    ['-0', 0],
    ['0_', 0],
    ['-_1', -1],
    ['1_000', 1000],
    ['1_0e1', 100],
    ['.1_0', 0.1],
    ['.5', 0.5],
    ['1.', 1],
    ['1e3', 1000],
    ['18446744073709551616', 2 ** 64],
    ['0777777777777777777777777', 7.777777777777778e23],
  ])('%s → the number %d, as for kubectl', (scalar, number) => {
    expect(readScalar(scalar)).toBe(number);
  });

  it.each([
    ['0xffffffffffffffff', 2 ** 64 - 1],
    ['0x10000000000000000', '0x10000000000000000'],
    ['-0x8000000000000000', -(2 ** 63)],
    ['-0x8000000000000001', '-0x8000000000000001'],
    ['+0x8000000000000000', '+0x8000000000000000'],
  ])('%s → an integer of 64 bits, else text', (scalar, value) => {
    expect(readScalar(scalar)).toBe(value);
  });

  it.each(['.inf', '-.Inf', '+.INF', '.nan', '.NaN'])('%s → refused: no JSON holds it', (scalar) => {
    expect(readScalar(scalar)).toBe('refused');
  });

  it('of up to three characters, in no form of YAML 1.1 → what YAML 1.2 reads', () => {
    const scalars = shortScalars(3).filter((scalar) => !OF_VERSION_1_1.test(scalar));
    expect(scalars.length).toBeGreaterThan(1000);
    const differing = scalars.filter(
      (scalar) => readScalar(scalar) !== parse(scalar, { version: '1.2', schema: 'core' }),
    );
    expect(differing).toEqual([]);
  });

  it('of half a million digits → text: no float holds it', () => {
    const digits = '9'.repeat(500_000);
    expect(readScalar(digits)).toBe(digits);
  });

  it('that is the name of an object → served under it', async () => {
    const { objects, faults } = await manifestsOf({
      'a.yaml':
        'apiVersion: grantry.dev/v1alpha1\nkind: OAuthClient\nmetadata: {name: e0}\nspec: {grantTypes: [client_credentials]}\n',
    });
    expect([objects[0]?.name, faults]).toEqual(['e0', []]);
  });
});
