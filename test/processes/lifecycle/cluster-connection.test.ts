// How the processes of a cluster present themselves to its API server.

import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { CONFIG_MAPS } from '../../../src/kubernetes/objects/resources.ts';
import { connectCluster } from '../../../src/processes/lifecycle/cluster-connection.ts';

it('the API server sees which version of grantry asks, in calls and watches', async () => {
  const seen: unknown[] = [];
  const api = createServer((request, response) => {
    seen.push(request.headers['user-agent']);
    response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items: [] }));
  });
  api.listen(0, '127.0.0.1');
  await once(api, 'listening');
  const folder = mkdtempSync(join(tmpdir(), 'grantry-cluster-connection-'));
  onTestFinished(() => {
    api.closeAllConnections();
    api.close();
    rmSync(folder, { recursive: true });
  });
  const name = 'test';
  const kubeconfig = {
    'current-context': name,
    clusters: [{ name, cluster: { server: `http://127.0.0.1:${(api.address() as AddressInfo).port}` } }],
    users: [{ name, user: {} }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  };
  const file = join(folder, 'kubeconfig');
  writeFileSync(file, JSON.stringify(kubeconfig));

  const client = await connectCluster({ kind: 'kubeconfig', files: [file] });
  onTestFinished(() => client.close());
  await client.list(CONFIG_MAPS);
  const { signal } = new AbortController();
  await client.watch(CONFIG_MAPS, { resourceVersion: '1', timeoutSeconds: 60, signal });
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));
  expect(version).toMatch(/^\d+\.\d+\.\d+/);
  expect(seen).toEqual([`grantry/${version}`, `grantry/${version}`]);
});
