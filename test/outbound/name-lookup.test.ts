import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { nameLookup, systemLookup, UnknownNameError } from '../../src/outbound/name-lookup.ts';
import { countGetaddrinfo, type NameServer, NO_SUCH_NAME, SERVER_FAILURE, startNameServer } from './name-server.ts';

const V4 = [192, 0, 2, 1];
const V6 = [0x20, 1, 0xd, 0xb8, ...Array(11).fill(0), 1];

const folder = mkdtempSync(join(tmpdir(), 'grantry-hosts-'));
const hostsFile = join(folder, 'hosts');
let server: NameServer;
let getaddrinfo: ReturnType<typeof countGetaddrinfo>;

beforeEach(async () => {
  writeFileSync(hostsFile, '');
  server = await startNameServer();
  getaddrinfo = countGetaddrinfo();
});
afterEach(() => {
  expect(getaddrinfo.calls()).toBe(0);
  getaddrinfo.end();
  server.stop();
});
afterAll(() => rmSync(folder, { recursive: true }));

function lookup(host = 'keys.team.test', signal = AbortSignal.timeout(5000), file = hostsFile) {
  return nameLookup({ nameServers: [server.address], hostsFile: file })(host, signal);
}

async function codeOf(found: Promise<unknown>): Promise<unknown> {
  return await found.then(
    (addresses) => addresses,
    ({ code }) => code,
  );
}

it.each([
  ['both families', [V4], [V6], ['192.0.2.1', '2001:db8::1']],
  ['IPv4 alone', [V4], [], ['192.0.2.1']],
  ['IPv6 alone', [], [V6], ['2001:db8::1']],
  ['IPv4, the server fails for IPv6', [V4], SERVER_FAILURE, ['192.0.2.1']],
  ['IPv6, the server fails for IPv4', SERVER_FAILURE, [V6], ['2001:db8::1']],
  ['IPv4, the server is silent for IPv6', [V4], undefined, ['192.0.2.1']],
])('given a name with %s → its addresses, IPv4 first', async (_name, v4, v6, addresses) => {
  server.answer = (_host, type) => (type === 'A' ? v4 : v6);
  expect((await lookup()).map(({ address }) => address)).toEqual(addresses);
});

it.each([
  ['NXDOMAIN for both families', NO_SUCH_NAME, NO_SUCH_NAME, 'ENOTFOUND'],
  ['no address', [], [], 'ENODATA'],
  ['a failure of the server', SERVER_FAILURE, SERVER_FAILURE, 'ESERVFAIL'],
  ['NXDOMAIN and a failure', NO_SUCH_NAME, SERVER_FAILURE, 'ESERVFAIL'],
  ['a time-out and NXDOMAIN', undefined, NO_SUCH_NAME, 'ETIMEOUT'],
])('given %s → that code, and getaddrinfo is not called', async (_name, v4, v6, code) => {
  server.answer = (_host, type) => (type === 'A' ? v4 : v6);
  expect(await codeOf(lookup())).toBe(code);
});

it('given a search domain → the name is asked as it is, once for each family', async () => {
  process.env.LOCALDOMAIN = 'search.test';
  try {
    await expect(lookup('keys.team')).rejects.toBeInstanceOf(UnknownNameError);
  } finally {
    delete process.env.LOCALDOMAIN;
  }
  expect([...server.questions].sort()).toEqual(['keys.team A', 'keys.team AAAA']);
});

it('given a short name → an error that names the remedy, and no question', async () => {
  await expect(lookup('keys')).rejects.toThrow(
    'search domains do not apply: a Service is NAME.NAMESPACE.svc.cluster.local',
  );
  expect(server.questions).toEqual([]);
});

it('given a name server that never answers → the signal ends the lookup', async () => {
  server.answer = () => undefined;
  const stop = new AbortController();
  const found = lookup('keys.team.test', stop.signal);
  stop.abort();
  expect(await codeOf(found)).toBe('ECANCELLED');
  expect(await codeOf(lookup('keys.team.test', stop.signal))).toBe(20);
});

it.each([
  ['127.0.0.1', { address: '127.0.0.1', family: 4 }],
  ['[::1]', { address: '::1', family: 6 }],
])('given the address %s → itself, and no question', async (host, address) => {
  expect(await lookup(host)).toEqual([address]);
  expect(server.questions).toEqual([]);
});

it('given names of the hosts file → their addresses in its order, and no question', async () => {
  writeFileSync(
    hostsFile,
    [
      '# keys.team.test 192.0.2.66',
      '192.0.2.66 other.test # keys.team.test',
      '192.0.2.66 xkeys.team.test keys.team.test.other',
      '\t2001:db8::7\t  Keys.Team.Test  short',
      'nonsense keys.team.test',
      '192.0.2.7 keys keys.team.test\r',
    ].join('\n'),
  );
  const addresses = [
    { address: '2001:db8::7', family: 6 },
    { address: '192.0.2.7', family: 4 },
  ];
  expect(await lookup()).toEqual(addresses);
  expect(await lookup('short')).toEqual(addresses.slice(0, 1));
  expect(server.questions).toEqual([]);
});

it('given a change of the hosts file → it counts at the next lookup', async () => {
  server.answer = (_host, type) => (type === 'A' ? [V4] : []);
  expect(await lookup()).toEqual([{ address: '192.0.2.1', family: 4 }]);
  writeFileSync(hostsFile, '192.0.2.7 keys.team.test\n');
  expect(await lookup()).toEqual([{ address: '192.0.2.7', family: 4 }]);
  writeFileSync(hostsFile, '192.0.2.8 keys.team.test\n');
  expect(await lookup()).toEqual([{ address: '192.0.2.8', family: 4 }]);
  writeFileSync(hostsFile, '');
  expect(await lookup()).toEqual([{ address: '192.0.2.1', family: 4 }]);
});

it('given no hosts file → the name servers; given one that cannot be read → its error', async () => {
  server.answer = (_host, type) => (type === 'A' ? [V4] : []);
  const at = (file: string) => lookup('keys.team.test', AbortSignal.timeout(5000), file);
  expect(await at(join(folder, 'absent'))).toEqual([{ address: '192.0.2.1', family: 4 }]);
  expect(await codeOf(at(folder))).toBe('EISDIR');
});

it('given the hosts file of the machine → localhost is found without a question', async () => {
  const found = await nameLookup({ nameServers: [server.address] })('localhost', AbortSignal.timeout(5000));
  expect(found).toContainEqual({ address: '127.0.0.1', family: 4 });
  expect(server.questions).toEqual([]);
});

it('given the lookup of the system → an address is itself, without a call', async () => {
  const { signal } = new AbortController();
  expect(await systemLookup('[::1]', signal)).toEqual([{ address: '::1', family: 6 }]);
});
