import { describe, expect, it } from 'vitest';
import { ReachableAddresses } from '../../src/outbound/reachable-addresses.ts';

describe('without networks of the operator', () => {
  const reachable = new ReachableAddresses([]);

  it.each(['1.1.1.1', '93.184.215.14', '2606:4700::1111', '::ffff:1.1.1.1'])(
    'given the public %s → reachable',
    (it) => {
      expect(reachable.includes(it)).toBe(true);
    },
  );

  it.each([
    ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '100.64.0.1', '127.0.0.1', '127.255.0.1', '169.254.169.254', '172.16.0.1'],
    ...['172.31.255.255', '192.0.0.1', '192.0.2.1', '192.88.99.1', '192.168.0.1', '198.18.0.1', '198.51.100.1'],
    ...['203.0.113.1', '224.0.0.1', '240.0.0.1', '255.255.255.255'],
    ...['::', '::1', 'fe80::1', 'fe80::1%eth0', 'fc00::1', 'fd00:ec2::254', 'fec0::1', 'ff02::1', '100::1'],
    ...['2001:db8::1', '4000::1', '5f00::1'],
    // Of IPv4 in IPv6: mapped, compatible, translated (NAT64 twice, SIIT), 6to4, Teredo.
    ...['::ffff:127.0.0.1', '::ffff:a9fe:a9fe', '::127.0.0.1', '64:ff9b::7f00:1', '64:ff9b::1.1.1.1'],
    ...['64:ff9b:1::1', '::ffff:0:127.0.0.1', '2002:7f00:1::', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
    ...['', 'localhost', '1.1.1.1.1'],
  ])('given %s → not reachable', (address) => {
    expect(reachable.includes(address)).toBe(false);
  });
});

describe('with networks of the operator', () => {
  const reachable = new ReachableAddresses(['10.96.0.0/12', '192.168.7.9', 'fd00:10::/32']);

  it.each([
    ['10.96.0.1', true],
    ['10.111.255.255', true],
    ['::ffff:10.96.0.1', true],
    ['10.112.0.0', false],
    ['192.168.7.9', true],
    ['192.168.7.8', false],
    ['fd00:10::5', true],
    ['fd00:11::5', false],
    ['1.1.1.1', true],
  ])('given %s → reachable: %s', (address, expected) => {
    expect(reachable.includes(address)).toBe(expected);
  });
});
