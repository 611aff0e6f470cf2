import { describe, expect, it } from 'vitest';
import { readSecretValue } from '../../../src/admission/references/references.ts';

const encode = (value: string) => Buffer.from(value).toString('base64');

describe('a value of a Secret', () => {
  it.each([
    ['is found', { stringData: { key: 'one line' } }, { outcome: 'found', value: 'one line' }],
    ['is missing', { data: { other: encode('one line') } }, { outcome: 'missing' }],
    ['is an unquoted number', { stringData: { key: 1234 } }, { outcome: 'not_text' }],
    ['is not base64', { data: { key: 'one line' } }, { outcome: 'not_text' }],
    ['ends with a line break', { data: { key: encode('one line\n') } }, { outcome: 'not_one_line' }],
  ])('that %s says so', (_, secret, answer) => {
    expect(readSecretValue(secret, 'key')).toEqual(answer);
  });
});
