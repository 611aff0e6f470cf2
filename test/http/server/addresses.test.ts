// The address of a caller, and how often it may fail (docs/scope.md: C8, I4).

import { describe, expect, it } from 'vitest';
import { AuthenticationLimit } from '../../../src/http/protocol/authentication-limit.ts';
import { countedNetworks, TrustedProxies } from '../../../src/http/server/client-address.ts';
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
    ['of a closed socket is none', undefined, undefined, '0.0.0.0'],
    ['of a peer has no zone', 'fe80::1%eth0', undefined, 'fe80::1'],
    ['of an IPv4 peer on a dual-stack socket is its IPv4 address', '::ffff:203.0.113.9', undefined, '203.0.113.9'],
    ['behind an IPv4 proxy on a dual-stack socket is the forwarded one', '::ffff:10.1.2.3', '1.1.1.1', '1.1.1.1'],
    ['behind an IPv6 proxy is the forwarded one', 'fd00::1', '2001:db8::1', '2001:db8::1'],
    ['behind a proxy with a port is the one left of it', '10.1.2.3', '1.1.1.1, 10.9.9.9:443', '1.1.1.1'],
    ['behind a proxy in brackets is the one left of it', '10.1.2.3', '1.1.1.1, [fd00::2]:443', '1.1.1.1'],
  ])('%s', (_what, peer, forwardedFor, expected) => {
    expect(proxies.clientAddress(peer, forwardedFor)).toBe(expected);
  });

  it.each([
    // Ports, as Azure Application Gateway, AWS load balancers and IIS append them.
    ['198.51.100.1:4711', '198.51.100.1'],
    ['198.51.100.1:1', '198.51.100.1'],
    ['[2001:db8::1]:4711', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[::ffff:198.51.100.1]:4711', '198.51.100.1'],
    // A port without brackets looks like a group: the text is one address.
    ['2001:db8::1:4711', '2001:db8::1:4711'],
    // One address, one spelling.
    ['2001:DB8::A', '2001:db8::a'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
    ['::ffff:198.51.100.1', '198.51.100.1'],
    ['::FFFF:c633:6401', '198.51.100.1'],
    ['0:0:0:0:0:ffff:c633:6401', '198.51.100.1'],
    ['2001:db8::198.51.100.1', '2001:db8::c633:6401'],
    // Zones name an interface of the proxy.
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%25eth0]:4711', 'fe80::1'],
    // White space of the list.
    ['\t198.51.100.1 ', '198.51.100.1'],
  ])('forwarded as %j is %s', (forwarded, expected) => {
    expect(proxies.clientAddress('10.1.2.3', `203.0.113.77, ${forwarded}`)).toBe(expected);
  });

  it.each([
    ...['', ' ', 'garbage', 'unknown', '_hidden', 'localhost', 'example.com:443', '*'],
    ...[
      '198.51.100',
      '198.51.100.1.1',
      '198.51.100.256',
      '198.051.100.1',
      '3325256705',
      '0x7f.0.0.1',
      '198.51.100.1/32',
    ],
    ...['198.51.100.1:', '198.51.100.1:x', '198.51.100.1:123456', '198.51.100.1:1:1', '198.51.100.1 :1'],
    ...['198.51.100.1%eth0', '[198.51.100.1]', '[198.51.100.1]:4711'],
    ...['2001:db8::1::1', '2001:db8:1:2:3:4:5:6:4711', '12345::1', ':::', ':', '::g'],
    ...['[2001:db8::1', '2001:db8::1]', '[2001:db8::1]4711', '[2001:db8::1]:', '[]', '[]:4711', '[[::1]]'],
    ...['"198.51.100.1"', '"[2001:db8::1]:4711"', 'for=198.51.100.1', '198.51.100.1;198.51.100.2'],
    ...['fe80::1%', '%eth0', '198.51.100.1\u0000', '１９８.51.100.1'],
  ])('forwarded as %j is the proxy that forwarded it', (forwarded) => {
    expect(proxies.clientAddress('10.1.2.3', `203.0.113.77, ${forwarded}`)).toBe('10.1.2.3');
    expect(proxies.clientAddress('10.1.2.3', `203.0.113.77, ${forwarded}, 192.168.1.1`)).toBe('192.168.1.1');
  });

  it('is always the peer without trusted proxies', () => {
    expect(new TrustedProxies([]).clientAddress('127.0.0.1', '198.51.100.1')).toBe('127.0.0.1');
  });
});

describe('the networks that attempts count under', () => {
  it.each([
    ['2001:db8:1:2:3:4:5:6', ['2001:db8:1:2::/64', '2001:db8:1:0::/56', '2001:db8:1:0::/48']],
    ['2001:0DB8:0001:12f2::ffff', ['2001:db8:1:12f2::/64', '2001:db8:1:1200::/56', '2001:db8:1:0::/48']],
    ['2001:db8::1', ['2001:db8:0:0::/64', '2001:db8:0:0::/56', '2001:db8:0:0::/48']],
    ['::1', ['0:0:0:0::/64', '0:0:0:0::/56', '0:0:0:0::/48']],
    ['2001:db8:1:2:3:4:5::', ['2001:db8:1:2::/64', '2001:db8:1:0::/56', '2001:db8:1:0::/48']],
  ])('of %s are %j', (address, networks) => {
    expect(countedNetworks(address)).toEqual(networks.map((network, index) => ({ network, share: [1, 4, 16][index] })));
  });

  it('of an IPv4 address is the address alone', () => {
    expect(countedNetworks('203.0.113.9')).toEqual([{ network: '203.0.113.9', share: 1 }]);
  });
});

