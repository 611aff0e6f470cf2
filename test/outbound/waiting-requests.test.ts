// Requests that wait for a key set: how many may at once, and what the others hold of the process.

import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { KeySetOwner } from '../../src/oauth/ports/key-sets.ts';
import { GuardedFetch } from '../../src/outbound/guarded-fetch.ts';
import { PublishedKeySets } from '../../src/outbound/key-sets.ts';
import { ReachableAddresses } from '../../src/outbound/reachable-addresses.ts';
import { TestClock } from '../grantry.ts';
import { folderOfTest, machineClient } from '../manifests/a-folder.ts';
import { asserted, assertionOf } from '../oauth/client-auth/client-assertions.ts';
import { aKey } from '../oauth/values/signed-tokens.ts';
import { endProcesses, startDev } from '../processes/grantry-process.ts';
import { until } from '../until.ts';
import { type Answer, json, type KeyHost, publicJwk, startKeyHost, toLoopback } from './key-host.ts';

let host: KeyHost;
beforeAll(async () => {
  host = await startKeyHost();
});
afterAll(() => host.stop());
afterEach(endProcesses);

/** Changes the protocol, which no client of HTTP asked for. */
const SWITCHING: Answer = (_request, response) => {
  response.writeHead(101, { connection: 'upgrade', upgrade: 'websocket' }).end();
};

describe('requests that wait for a key set', () => {
  let keySets: PublishedKeySets;
  let clock: TestClock;
  let release: () => void;
  beforeEach(() => {
    const held = Promise.withResolvers<void>();
    release = held.resolve;
    host.answer = (asked, response) => {
      void held.promise.then(() => json({ keys: [publicJwk('one')] })(asked, response));
    };
    clock = new TestClock();
    const reachable = new ReachableAddresses(['127.0.0.0/8']);
    const fetch = new GuardedFetch({ reachable, authorities: host.authority, lookup: toLoopback, limit: 60_000 });
    keySets = new PublishedKeySets({ fetch, clock, onFetch: () => {} });
  });

  /** What became of requests of a client, each of which has a set of its own name. */
  const asked = (owner: KeySetOwner, count: number) =>
    Array.from({ length: count }, () =>
      keySets.keysAt(owner, host.uri(owner.uid), 'one').then(
        () => 'answered',
        ({ code, reason, detail, retryAfterSeconds }) => ({ code, reason, detail, retryAfterSeconds }),
      ),
    );
  const limited = (detail: string) => ({
    code: 'temporarily_unavailable',
    reason: 'client_jwks_limited',
    detail,
    retryAfterSeconds: 2,
  });

  it('given 64 of a client → the next is refused, one of another client waits; later as many again', async () => {
    for (let round = 0; round < 2; round++) {
      const waiting = asked({ uid: 'a', namespace: 'shop' }, 64);
      expect(await Promise.all(asked({ uid: 'a', namespace: 'shop' }, 2))).toEqual(Array(2).fill(limited('client')));
      const other = asked({ uid: 'b', namespace: 'shop' }, 1);
      release();
      expect(new Set(await Promise.all([...waiting, ...other]))).toEqual(new Set(['answered']));
      // Two hours later there is no set that may be used.
      clock.advance(7_200_001);
    }
  });

  it('given 256 of a namespace → the next client of it is refused, one of another namespace waits', async () => {
    const uids = ['a', 'b', 'c', 'd'];
    const waiting = uids.flatMap((uid) => asked({ uid, namespace: 'shop' }, 64));
    expect(await Promise.all(asked({ uid: 'e', namespace: 'shop' }, 1))).toEqual([limited('namespace')]);
    const other = asked({ uid: 'f', namespace: 'bank' }, 64);
    release();
    expect(new Set(await Promise.all([...waiting, ...other]))).toEqual(new Set(['answered']));
    expect(await Promise.all(asked({ uid: 'e', namespace: 'shop' }, 1))).toEqual(['answered']);
  });

  it('given a set that may be used → a thousand requests at once wait for nothing', async () => {
    release();
    await Promise.all(asked({ uid: 'a', namespace: 'shop' }, 1));
    expect(new Set(await Promise.all(asked({ uid: 'a', namespace: 'shop' }, 1000)))).toEqual(new Set(['answered']));
  });

  it('given fetches that fail → as many may wait again', async () => {
    host.answer = SWITCHING;
    for (let round = 0; round < 2; round++) {
      const failed = await Promise.all(asked({ uid: 'a', namespace: 'shop' }, 64));
      expect(new Set(failed.map((each) => (typeof each === 'string' ? each : each.reason)))).toEqual(
        new Set(['client_jwks_unavailable']),
      );
      clock.advance(5000);
    }
  });
});

/** Enough for the server, and a third of what 2 000 requests hold that wait. */
const HEAP = '--max-old-space-size=192';
const KEY = aKey('ES256');

/** `grantry dev` with a client whose keys are at the host, and requests to its token endpoint that name the client. */
async function devWithKeysAtHost() {
  const folder = await folderOfTest({
    'policy.yaml':
      'apiVersion: grantry.dev/v1alpha1\nkind: ClientPolicy\nmetadata: {name: keys}\nspec:\n' +
      '  namespaceSelector: {}\n' +
      '  allow: {grantTypes: [client_credentials], authMethods: [private_key_jwt], jwksHosts: [localhost]}\n',
    'job.yaml': machineClient(
      'job',
      `  auth: {method: private_key_jwt, privateKeyJwt: {jwksUri: 'https://localhost:${host.port}/keys'}}\n`,
    ),
  });
  const caFile = join(folder, 'ca.crt');
  writeFileSync(caFile, host.authority);
  const environment = { GRANTRY_FETCH_CA_FILE: caFile };
  const { grantry, issuer } = await startDev(folder, [], { environment, program: [HEAP, 'src/main.ts'] });
  const party = { clientId: 'default.job', issuer, now: Date.now() };
  const form = { grant_type: 'client_credentials', ...asserted(await assertionOf(KEY, party)) };
  const agent = new Agent({ keepAlive: true, maxSockets: 500 });
  /** The status of a request with a body of this size. */
  const post = (bytes: number) => {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const body = `${new URLSearchParams(form)}&scope=`.padEnd(bytes, 'x');
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    request(`${issuer}/token`, { method: 'POST', agent, headers })
      .once('response', (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
      .once('error', reject)
      .end(body);
    return promise;
  };
  return { grantry, issuer, post };
}

it('2 000 requests with 60 KiB that name a client whose host changes the protocol → 503 each, in a small heap', {
  timeout: 180_000,
}, async () => {
  host.answer = SWITCHING;
  const { grantry, post, issuer } = await devWithKeysAtHost();
  const statuses = await Promise.all(Array.from({ length: 2000 }, () => post(60 * 1024)));
  expect(new Set(statuses)).toEqual(new Set([503]));
  expect((await fetch(`${issuer}/.well-known/jwks.json`)).status).toBe(200);
  expect(await grantry.end()).toBe(0);
});

it('SIGTERM while requests wait for a key set → each is answered, and the process ends by itself', async () => {
  host.answer = () => {};
  const { grantry, post } = await devWithKeysAtHost();
  let answered = 0;
  const statuses = Array.from({ length: 70 }, () => post(60 * 1024).finally(() => answered++));
  await until('more than may wait are there', () => answered >= 6);
  expect(await grantry.end()).toBe(0);
  expect(new Set(await Promise.all(statuses))).toEqual(new Set([503]));
});
