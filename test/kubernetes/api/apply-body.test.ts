// The body of a server-side apply is YAML; that a real API server reads it is tested in
// test/cluster/controller/invisible-text.test.ts.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { applyBody } from '../../../src/kubernetes/api/calls.ts';

it('the body of an apply, whatever text is in it → printable ASCII that YAML reads as the same object', () => {
  const text = fc.string({ unit: 'binary', maxLength: 20 });
  fc.assert(
    fc.property(fc.dictionary(text, text), (object) => {
      const body = applyBody({ object });
      expect(body).toMatch(/^[\x20-\x7e]*$/);
      expect(parse(body, { uniqueKeys: false })).toEqual({ object });
    }),
    { numRuns: 50 },
  );
});

it.each([
  ['DEL', '\u007f', '{"a":"\\u007f"}'],
  ['a pictogram', '\u{1f600}', '{"a":"\\U0001f600"}'],
  ['half of a pair', '\ud800', '{"a":"\\ufffd"}'],
  ['the text of an escape', '\\ud800', '{"a":"\\\\ud800"}'],
])('the body of an apply with %s (%j) → %s', (_, text, body) => {
  expect(applyBody({ a: text })).toBe(body);
});
