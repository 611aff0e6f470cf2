// A bounded memory must not forget what is in use, and must forget the rest.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RecentValues } from '../../../src/oauth/values/recent-values.ts';

it('knows the names that were used last, and of all others few', () => {
  const least = 8;
  const uses = fc.array(fc.record({ name: fc.integer({ min: 0, max: 30 }), sets: fc.boolean() }), { maxLength: 200 });
  fc.assert(
    fc.property(uses, (steps) => {
      const recent = new RecentValues<number>(least);
      const used: string[] = [];
      for (const { name: number, sets } of steps) {
        const name = String(number);
        const isLate = used.slice(0, least).includes(name);
        if (sets) recent.set(name, number);
        const value = recent.get(name);
        if (isLate || sets) expect(value).toBe(number);
        if (value === undefined) continue;
        expect(value).toBe(number);
        used.splice(0, used.length, name, ...used.filter((other) => other !== name));
      }
      const known = Array.from({ length: 31 }, (_, name) => recent.get(String(name))).filter(
        (value) => value !== undefined,
      );
      expect(known.length).toBeLessThanOrEqual(2 * least);
    }),
  );
});

it('holds twice as many as it must at most, whatever comes', () => {
  const recent = new RecentValues<number>(100);
  for (let name = 0; name < 1000; name++) recent.set(`${name}`, name);
  const known = Array.from({ length: 1000 }, (_, name) => name).filter((name) => recent.get(`${name}`) !== undefined);
  expect(known.length).toBeGreaterThanOrEqual(99);
  expect(known.length).toBeLessThan(200);
});
