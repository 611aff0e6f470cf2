// A leader that cannot work, and what one does first. The API server is a fake: no real one has an object without a name, or
// takes its time for one Secret.

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { freePort } from '../../free-port.ts';
import { until } from '../../until.ts';
import { endProcesses, GrantryProcess } from '../grantry-process.ts';

const NAMELESS = { metadata: { uid: 'u', resourceVersion: '1' } };

const isOfUsers = (name: string) => name === 'grantry-initial-user';

let folder: string;
let api: Server;
let signingKeys: readonly object[];
/** The names of what was made, in the order in which it was there. */
let made: string[];
/** Whether an object may be written, once that is known. */
let admits: (name: string) => Promise<boolean> | boolean;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'grantry-leading-'));
  [signingKeys, made, admits] = [[], [], () => true];
  api = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    const body = await text(request);
    if (searchParams.has('watch')) response.flushHeaders();
    else if (request.method !== 'GET') {
      const { metadata, ...object } = JSON.parse(body);
      const isAdmitted = await admits(metadata.name);
      if (isAdmitted && request.method === 'POST') made.push(metadata.name);
      response.writeHead(isAdmitted ? 200 : 403);
      response.end(JSON.stringify({ ...object, metadata: { ...metadata, uid: 'u', resourceVersion: '1' } }));
    } else if (pathname.includes('/leases/')) response.writeHead(404).end('{}');
    else {
      const items = pathname.endsWith('/signingkeys') ? signingKeys : [];
      response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items }));
    }
  });
  api.listen(0, '127.0.0.1');
  await once(api, 'listening');
});
afterEach(async () => {
  await endProcesses();
  api.closeAllConnections();
  api.close();
  rmSync(folder, { recursive: true });
});

async function startController(settings: Readonly<Record<string, string>> = {}): Promise<GrantryProcess> {
  const { port } = api.address() as AddressInfo;
  const entry = { name: 'test' };
  const kubeconfig = {
    'current-context': 'test',
    clusters: [{ ...entry, cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ ...entry, user: {} }],
    contexts: [{ ...entry, context: { cluster: 'test', user: 'test' } }],
  };
  writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(kubeconfig));
  return new GrantryProcess(['controller'], {
    environment: {
      KUBECONFIG: join(folder, 'kubeconfig'),
      GRANTRY_ISSUER: 'https://id.example',
      GRANTRY_NAMESPACE: 'grantry',
      GRANTRY_HOST: '127.0.0.1',
      GRANTRY_ADMIN_PORT: `${await freePort()}`,
      ...settings,
    },
  });
}

it('ends with 1 and says why, so that another one may lead', async () => {
  signingKeys = [NAMELESS];
  const controller = await startController();
  expect(await controller.ended()).toBe(1);
  expect(controller.output).toMatch(/"level":"fatal".*"msg":"leading failed"/);
});

it('makes no key before the Secrets of the install, which the next leader would take for lost', async () => {
  // Time enough for a key to be there first.
  admits = (name) => (name === 'grantry-pepper' ? sleep(1000, true) : true);
  await startController();
  await until('there is a key', () => made.includes('default'));
  const secrets = ['grantry-controller-proof', 'grantry-pepper', 'grantry-webhook'];
  const before = made.slice(0, made.indexOf('default'));
  expect(before.filter((name) => secrets.includes(name)).sort()).toEqual(secrets);
});

it('makes a key also where a Secret of the install cannot be made', async () => {
  admits = (name) => name !== 'grantry-pepper';
  await startController();
  await until('there is a key', () => made.includes('default'));
});

it.each([
  ['on', ['grantry-redis-dev']],
  ['off', []],
])('makes the password of redis.dev where GRANTRY_GENERATE_REDIS_PASSWORD is on: %s', async (setting, expected) => {
  await startController({ GRANTRY_GENERATE_REDIS_PASSWORD: setting });
  await until('there is a key', () => made.includes('default'));
  expect(made.filter((name) => name === 'grantry-redis-dev')).toEqual(expected);
});

it.each([
  ['is set', { GRANTRY_INITIAL_USER: 'ada' }, ['grantry-initial-user']],
  ['is set beside a users file', { GRANTRY_INITIAL_USER: 'ada', GRANTRY_USERS_FILE: '/users.yaml' }, []],
  ['is not set', {}, []],
])('makes a first user where GRANTRY_INITIAL_USER %s: %j', async (_, settings, expected) => {
  await startController({ ...settings });
  await until('there are keys', () => made.filter((name) => name.startsWith('default')).length >= 2);
  await until('there is as much as is expected', () => made.filter(isOfUsers).length >= expected.length);
  expect(made.filter(isOfUsers)).toEqual(expected);
});
