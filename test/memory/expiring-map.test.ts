// The bound of the memory stores: what has expired goes, what is alive stays, and a full store refuses.

import { describe, expect, it } from 'vitest';
import { ExpiringMap } from '../../src/memory/expiring-map.ts';
import { StoreUnavailableError } from '../../src/oauth/ports/error.ts';

function mapOf(capacity: number) {
  let now = 1000;
  const map = new ExpiringMap<number>({ clock: { now: () => now }, capacity, name: 'numbers' });
  function advance(milliseconds: number): void {
    now += milliseconds;
  }
  function fill(prefix: string, count: number, expiresAt: number): void {
    for (let index = 0; index < count; index++) map.set(`${prefix} ${index}`, index, expiresAt);
  }
  return { map, advance, fill };
}

describe('an expiring map', () => {
  it('hides an entry from the moment it expires, swept or not', () => {
    const { map, advance } = mapOf(10);
    map.set('one', 1, 1500);
    advance(499);
    expect([map.get('one'), map.expiryOf('one')]).toEqual([1, 1500]);
    advance(1);
    expect([map.get('one'), map.expiryOf('one')]).toEqual([undefined, undefined]);
    expect(map.size).toBe(1);
  });

  it('refuses a new key when it is full of active entries, and keeps them all', () => {
    const { map, fill } = mapOf(100);
    fill('active', 100, 2000);
    expect(() => map.set('new', 0, 9000)).toThrow(StoreUnavailableError);
    expect(map.get('new')).toBeUndefined();
    for (let index = 0; index < 100; index++) expect(map.get(`active ${index}`)).toBe(index);
  });

  it('changes an entry it holds also when it is full', () => {
    const { map, fill } = mapOf(100);
    fill('active', 100, 2000);
    map.set('active 7', 70, 3000);
    expect([map.get('active 7'), map.expiryOf('active 7')]).toEqual([70, 3000]);
  });

  it('has room again once entries have expired or were deleted', () => {
    const { map, advance, fill } = mapOf(100);
    fill('short', 50, 1500);
    fill('long', 50, 9000);
    map.delete('long 0');
    map.set('instead', 0, 9000);
    expect(() => map.set('new', 0, 9000)).toThrow(StoreUnavailableError);
    advance(500);
    fill('new', 50, 9000);
    expect(map.get('long 49')).toBe(49);
    expect(() => map.set('one too many', 0, 9000)).toThrow(StoreUnavailableError);
  });

  it('has room again when only the last of many entries has expired', () => {
    const { map, advance, fill } = mapOf(500);
    fill('long', 499, 9000);
    fill('short', 1, 1500);
    expect(() => map.set('new', 0, 9000)).toThrow(StoreUnavailableError);
    advance(500);
    map.set('new', 0, 9000);
    expect(map.get('new')).toBe(0);
  });

  it('stays near the number of active entries under a steady stream, far below its capacity', () => {
    const { map, advance } = mapOf(100_000);
    let largest = 0;
    for (let index = 0; index < 50_000; index++) {
      advance(1);
      map.set(`entry ${index}`, index, 1000 + index + 100);
      largest = Math.max(largest, map.size);
    }
    expect(largest).toBeLessThan(250);
  });

  it('gives up what a burst has left behind as it is used', () => {
    const { map, advance, fill } = mapOf(100_000);
    fill('burst', 80_000, 2000);
    advance(1000);
    fill('after', 12_000, 9000);
    expect(map.size).toBe(12_000);
  });

  it('removes what matches, and only that', () => {
    const { map, fill } = mapOf(10);
    fill('entry', 10, 9000);
    map.deleteWhere((value) => value % 2 === 0);
    expect(map.size).toBe(5);
    expect([map.get('entry 4'), map.get('entry 5')]).toEqual([undefined, 5]);
  });
});
