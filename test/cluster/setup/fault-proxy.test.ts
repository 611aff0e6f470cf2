// The faults that the reflector's tests inject are faults: each is seen by a plain client.

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { FaultProxy, listOf, watchOf } from './fault-proxy.ts';
import { sharedCluster } from './shared-cluster.ts';

describe('the fault proxy', () => {
  const cluster = sharedCluster();
  let proxy: FaultProxy;
  let path: string;

  beforeEach(async () => {
    proxy = await FaultProxy.start(cluster.address);
    path = `/api/v1/namespaces/${await cluster.namespace()}/configmaps`;
  });

  afterEach(async () => {
    await proxy.stop();
  });

  async function get(query = ''): Promise<IncomingMessage> {
    const headers = { authorization: `Bearer ${cluster.address.adminToken}` };
    const asked = request(`${proxy.url}${path}${query}`, { ca: cluster.ca, headers, agent: false }).end();
    asked.on('error', () => {});
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    return response.on('error', () => {});
  }

  /** A watch, and what it said so far. */
  async function watch() {
    const response = await get('?watch=1');
    const seen = { text: '', hasBroken: false };
    response.setEncoding('utf8').on('data', (chunk) => {
      seen.text += chunk;
    });
    response.on('error', () => {
      seen.hasBroken = true;
    });
    return seen;
  }

  async function createConfigMap(name: string): Promise<void> {
    const { status } = await cluster.call('POST', path, {
      body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } },
    });
    expect(status).toBe(201);
  }

  it('stops although something is stalled', async () => {
    const stalled = await FaultProxy.start(cluster.address);
    stalled.stall();
    const asked = request(`${stalled.url}${path}`, { ca: cluster.ca, agent: false }).end();
    const ended = once(asked, 'error');
    await until('it was asked', () => stalled.requests.length === 1);
    await stalled.stop();
    await ended;
  });

  it('passes on what it is not set to spoil, and remembers what was asked', async () => {
    expect((await get()).statusCode).toBe(200);
    const watching = await watch();
    await createConfigMap('first');
    await until('the watch delivers it', () => watching.text.includes('"first"'));
    expect([proxy.count(listOf('configmaps')), proxy.count(watchOf('configmaps'))]).toEqual([1, 1]);
  });

  it('answers in place of the API server, as often as it is set to', async () => {
    proxy.answer(listOf('configmaps'), { status: 410, reason: 'Expired', times: 2 });
    const statuses = [(await get()).statusCode, (await get()).statusCode, (await get()).statusCode];
    expect(statuses).toEqual([410, 410, 200]);
  });

  it('stalls a watch that is open, and lets flow on what it held back', async () => {
    const watching = await watch();
    proxy.stall(watchOf('configmaps'));
    await createConfigMap('held');
    expect((await get()).statusCode).toBe(200);
    await sleep(200);
    expect(watching).toMatchObject({ text: expect.not.stringContaining('"held"'), hasBroken: false });
    proxy.clear();
    await until('the watch delivers it', () => watching.text.includes('"held"'));
  });

  it('stalls a request that comes later', async () => {
    proxy.stall(listOf('configmaps'));
    let answered = false;
    const asked = get().then(() => {
      answered = true;
    });
    await until('it was asked', () => proxy.requests.length === 1);
    await sleep(100);
    expect(answered).toBe(false);
    proxy.clear();
    await asked;
  });

  it('writes into an open watch', async () => {
    const watching = await watch();
    await createConfigMap('first');
    await until('the watch delivers it', () => watching.text.includes('"first"'));
    expect(proxy.write(watchOf('configmaps'), '{"type":"ERROR"')).toBe(1);
    await until('it is there', () => watching.text.endsWith('{"type":"ERROR"'));
  });

  it('cuts a watch, and refuses new connections until it is cleared', async () => {
    const watching = await watch();
    proxy.cut(watchOf('configmaps'));
    await until('the watch breaks', () => watching.hasBroken);
    proxy.refuse();
    await expect(get()).rejects.toThrow();
    proxy.clear();
    expect((await get()).statusCode).toBe(200);
  });
});