describe('the limit on failed authentication', () => {
  const ADDRESS = '203.0.113.9';

  /** The waits that so many failures are answered with. */
  function fail(limit: AuthenticationLimit, times: number, clientId: string | undefined, address = ADDRESS): number[] {
    return Array.from({ length: times }, () => limit.failed(clientId, address));
  }
  const none = (times: number) => Array<number>(times).fill(0);

  it.each([
    ['/56', 40, (number: number) => `2001:db8:1:${(number % 256).toString(16)}::1`],
    ['/48', 160, (number: number) => `2001:db8:1:${number.toString(16)}::1`],
  ])('of a client from all /64 of one %s → %i failures, then a wait', (_, most, address) => {
    const limit = new AuthenticationLimit({ clock: new TestClock() });
    const waits = Array.from({ length: 1000 }, (_, number) => limit.failed('a', address(number * 61)));
    expect(waits.filter((wait) => wait === 0)).toHaveLength(most);
    expect(limit.failed('a', ADDRESS)).toBe(0);
  });

  it('ten failures of a client from an address → no wait; the eleventh → the seconds to wait', () => {
    const clock = new TestClock();
    const limit = new AuthenticationLimit({ clock });
    expect(fail(limit, 11, 'a')).toEqual([...none(10), 6]);
    clock.advance(6000);
    expect(fail(limit, 2, 'a')).toEqual([0, 6]);
  });

  it('a minute after thirty failures → ten more, not thirty', () => {
    const clock = new TestClock();
    const limit = new AuthenticationLimit({ clock });
    fail(limit, 30, 'a');
    clock.advance(600_000);
    expect(fail(limit, 11, 'a')).toEqual([...none(10), 6]);
  });

  it('failures of a client at an address → no wait for another client, nor at another address', () => {
    const limit = new AuthenticationLimit({ clock: new TestClock() });
    fail(limit, 10, 'a');
    expect(fail(limit, 1, 'b')).toEqual([0]);
    expect(fail(limit, 1, 'a', '203.0.113.10')).toEqual([0]);
  });

  it('a hundred failures at an address, whatever client they name → a wait for every client there', () => {
    const limit = new AuthenticationLimit({ clock: new TestClock() });
    for (let count = 0; count < 50; count += 1) {
      fail(limit, 1, `c${count}`);
      fail(limit, 1, undefined);
    }
    expect([...fail(limit, 1, 'fresh'), ...fail(limit, 1, undefined)]).toEqual([1, 1]);
    expect(fail(limit, 1, 'fresh', '203.0.113.10')).toEqual([0]);
  });

  it('failures from the addresses of one /64 → one count', () => {
    const limit = new AuthenticationLimit({ clock: new TestClock() });
    for (let count = 0; count < 10; count += 1) limit.failed('a', `2001:db8::${count}`);
    expect(fail(limit, 1, 'a', '2001:db8::ffff')).toEqual([6]);
    expect(fail(limit, 1, 'a', '2001:db8:0:1::1')).toEqual([0]);
  });

  it('ids of 32 KiB that differ in their last character → a count for each', () => {
    const limit = new AuthenticationLimit({ clock: new TestClock() });
    const long = 'x'.repeat(32_767);
    expect(fail(limit, 11, `${long}a`).at(-1)).toBe(6);
    expect(fail(limit, 1, `${long}b`)).toEqual([0]);
  });

  it('failures of an address over its limit → not counted for the clients that they name', () => {
    const clock = new TestClock();
    const limit = new AuthenticationLimit({ clock });
    for (let count = 0; count < 100; count += 1) limit.failed(`c${count}`, ADDRESS);
    expect(fail(limit, 20, 'a')).toEqual(Array(20).fill(1));
    clock.advance(7000);
    expect(fail(limit, 11, 'a')).toEqual([...none(10), 6]);
  });

  it('30 000 ids from an address over its limit → no bucket of another address is evicted', () => {
    const limit = new AuthenticationLimit({ clock: new TestClock() });
    fail(limit, 10, 'a', '203.0.113.10');
    for (let count = 0; count < 30_000; count += 1) limit.failed(`c${count}`, ADDRESS);
    expect(fail(limit, 1, 'a', '203.0.113.10')).toEqual([6]);
  });

  it('a flood of addresses → the least recently counted is evicted, the latest ones stay', () => {
    const limit = new AuthenticationLimit({ clock: new TestClock() });
    fail(limit, 10, 'a');
    for (let count = 0; count < 25_000; count += 1) {
      if (count % 5000 === 0) limit.failed('b', '203.0.113.10');
      limit.failed('x', `10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`);
    }
    expect(fail(limit, 1, 'a')).toEqual([0]);
    expect(fail(limit, 6, 'b', '203.0.113.10')).toEqual([...none(5), 6]);
  });
});
