// A leader that cannot work. The API server is a fake: no real one has an object without a name.

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { freePort } from '../free-port.ts';
import { endProcesses, GrantryProcess } from './grantry-process.ts';

const NAMELESS = { metadata: { uid: 'u', resourceVersion: '1' } };

let folder: string;
let api: Server;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'grantry-leading-'));
  api = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    const body = await text(request);
    if (searchParams.has('watch')) response.flushHeaders();
    else if (request.method !== 'GET') {
      const { metadata, ...object } = JSON.parse(body);
      response.end(JSON.stringify({ ...object, metadata: { ...metadata, uid: 'u', resourceVersion: '1' } }));
    } else if (pathname.includes('/leases/')) response.writeHead(404).end('{}');
    else {
      const items = pathname.endsWith('/signingkeys') ? [NAMELESS] : [];
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

it('ends with 1 and says why, so that another one may lead', async () => {
  const { port } = api.address() as AddressInfo;
  const entry = { name: 'test' };
  const kubeconfig = {
    'current-context': 'test',
    clusters: [{ ...entry, cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ ...entry, user: {} }],
    contexts: [{ ...entry, context: { cluster: 'test', user: 'test' } }],
  };
  writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(kubeconfig));
  const controller = new GrantryProcess(['controller'], {
    environment: {
      ...{ KUBECONFIG: join(folder, 'kubeconfig'), GRANTRY_ISSUER: 'https://id.example', GRANTRY_NAMESPACE: 'grantry' },
      ...{ GRANTRY_HOST: '127.0.0.1', GRANTRY_ADMIN_PORT: `${await freePort()}` },
    },
  });
  expect(await controller.ended()).toBe(1);
  expect(controller.output).toMatch(/"level":"fatal".*"msg":"leading failed"/);
});
