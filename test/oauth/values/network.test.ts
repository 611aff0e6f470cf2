import { expect, it } from 'vitest';
import { areInDifferentNetworks } from '../../../src/oauth/values/network.ts';

it.each([
  ['192.0.2.7', '192.0.3.7', true],
  ['192.0.2.7', '192.0.2.8', false],
  ['2001:db8::1', '2001:DB8:0:5::1', false],
  ['2001:db8::1', '2001:0db8:0000:1::', false],
  ['2001:db8::1', '2001:db8:1::1', true],
  ['::1', '::2', false],
  ['::1', '127.0.0.1', false],
])('of %s and %s it is %s that their networks differ', (one, other, expected) => {
  expect([areInDifferentNetworks(one, other), areInDifferentNetworks(other, one)]).toEqual([expected, expected]);
});
