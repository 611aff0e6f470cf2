import { expect, test } from 'vitest';
import { withEmptied } from '../../../src/kubernetes/api/emptied-arrays.ts';

const NAMES = ['managedFields', 'conditions'];

/** What is read of a value once it was written, the arrays emptied and the rest parsed. */
function readOf(value: unknown): unknown {
  return JSON.parse(withEmptied(Buffer.from(JSON.stringify(value)), NAMES).toString('utf8'));
}

function item(fields: { readonly metadata?: object; readonly spec?: object; readonly conditions?: unknown }): object {
  return {
    apiVersion: 'grantry.dev/v1alpha1',
    metadata: { name: 'shop', managedFields: [{ manager: 'kubectl', fieldsV1: { 'f:spec': {} } }], ...fields.metadata },
    spec: { displayName: 'Shop', ...fields.spec },
    status: { conditions: fields.conditions ?? [{ type: 'Ready', message: 'All is well.' }] },
  };
}

const emptied = (object: object) => {
  const { metadata, ...rest } = object as { readonly metadata: object };
  return { ...rest, metadata: { ...metadata, managedFields: [] }, status: { conditions: [] } };
};

test('arrays of these names are empty, and nothing else of a list is another', () => {
  const items = [item({}), item({ metadata: { uid: 'b' } }), item({ spec: { scopes: ['a', 'b'] } })];
  expect(readOf({ items, kind: 'List' })).toEqual({ items: items.map(emptied), kind: 'List' });
});

test('text of people that looks like an array to be emptied stays what it is', () => {
  const hostile = [
    '"managedFields":[',
    ',"managedFields":[{"a":"b"}],"name":"c"',
    '{"conditions":["a"]}',
    '\\",\\"conditions\\":[1],\\"x',
    ']},"name":"',
    ']',
    '[',
    'ü],"ö":[',
  ];
  for (const text of hostile) {
    for (const metadata of [{ annotations: { [text]: text } }, { annotations: { a: text, managedFields: text } }]) {
      const object = item({ metadata, spec: { displayName: text, redirectUris: [text, text] } });
      expect(readOf([object, object, { last: text }])).toEqual([emptied(object), emptied(object), { last: text }]);
    }
  }
});

test('an array with a bracket in one of its strings is empty or whole, and what stands behind it is not touched', () => {
  for (const text of ['[', ']', '[]', '][', '],"name":"x"', ']},{"a":[', ']}}']) {
    for (const member of [text, { [text]: text }, { message: text, more: { [text]: {} } }, [text]]) {
      const object = item({ conditions: [member] });
      const whole = { ...emptied(object), status: { conditions: [member] } };
      const read = readOf([object, item({}), { last: true }]) as readonly unknown[];
      expect([whole, emptied(object)]).toContainEqual(read[0]);
      expect(read[1]).toEqual(emptied(item({})));
    }
  }
});

test('a name that only ends like one of these is another name', () => {
  const names = ['x"managedFields', 'x,"conditions', 'unconditions', '{"conditions', '\\"conditions', 'conditions '];
  const object = { ...Object.fromEntries(names.map((name) => [name, [{ a: 1 }]])), z: 1 };
  expect(readOf(object)).toEqual(object);
});

test('arrays are found wherever they stand, one inside of another, too', () => {
  const one = [{ a: 1 }];
  expect(readOf({ conditions: one, a: { conditions: [], b: [{ conditions: one, c: one }] }, d: 4 })).toEqual({
    conditions: [],
    a: { conditions: [], b: [{ conditions: [], c: one }] },
    d: 4,
  });
  const nested = { managedFields: [{ conditions: one, b: 1 }], c: 1 };
  expect(readOf(nested)).toEqual({ managedFields: [{ conditions: [], b: 1 }], c: 1 });
});

test('what is no JSON does not become any', () => {
  const text = JSON.stringify({ items: [item({}), item({})], kind: 'List' });
  for (let length = 0; length < text.length; length++) {
    const cut = withEmptied(Buffer.from(text.slice(0, length)), NAMES).toString('utf8');
    expect(() => JSON.parse(cut), text.slice(0, length)).toThrow();
  }
});
