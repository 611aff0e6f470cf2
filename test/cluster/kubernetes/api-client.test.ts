// The client against a real API server: each call, each answer in words, who may what, and what reaches the process.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiClient } from '../../../src/kubernetes/api/api-client.ts';
import { inClusterAccess } from '../../../src/kubernetes/api/cluster-access.ts';
import { kubeconfigAccess } from '../../../src/kubernetes/api/kubeconfig.ts';
import {
  CONFIG_MAPS,
  EVENTS,
  LEASES,
  NAMESPACES,
  OAUTH_CLIENTS,
  type Resource,
  SECRETS,
} from '../../../src/kubernetes/objects/resources.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const clock = { now: () => Date.now() };
const folder = mkdtempSync(join(tmpdir(), 'grantry-api-client-'));
const clients: ApiClient[] = [];

afterAll(() => {
  for (const client of clients) client.close();
  rmSync(folder, { recursive: true });
});

function client(access: Parameters<typeof inClusterAccess>[0] | { readonly kubeconfig: string }): ApiClient {
  const made = new ApiClient({
    access: 'host' in access ? inClusterAccess(access) : kubeconfigAccess({ files: [access.kubeconfig], clock }),
    userAgent: 'grantry/test',
  });
  clients.push(made);
  return made;
}

describe('a client of the API server', () => {
  const cluster = sharedCluster();
  let admin: ApiClient;
  let namespace: string;

  beforeAll(async () => {
    admin = client({ kubeconfig: cluster.adminKubeconfig });
    namespace = await cluster.namespace();
  });

  const configMap = (name: string, data: Record<string, string> = { a: '1' }) => ({
    metadata: { namespace, name },
    data,
  });

  it('creates what is not there, and says so when it is', async () => {
    const made = await admin.create(CONFIG_MAPS, configMap('created'));
    expect(made).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { a: '1' } });
    expect(await admin.get(CONFIG_MAPS, { namespace, name: 'created' })).toEqual(made);
    await expect(admin.create(CONFIG_MAPS, configMap('created'))).rejects.toMatchObject({
      status: 409,
      reason: 'AlreadyExists',
      verb: 'create',
      resource: CONFIG_MAPS,
      namespace,
    });
  });

  it('gets nothing where nothing is', async () => {
    expect(await admin.get(CONFIG_MAPS, { namespace, name: 'nobody' })).toBeUndefined();
  });

  it('lists without the arrays that are not read, and with all the rest', async () => {
    const own = await cluster.namespace();
    for (const name of ['one', 'two']) {
      const object = { metadata: { namespace: own, name, annotations: { a: '"conditions":[{"b":"]"}],"c":"' } } };
      await admin.create(OAUTH_CLIENTS, { ...object, spec: { displayName: name } });
      const conditions = ['Accepted', 'Ready'].map((type) => ({
        type,
        status: 'True',
        reason: type,
        message: `${type}.`,
        lastTransitionTime: '2026-01-01T00:00:00Z',
      }));
      await admin.apply(OAUTH_CLIENTS, { ...object, status: { conditions } }, { subresource: 'status' });
      await admin.create(SECRETS, { metadata: { namespace: own, name }, stringData: { a: name } });
    }
    for (const resource of [OAUTH_CLIENTS, SECRETS]) {
      const whole = await admin.list(resource, { namespace: own });
      const read = await admin.list(resource, { namespace: own, unread: ['managedFields', 'conditions'] });
      // Other tests write objects of the kind in other namespaces meanwhile.
      const { resourceVersion } = read;
      expect(read).toEqual({
        ...whole,
        resourceVersion,
        items: whole.items.map(({ status, ...item }) => ({
          ...item,
          metadata: { ...item.metadata, managedFields: [] },
          ...(status !== undefined && { status: { ...status, conditions: [] } }),
        })),
      });
      expect(JSON.stringify(whole)).toContain('"managedFields":[{');
    }
  });

  it('applies as the manager grantry-controller, and takes fields from others', async () => {
    await cluster.apply({ apiVersion: 'v1', kind: 'ConfigMap', ...configMap('applied', { a: 'theirs', b: 'theirs' }) });
    await admin.apply(CONFIG_MAPS, configMap('applied', { a: 'ours' }));
    const { body } = await cluster.call('GET', `/api/v1/namespaces/${namespace}/configmaps/applied`);
    expect(body.data).toEqual({ a: 'ours', b: 'theirs' });
    const managers = body.metadata.managedFields.map((entry: { manager: string }) => entry.manager);
    expect(managers).toContain('grantry-controller');
  });

  it('applies to the very object and state it has read, and to no other', async () => {
    const { metadata } = await admin.create(CONFIG_MAPS, configMap('pinned'));
    const { uid, resourceVersion } = metadata;
    const pinned = (pins: object) =>
      admin.apply(CONFIG_MAPS, { metadata: { namespace, name: 'pinned', ...pins }, data: { a: '2' } });
    await expect(pinned({ uid: '00000000-0000-0000-0000-000000000000' })).rejects.toMatchObject({ reason: 'Conflict' });
    await expect(pinned({ uid, resourceVersion: '1' })).rejects.toMatchObject({ reason: 'Conflict' });
    expect(await pinned({ uid, resourceVersion })).toMatchObject({ data: { a: '2' } });
  });

  it('updates the state it has read, and no other', async () => {
    const { metadata } = await admin.create(CONFIG_MAPS, configMap('updated'));
    const update = (resourceVersion: string) =>
      admin.update(CONFIG_MAPS, { metadata: { namespace, name: 'updated', resourceVersion }, data: { b: '2' } });
    expect(await update(metadata.resourceVersion)).toMatchObject({ data: { b: '2' } });
    await expect(update(metadata.resourceVersion)).rejects.toMatchObject({ status: 409, reason: 'Conflict' });
  });

  it('deletes the object it means, and says what became of it', async () => {
    const at = { namespace, name: 'deleted' };
    const { metadata } = await admin.create(CONFIG_MAPS, configMap('deleted'));
    expect(await admin.delete(CONFIG_MAPS, { ...at, uid: 'another' })).toBe('changed');
    expect(await admin.delete(CONFIG_MAPS, { ...at, uid: metadata.uid, resourceVersion: '1' })).toBe('changed');
    expect(await admin.delete(CONFIG_MAPS, { ...at, uid: metadata.uid })).toBe('deleted');
    expect(await admin.delete(CONFIG_MAPS, { ...at, uid: metadata.uid })).toBe('gone');
  });

  it('lists page by page, and only what the labels say', async () => {
    const own = await cluster.namespace();
    for (const name of ['a', 'b', 'c']) {
      const labels = { even: String(name === 'b') };
      await admin.create(CONFIG_MAPS, { metadata: { namespace: own, name, labels } });
    }
    const first = await admin.list(CONFIG_MAPS, { namespace: own, limit: 2 });
    expect(first.items.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual(['ConfigMap a', 'ConfigMap b']);
    const second = await admin.list(CONFIG_MAPS, { namespace: own, limit: 2, continue: first.continue });
    expect(second.items.map(({ metadata }) => metadata.name)).toEqual(['c']);
    expect([typeof first.continue, second.continue]).toEqual(['string', undefined]);
    const even = await admin.list(CONFIG_MAPS, { namespace: own, labelSelector: 'even=true' });
    expect(even.items.map(({ metadata }) => metadata.name)).toEqual(['b']);
  });

  it('gets no data of what it asks for as metadata only', async () => {
    const own = await cluster.namespace();
    await admin.create(SECRETS, { metadata: { namespace: own, name: 'a' }, stringData: { password: 'secret' } });
    const { items, resourceVersion } = await admin.list(SECRETS, { namespace: own, metadataOnly: true });
    expect(items.map(({ kind, metadata }) => [kind, metadata.name])).toEqual([['Secret', 'a']]);
    const stop = new AbortController();
    const frames = await admin.watch(SECRETS, {
      namespace: own,
      metadataOnly: true,
      resourceVersion,
      timeoutSeconds: 60,
      signal: stop.signal,
    });
    await admin.create(SECRETS, { metadata: { namespace: own, name: 'b' }, stringData: { password: 'secret' } });
    for await (const frame of frames) {
      if (frame.type !== 'ADDED') continue;
      expect(frame.object.metadata.name).toBe('b');
      expect(Object.keys(frame.object).sort()).toEqual(['apiVersion', 'kind', 'metadata']);
      break;
    }
    stop.abort();
    expect(Object.keys(items[0] ?? {}).sort()).toEqual(['apiVersion', 'kind', 'metadata']);
  });

  it('watches until the time is over, and that is no error', async () => {
    const { resourceVersion } = await admin.list(CONFIG_MAPS, { namespace });
    const options = { namespace, resourceVersion, timeoutSeconds: 1, signal: new AbortController().signal };
    const types = [];
    for await (const frame of await admin.watch(CONFIG_MAPS, options)) types.push(frame.type);
    expect(types.filter((type) => type !== 'BOOKMARK')).toEqual([]);
  });

  it('says which verb, resource and ServiceAccount a missing right is about', async () => {
    const account = { namespace, name: 'no-rights' };
    const nobody = client({ kubeconfig: cluster.kubeconfig({ token: await cluster.token(account) }) });
    const error = await nobody.list(NAMESPACES).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: 403, reason: 'Forbidden', verb: 'list', resource: NAMESPACES });
    expect(String(error)).toContain(`list namespaces as system:serviceaccount:${namespace}:no-rights: 403 Forbidden`);
  });

  it('says that a token is not believed', async () => {
    const stranger = client({ kubeconfig: cluster.kubeconfig({ token: 'made up' }) });
    await expect(stranger.list(NAMESPACES)).rejects.toMatchObject({ status: 401, reason: 'Unauthorized' });
  });

  it('says that a kind is missing', async () => {
    const missing: Resource = { ...OAUTH_CLIENTS, group: 'missing.grantry.dev' };
    const error = await admin.list(missing).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: 404, verb: 'list', resource: missing });
    expect(String(error)).toContain('CRDs');
  });

  it('says that a namespace is being deleted', async () => {
    const ending = await cluster.namespace();
    await cluster.call('DELETE', `/api/v1/namespaces/${ending}`);
    await expect(admin.create(CONFIG_MAPS, { metadata: { namespace: ending, name: 'a' } })).rejects.toMatchObject({
      status: 403,
      causes: ['NamespaceTerminating'],
    });
  });

  it('does not repeat what is in a Secret that is refused', async () => {
    const error = await admin
      .create(SECRETS, { metadata: { namespace, name: 'bad' }, data: { 'not a key': 'c2VjcmV0' } })
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: 422, reason: 'Invalid' });
    expect(String(error)).not.toContain('not a key');
  });

  it('runs as the ServiceAccount of a pod, and takes over a token that was replaced', async () => {
    const account = { namespace, name: 'pod' };
    const token = await cluster.token(account);
    const { hostname, port } = new URL(cluster.address.url);
    writeFileSync(join(folder, 'ca.crt'), cluster.ca);
    writeFileSync(join(folder, 'token'), 'an old one');
    const access = inClusterAccess({ host: hostname, port, clock: { now: () => 0 }, folder });
    const pod = new ApiClient({ access, userAgent: 'grantry/test' });
    clients.push(pod);
    await expect(pod.list(CONFIG_MAPS, { namespace })).rejects.toMatchObject({ status: 401 });
    // The clock stands still: only that the old one was not believed makes it read the new one.
    writeFileSync(join(folder, 'token'), `${token}\n`);
    await expect(pod.list(CONFIG_MAPS, { namespace })).rejects.toMatchObject({ status: 403 });
  });

  it('knows where Leases and Events are', async () => {
    expect(await admin.list(LEASES, { namespace })).toMatchObject({ items: [] });
    expect(await admin.list(EVENTS, { namespace })).toMatchObject({ items: [] });
  });
});
