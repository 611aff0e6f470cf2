// The address of a caller, and how often it may fail (docs/scope.md: C8, I4).

import { describe, expect, it } from 'vitest';
import { AuthenticationLimit } from '../../../src/http/protocol/authentication-limit.ts';
import { addressNetwork, TrustedProxies } from '../../../src/http/server/client-address.ts';
import { TestClock } from '../../grantry.ts';

describe('the address of a caller', () => {
  const proxies = new TrustedProxies(['10.0.0.0/8', '192.168.1.1', 'fd00::/8']);

  it.each([
    ['is the peer without a header', '203.0.113.9', undefined, '203.0.113.9'],
    ['is the peer when it is not trusted', '203.0.113.9', '198.51.100.1', '203.0.113.9'],
    ['is what a trusted proxy says', '10.1.2.3', '198.51.100.1', '198.51.100.1'],
    [
      'is the nearest that no trusted proxy answers for',
      '10.1.2.3',
      '1.1.1.1, 198.51.100.1, 192.168.1.1',
      '198.51.100.1',
    ],
    ['is the farthest proxy when all are trusted', '10.1.2.3', '10.9.9.9, 192.168.1.1', '10.9.9.9'],
    ['stops at garbage', '10.1.2.3', '198.51.100.1, garbage', '10.1.2.3'],
    ['stops at an empty entry', '10.1.2.3', '198.51.100.1,', '10.1.2.3'],
    ['knows IPv4 inside IPv6', '::ffff:10.1.2.3', '::ffff:198.51.100.1', '198.51.100.1'],
    ['knows IPv6 proxies', 'fd00::1', '2001:db8::1', '2001:db8::1'],
    ['has no port', '10.1.2.3', '198.51.100.1:4711', '10.1.2.3'],
    ['has no zone', 'fe80::1%eth0', undefined, 'fe80::1'],
    ['is nothing of a closed socket', undefined, undefined, '0.0.0.0'],
  ])('%s', (_what, peer, forwardedFor, expected) => {
    expect(proxies.clientAddress(peer, forwardedFor)).toBe(expected);
  });

  it('is always the peer without trusted proxies', () => {
    expect(new TrustedProxies([]).clientAddress('127.0.0.1', '198.51.100.1')).toBe('127.0.0.1');
  });
});

describe('the network that attempts count under', () => {
  it.each([
    ['203.0.113.9', '203.0.113.9'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::ffff', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['2001:db8:1:2:3:4:5::', '2001:db8:1:2::/64'],
  ])('of %s is %s', (address, network) => {
    expect(addressNetwork(address)).toBe(network);
  });
});

describe('the limit on failed authentication', () => {
  function fail(limit: AuthenticationLimit, times: number, clientId: string | undefined, address: string): void {
    for (let count = 0; count < times; count += 1) limit.failed(clientId, address);
  }

  it('lets ten failures of a client from an address pass, and then says how long to wait', () => {
    const clock = new TestClock();
    const limit = new AuthenticationLimit({ clock });
    fail(limit, 9, 'a', '203.0.113.9');
    expect(limit.waitSeconds('a', '203.0.113.9')).toBe(0);
    fail(limit, 1, 'a', '203.0.113.9');
    expect(limit.waitSeconds('a', '203.0.113.9')).toBe(6);
    clock.advance(6000);
    expect(limit.waitSeconds('a', '203.0.113.9')).toBe(0);
  });

  it('is full again after a minute, and no fuller than that', () => {
    const clock = new TestClock();
    const limit = new AuthenticationLimit({ clock });
    fail(limit, 30, 'a', '203.0.113.9');
    clock.advance(600_000);
    fail(limit, 10, 'a', '203.0.113.9');
    expect(limit.waitSeconds('a', '203.0.113.9')).toBeGreaterThan(0);
  });

  it('keeps clients and addresses apart', () => {
    const limit = new AuthenticationLimit({ clock: new TestClock() });
    fail(limit, 10, 'a', '203.0.113.9');
    expect(limit.waitSeconds('b', '203.0.113.9')).toBe(0);
    expect(limit.waitSeconds('a', '203.0.113.10')).toBe(0);
  });

  it('lets a hundred failures of an address pass, whatever client they name', () => {
    const limit = new AuthenticationLimit({ clock: new TestClock() });
    for (let count = 0; count < 50; count += 1) {
      fail(limit, 1, `c${count}`, '203.0.113.9');
      fail(limit, 1, undefined, '203.0.113.9');
    }
    expect(limit.waitSeconds('fresh', '203.0.113.9')).toBe(1);
    expect(limit.waitSeconds(undefined, '203.0.113.9')).toBe(1);
    expect(limit.waitSeconds('fresh', '203.0.113.10')).toBe(0);
  });

  it('takes the addresses of one /64 for one', () => {
    const limit = new AuthenticationLimit({ clock: new TestClock() });
    for (let count = 0; count < 10; count += 1) limit.failed('a', `2001:db8::${count}`);
    expect(limit.waitSeconds('a', '2001:db8::ffff')).toBeGreaterThan(0);
    expect(limit.waitSeconds('a', '2001:db8:0:1::1')).toBe(0);
  });

  it('forgets the longest untouched when a flood of addresses comes, and holds on to the latest', () => {
    const limit = new AuthenticationLimit({ clock: new TestClock() });
    fail(limit, 10, 'a', '203.0.113.9');
    for (let count = 0; count < 25_000; count += 1) {
      if (count % 5000 === 0) limit.failed('b', '203.0.113.10');
      limit.failed('x', `10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`);
    }
    expect(limit.waitSeconds('a', '203.0.113.9')).toBe(0);
    fail(limit, 5, 'b', '203.0.113.10');
    expect(limit.waitSeconds('b', '203.0.113.10')).toBeGreaterThan(0);
  });
});
