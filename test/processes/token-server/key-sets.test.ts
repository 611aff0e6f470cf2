// The key sets of a token server as its configuration has them: networks, authorities, metric and log.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Metrics } from '../../../src/http/metrics/metrics.ts';
import { type AddressLookup, nameLookup } from '../../../src/outbound/name-lookup.ts';
import type { FetchSettings } from '../../../src/processes/config/fetch-config.ts';
import { StartError } from '../../../src/processes/config/start-error.ts';
import { createLog } from '../../../src/processes/log/log.ts';
import { assembleKeySets } from '../../../src/processes/token-server/key-sets.ts';
import { TestClock } from '../../grantry.ts';
import { json, type KeyHost, publicJwk, startKeyHost } from '../../outbound/key-host.ts';

const OWNER = { uid: 'uid-of-a', namespace: 'shop' };

let host: KeyHost;
let folder: string;
let metrics: Metrics;
let clock: TestClock;
let lines: Readonly<Record<string, unknown>>[];

beforeAll(async () => {
  host = await startKeyHost();
  folder = mkdtempSync(join(tmpdir(), 'grantry-authorities-'));
});
afterAll(() => {
  host.stop();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  host.answer = json({ keys: [publicJwk('one')] });
  metrics = new Metrics({ clients: () => 0, logDropped: () => 0, processMetrics: false });
  clock = new TestClock();
  lines = [];
});

function keySetsOf(settings: Partial<FetchSettings>, lookup?: AddressLookup) {
  const log = createLog('info', { write: (line) => void lines.push(JSON.parse(line)) });
  return assembleKeySets({ settings: { networks: [], caFile: undefined, ...settings }, lookup, clock, metrics, log });
}

function fileOf(text: string, name = 'ca.crt'): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

/** An address of this machine, by its name. */
function here(): string {
  return `https://localhost:${host.port}/jwks.json`;
}

const LOOPBACK = ['127.0.0.0/8', '::1'];

describe('the networks and authorities of the configuration', () => {
  it('given both → the keys; without the authority or without the network → 503', async () => {
    const caFile = fileOf(`a comment\n${host.authority}`);
    const keys = await keySetsOf({ networks: LOOPBACK, caFile }).keysAt(OWNER, here(), 'one');
    expect(keys.map(({ kid }) => kid)).toEqual(['one']);
    await expect(keySetsOf({ networks: LOOPBACK }).keysAt(OWNER, here(), 'one')).rejects.toMatchObject({
      reason: 'client_jwks_unavailable',
      detail: 'tls_failed',
    });
    await expect(keySetsOf({ caFile }).keysAt(OWNER, here(), 'one')).rejects.toMatchObject({
      reason: 'client_jwks_unavailable',
      detail: 'address_refused',
    });
    expect(await metrics.text()).toContain('grantry_key_set_fetches_total{outcome="fetched"} 1');
    expect(await metrics.text()).toContain('grantry_key_set_fetches_total{outcome="tls_failed"} 1');
    expect(await metrics.text()).toContain('grantry_key_set_fetches_total{outcome="address_refused"} 1');
  });

  it.each([
    ['no file', () => join(folder, 'absent.crt')],
    ['an empty file', () => fileOf('')],
    ['a file of a key', () => fileOf('-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n')],
    ['a broken certificate', () => fileOf(`${host.authority}${host.authority.replace('MII', 'MIJ')}`)],
  ])('given %s as authorities → the process does not start', (_name, caFile) => {
    const thrown = (() => {
      try {
        return keySetsOf({ caFile: caFile() });
      } catch (error) {
        return error;
      }
    })();
    expect(thrown).toBeInstanceOf(StartError);
    expect((thrown as StartError).code).toBe(2);
    expect((thrown as StartError).message).toContain('GRANTRY_FETCH_CA_FILE');
  });
});

describe('a name of the hosts file', () => {
  const named = (address: string) =>
    nameLookup({ nameServers: ['127.0.0.1:1'], hostsFile: fileOf(`${address} keys.keys.test keys\n`, 'hosts') });
  const uri = (name = 'keys.keys.test') => `https://${name}:${host.port}/jwks.json`;

  it('given the address of a host → its keys', async () => {
    const keySets = keySetsOf({ networks: LOOPBACK, caFile: fileOf(host.authority) }, named('127.0.0.1'));
    const keys = await keySets.keysAt(OWNER, uri(), 'one');
    expect(keys.map(({ kid }) => kid)).toEqual(['one']);
  });

  it('given an address that may not be reached → 503, and a line that names the remedy', async () => {
    const keySets = keySetsOf({ networks: LOOPBACK }, named('169.254.169.254'));
    await expect(keySets.keysAt(OWNER, uri(), 'one')).rejects.toMatchObject({ detail: 'address_refused' });
    const detail = expect.stringContaining('GRANTRY_FETCH_NETWORKS');
    expect(lines).toMatchObject([{ level: 'warn', outcome: 'address_refused', detail }]);
  });

  it('given a short name that it lacks → 503, and a line that names the remedy', async () => {
    const keySets = keySetsOf({ networks: LOOPBACK }, named('127.0.0.1'));
    await expect(keySets.keysAt(OWNER, uri('reports'), 'one')).rejects.toMatchObject({ detail: 'name_unresolved' });
    const detail = expect.stringContaining('NAME.NAMESPACE.svc.cluster.local');
    expect(lines).toMatchObject([{ outcome: 'name_unresolved', cause: 'ENOTFOUND', detail }]);
  });

  it('given name servers that cannot be reached → 503, and a line without a remedy', async () => {
    const keySets = keySetsOf({ networks: LOOPBACK }, named('127.0.0.1'));
    await expect(keySets.keysAt(OWNER, uri('reports.keys.test'), 'one')).rejects.toMatchObject({
      detail: 'name_unresolved',
    });
    expect(lines).toMatchObject([{ outcome: 'name_unresolved', cause: 'ECONNREFUSED' }]);
    expect(lines[0]).not.toHaveProperty('detail');
  });
});

describe('the log', () => {
  it('given failures and a recovery → a line for the first failure and for the recovery, without the path', async () => {
    const keySets = keySetsOf({ networks: LOOPBACK, caFile: fileOf(host.authority) });
    const uri = `${here()}?secret`;
    host.answer = (_request, response) => void response.destroy();
    for (let tries = 0; tries < 2; tries++) {
      await expect(keySets.keysAt(OWNER, uri, 'one')).rejects.toMatchObject({ detail: 'connection_failed' });
      clock.advance(5000);
    }
    host.answer = json({ keys: [publicJwk('one')] });
    await keySets.keysAt(OWNER, uri, 'one');
    const at = `localhost:${host.port}`;
    expect(lines).toEqual([
      expect.objectContaining({ level: 'warn', host: at, outcome: 'connection_failed', cause: 'ECONNRESET' }),
      expect.objectContaining({ level: 'info', host: at }),
    ]);
    expect(JSON.stringify(lines)).not.toContain('secret');
  });
});
