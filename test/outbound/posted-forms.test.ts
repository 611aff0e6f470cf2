// Forms that are posted to addresses which tenants chose: what a hostile one chooses is not reached, and takes no other tenant's turn.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { GuardedFetch, type GuardedFetchOptions } from '../../src/outbound/guarded-fetch.ts';
import type { AddressLookup } from '../../src/outbound/name-lookup.ts';
import { ReachableAddresses } from '../../src/outbound/reachable-addresses.ts';
import { until } from '../until.ts';
import { type KeyHost, startKeyHost, toLoopback } from './key-host.ts';

const LIMIT = 400;
const FORM = new URLSearchParams({ logout_token: 'a.b.c' });

let host: KeyHost;
beforeAll(async () => {
  host = await startKeyHost();
});
afterAll(() => host.stop());
beforeEach(() => {
  host.answer = (_request, response) => void response.writeHead(204).end();
});

const LOOPBACK = new ReachableAddresses(['127.0.0.0/8']);

/** @returns the status, or the fault */
async function posted(address: string, options: Partial<GuardedFetchOptions> = {}): Promise<number | string> {
  const fetch = new GuardedFetch({ reachable: LOOPBACK, authorities: host.authority, lookup: toLoopback, ...options });
  return await fetch.post(address, FORM, 'a tenant').catch(({ fault }) => fault);
}

describe('a form to where a cluster is managed', () => {
  it.each([
    ['kubernetes.default.svc', '10.96.0.1'],
    ['kubernetes.default.svc.cluster.local', 'fd00:10:96::1'],
    ['metadata.google.internal', '169.254.169.254'],
    ['instance-data.ec2.internal', 'fd00:ec2::254'],
    ['node.tenant.example', '::ffff:169.254.169.254'],
  ])('by the name %s → address_refused', async (name, address) => {
    const lookup: AddressLookup = async () => [
      { address: '93.184.215.14', family: 4 },
      { address, family: 4 },
    ];
    expect(await posted(`https://${name}/`, { lookup, reachable: new ReachableAddresses([]) })).toBe('address_refused');
  });

  it.each([
    ...['https://10.96.0.1/', 'https://169.254.169.254/latest/meta-data', 'https://2852039166/', 'https://0xa9fea9fe/'],
    ...['https://[fd00:ec2::254]/', 'https://[::ffff:a9fe:a9fe]/', 'https://127.0.0.1/', 'https://tenant@a.example/'],
    ...[
      'http://169.254.169.254/',
      'http://kubernetes.default.svc/',
      'http://localhost.tenant.example/',
      'ftp://a.example/',
    ],
  ])('at %s → address_refused, whatever networks the operator opens, and no name is looked up', async (address) => {
    let lookups = 0;
    const lookup: AddressLookup = (name, signal) => {
      lookups += 1;
      return toLoopback(name, signal);
    };
    const reachable = new ReachableAddresses(['0.0.0.0/0', '::/0']);
    expect(await posted(address, { lookup, reachable })).toBe('address_refused');
    expect(lookups).toBe(0);
  });
});

it('a form to a name that resolves to loopback at the second query → resolved once, and only that address is called', async () => {
  const answers = ['127.0.0.1', '127.0.0.2'];
  const names: string[] = [];
  const lookup: AddressLookup = async (name) => {
    names.push(name);
    return [{ address: answers[names.length - 1] ?? '', family: 4 }];
  };
  const reachable = new ReachableAddresses(['127.0.0.1']);
  expect(await posted(host.uri(), { lookup, reachable })).toBe(204);
  expect(await posted(host.uri(), { lookup, reachable })).toBe('address_refused');
  expect(names).toHaveLength(2);
});

it('a form to a host that redirects → its status, and it is not followed', async () => {
  const before = host.requests.length;
  host.answer = (_request, response) => void response.writeHead(307, { location: host.uri('b') }).end();
  expect(await posted(host.uri())).toBe(307);
  expect(host.requests).toHaveLength(before + 1);
});

it('a form to a host whose answer never ends → its status, and the connection is closed', async () => {
  host.answer = (_request, response) => void response.writeHead(200).write('x');
  expect(await posted(host.uri())).toBe(200);
  await until('the connection is closed', async () => (await host.connections()) === 0);
});

it('a form to a host that says nothing, or its headers byte by byte → timeout', async () => {
  host.answer = () => {};
  expect(await posted(host.uri(), { limit: LIMIT })).toBe('timeout');
  host.answer = (_request, response) => {
    const timer = setInterval(() => response.socket?.write('H'), LIMIT / 10);
    response.once('close', () => clearInterval(timer));
  };
  expect(await posted(host.uri(), { limit: LIMIT })).toMatch(/^(?:timeout|connection_failed)$/);
  await until('the connections are closed', async () => (await host.connections()) === 0);
});

it('forms of a tenant to a path that does not answer → those of another tenant to the same host are posted meanwhile', async () => {
  const held: (() => void)[] = [];
  const accept = host.answer;
  host.answer = (request, response) => {
    if (request.url === '/slow') held.push(() => accept(request, response));
    else accept(request, response);
  };
  const fetch = new GuardedFetch({ reachable: LOOPBACK, authorities: host.authority, lookup: toLoopback });
  const before = host.requests.length;
  const slow = Array.from({ length: 10 }, () => fetch.post(host.uri('apps', 'slow'), FORM, 'hostile'));
  await until('the tenant has its share', () => held.length === 2);
  expect(await fetch.post(host.uri('apps', 'quick'), FORM, 'another')).toBe(204);
  expect(host.requests).toHaveLength(before + 3);
  host.answer = accept;
  for (const answer of held) answer();
  expect(new Set(await Promise.all(slow))).toEqual(new Set([204]));
});
