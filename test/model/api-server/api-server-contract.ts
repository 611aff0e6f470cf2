// What the controller depends on of an API server: versions and preconditions, field ownership of server-side apply, the rules
// of Secrets, finalizers, lists and watches. The same suite runs on the one in memory and on a real one. That a real one
// refuses what it has forgotten is tested in test/cluster/kubernetes/reflector.test.ts: it has to be restarted for that.

import { describe, expect, it } from 'vitest';
import {
  FIELD_MANAGER,
  type KubernetesApi,
  type NewObject,
  type ObjectPlace,
  type WatchFrame,
} from '../../../src/kubernetes/api/kubernetes-api.ts';
import {
  type KubernetesObject,
  LEASES,
  OAUTH_CLIENTS,
  type Resource,
  SECRETS,
} from '../../../src/kubernetes/objects/resources.ts';

/** An API server with a namespace of the test's own. */
export interface ContractServer {
  /** As the controller. */
  readonly api: KubernetesApi;
  /** As another writer: server-side apply with force, a JSON merge patch, a POST. */
  readonly other: {
    apply(resource: Resource, object: NewObject): Promise<KubernetesObject>;
    merge(resource: Resource, place: ObjectPlace, patch: object): Promise<KubernetesObject>;
    create(resource: Resource, object: NewObject): Promise<KubernetesObject>;
  };
  readonly namespace: string;
}

const TEXT = Buffer.from('text').toString('base64');
const MORE = Buffer.from('more').toString('base64');

/** @param start called for each test */
export function apiServerContract(name: string, start: () => Promise<ContractServer>): void {
  describe(`an API server ${name}`, () => {
    const secret = (namespace: string, data: Record<string, string>, metadata: object = {}) => ({
      metadata: { namespace, name: 'web', ...metadata },
      type: 'Opaque',
      data,
    });
    const pinned = ({ metadata: { uid, resourceVersion } }: KubernetesObject) => ({ uid, resourceVersion });
    const dataOf = (object: KubernetesObject | undefined) => object?.data ?? {};

    describe('versions', () => {
      it('changes the version with each change, and not by an apply that changes nothing', async () => {
        const { api, namespace } = await start();
        const made = await api.create(SECRETS, secret(namespace, { a: TEXT }));
        const once = await api.apply(SECRETS, secret(namespace, { a: TEXT }));
        const twice = await api.apply(SECRETS, secret(namespace, { a: TEXT }));
        expect(once.metadata.resourceVersion).not.toBe(made.metadata.resourceVersion);
        expect(twice.metadata.resourceVersion).toBe(once.metadata.resourceVersion);
        expect(await api.get(SECRETS, { namespace, name: 'web' })).toEqual(twice);
      });

      it('creates a name once, with another uid after a deletion', async () => {
        const { api, namespace } = await start();
        const made = await api.create(SECRETS, secret(namespace, { a: TEXT }));
        const again = () => api.create(SECRETS, secret(namespace, { a: TEXT }));
        await expect(again()).rejects.toMatchObject({ status: 409, reason: 'AlreadyExists' });
        expect(await api.delete(SECRETS, { namespace, name: 'web', uid: made.metadata.uid })).toBe('deleted');
        expect(await api.get(SECRETS, { namespace, name: 'web' })).toBeUndefined();
        expect((await again()).metadata.uid).not.toBe(made.metadata.uid);
      });

      it('counts the generation of a client by its spec, not by metadata or status', async () => {
        const { api, other, namespace } = await start();
        const place = { namespace, name: 'web' };
        const made = await other.create(OAUTH_CLIENTS, { metadata: place, spec: { displayName: 'one' } });
        await other.merge(OAUTH_CLIENTS, place, { metadata: { annotations: { 'example.com/a': '1' } } });
        const { resourceVersion } = (await api.get(OAUTH_CLIENTS, place))?.metadata ?? made.metadata;
        const status = { observedGeneration: 1 };
        const metadata = { ...place, uid: made.metadata.uid, resourceVersion };
        const reported = await api.apply(OAUTH_CLIENTS, { metadata, status }, { subresource: 'status' });
        expect([made.metadata.generation, reported.metadata.generation]).toEqual([1, 1]);
        expect(reported).toMatchObject({ spec: { displayName: 'one' }, status });
        const edited = await other.merge(OAUTH_CLIENTS, place, { spec: { displayName: 'two' } });
        // A real one adds the default conditions.
        expect(edited).toMatchObject({ metadata: { generation: 2 }, status });
      });
    });

    describe('preconditions', () => {
      it('refuses an apply to another version, to another uid, and to what is gone', async () => {
        const { api, other, namespace } = await start();
        const made = await api.create(SECRETS, secret(namespace, { a: TEXT }));
        const late = secret(namespace, { a: MORE }, pinned(made));
        await other.merge(SECRETS, { namespace, name: 'web' }, { data: { b: TEXT } });
        await expect(api.apply(SECRETS, late)).rejects.toMatchObject({ reason: 'Conflict' });
        await api.delete(SECRETS, { namespace, name: 'web', uid: made.metadata.uid });
        await expect(api.apply(SECRETS, late)).rejects.toMatchObject({ reason: 'Conflict' });
        await api.create(SECRETS, secret(namespace, { a: TEXT }));
        await expect(api.apply(SECRETS, late)).rejects.toMatchObject({ reason: 'Conflict' });
        expect(dataOf(await api.get(SECRETS, { namespace, name: 'web' }))).toEqual({ a: TEXT });
      });

      it('refuses a status for another version, and finds none to report on', async () => {
        const { api, other, namespace } = await start();
        const place = { namespace, name: 'web' };
        const made = await other.create(OAUTH_CLIENTS, { metadata: place, spec: { displayName: 'one' } });
        await other.merge(OAUTH_CLIENTS, place, { spec: { displayName: 'two' } });
        const status = { observedGeneration: 1 };
        const report = (metadata: object) =>
          api.apply(OAUTH_CLIENTS, { metadata: { ...place, ...metadata }, status }, { subresource: 'status' });
        await expect(report(pinned(made))).rejects.toMatchObject({ reason: 'Conflict' });
        await api.delete(OAUTH_CLIENTS, { ...place, uid: made.metadata.uid });
        await expect(report(pinned(made))).rejects.toMatchObject({ status: 404 });
      });

      it('refuses to delete another version or uid', async () => {
        const { api, other, namespace } = await start();
        const place = { namespace, name: 'web' };
        const made = await api.create(SECRETS, secret(namespace, { a: TEXT }));
        await other.merge(SECRETS, place, { data: { b: TEXT } });
        expect(await api.delete(SECRETS, { ...place, ...pinned(made) })).toBe('changed');
        expect(await api.delete(SECRETS, { ...place, uid: '00000000-0000-4000-8000-000000000000' })).toBe('changed');
        expect(await api.delete(SECRETS, { ...place, uid: made.metadata.uid })).toBe('deleted');
        expect(await api.delete(SECRETS, { ...place, uid: made.metadata.uid })).toBe('gone');
      });

      it('refuses a patch of another version, and of what is gone', async () => {
        const { api, other, namespace } = await start();
        const place = { namespace, name: 'web' };
        const made = await api.create(SECRETS, secret(namespace, { a: TEXT }));
        const { uid, resourceVersion } = made.metadata;
        const patch = { metadata: { ...place, resourceVersion }, data: { a: null } };
        const present = await other.merge(SECRETS, place, { data: { b: TEXT } });
        await expect(api.merge(SECRETS, patch)).rejects.toMatchObject({ status: 409, reason: 'Conflict' });
        expect(await api.get(SECRETS, place)).toEqual(present);
        await api.delete(SECRETS, { ...place, uid });
        await expect(api.merge(SECRETS, patch)).rejects.toMatchObject({ status: 404, reason: 'NotFound' });
        await api.create(SECRETS, secret(namespace, { a: TEXT }));
        await expect(api.merge(SECRETS, patch)).rejects.toMatchObject({ status: 409, reason: 'Conflict' });
      });

      it('replaces a Lease by its latest version only', async () => {
        const { api, namespace } = await start();
        const metadata = { namespace, name: 'leader' };
        const made = await api.create(LEASES, { metadata, spec: { holderIdentity: 'one' } });
        const { resourceVersion } = made.metadata;
        const update = (holderIdentity: string) =>
          api.update(LEASES, { metadata: { ...metadata, resourceVersion }, spec: { holderIdentity } });
        expect(await update('two')).toMatchObject({ spec: { holderIdentity: 'two' } });
        await expect(update('three')).rejects.toMatchObject({ status: 409, reason: 'Conflict' });
      });
    });

    describe('server-side apply', () => {
      it('drops what an earlier apply wrote and this one leaves out', async () => {
        const { api, namespace } = await start();
        const labels = { 'example.com/one': '1', 'example.com/two': '2' };
        await api.apply(SECRETS, secret(namespace, { a: TEXT, b: TEXT }, { labels }));
        const left = await api.apply(SECRETS, secret(namespace, { a: TEXT }, { labels: { 'example.com/one': '1' } }));
        expect(left).toMatchObject({ data: { a: TEXT }, metadata: { labels: { 'example.com/one': '1' } } });
        expect([dataOf(left), left.metadata.labels]).toEqual([{ a: TEXT }, { 'example.com/one': '1' }]);
      });

      it('keeps what a POST of the same manager wrote, until an apply has changed it', async () => {
        const { api, namespace } = await start();
        await api.create(SECRETS, secret(namespace, { a: TEXT, b: TEXT }));
        await api.apply(SECRETS, secret(namespace, { a: TEXT, b: TEXT }));
        expect(dataOf(await api.apply(SECRETS, secret(namespace, { a: TEXT })))).toEqual({ a: TEXT, b: TEXT });
        await api.apply(SECRETS, secret(namespace, { a: TEXT, b: '' }));
        expect(dataOf(await api.apply(SECRETS, secret(namespace, { a: TEXT })))).toEqual({ a: TEXT });
      });

      it('removes by a patch what a POST wrote, what another manager wrote too, and an owner; the rest has its owners', async () => {
        const { api, other, namespace } = await start();
        const place = { namespace, name: 'web' };
        const owner = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', name, uid: `uid-of-${name}` });
        const metadata = { labels: { 'example.com/one': '1' }, ownerReferences: [owner('ours')] };
        await api.create(SECRETS, secret(namespace, { a: TEXT, b: TEXT }, metadata));
        await other.apply(SECRETS, secret(namespace, { b: TEXT, c: TEXT }, { ownerReferences: [owner('theirs')] }));
        const { resourceVersion } = (await api.apply(SECRETS, secret(namespace, { a: TEXT }, metadata))).metadata;
        const left = await api.merge(SECRETS, {
          metadata: { ...place, resourceVersion, labels: {}, annotations: {}, ownerReferences: [owner('ours')] },
          data: { b: null },
        });
        expect([dataOf(left), left.metadata.labels]).toEqual([{ a: TEXT, c: TEXT }, metadata.labels]);
        expect([left.metadata.ownerReferences, left.metadata.annotations]).toEqual([[owner('ours')], undefined]);
        expect(entriesOf(left)).toEqual(['other Apply f:c', 'ours Apply f:a', 'ours Update f:a']);
        const none = { ...place, resourceVersion: left.metadata.resourceVersion, ownerReferences: [] };
        expect((await api.merge(SECRETS, { metadata: none })).metadata.ownerReferences).toBeUndefined();
      });

      it('has no new entry for a patch that only removes', async () => {
        const { api, namespace } = await start();
        const { metadata } = await api.apply(SECRETS, secret(namespace, { a: TEXT, b: TEXT }));
        const { name, resourceVersion } = metadata;
        const patch = {
          metadata: { namespace, name, resourceVersion, labels: {}, annotations: {}, ownerReferences: [] },
        };
        const left = await api.merge(SECRETS, { ...patch, data: { b: null } });
        expect(entriesOf(left)).toEqual(['ours Apply f:a']);
      });

      it('keeps the fields of another manager, and takes one over by force', async () => {
        const { api, other, namespace } = await start();
        await api.apply(SECRETS, secret(namespace, { a: TEXT }));
        await other.apply(SECRETS, secret(namespace, { a: MORE, b: TEXT }));
        const forced = await api.apply(SECRETS, secret(namespace, { a: TEXT, c: TEXT }));
        expect(dataOf(forced)).toEqual({ a: TEXT, b: TEXT, c: TEXT });
        expect(dataOf(await api.apply(SECRETS, secret(namespace, {})))).toEqual({ b: TEXT });
      });

      it('keeps a field that two managers applied, until both leave it out', async () => {
        const { api, other, namespace } = await start();
        await api.apply(SECRETS, secret(namespace, { a: TEXT, b: TEXT }));
        await other.apply(SECRETS, secret(namespace, { a: TEXT }));
        expect(dataOf(await api.apply(SECRETS, secret(namespace, { b: TEXT })))).toEqual({ a: TEXT, b: TEXT });
        expect(dataOf(await other.apply(SECRETS, secret(namespace, {})))).toEqual({ b: TEXT });
      });

      it('has each owner reference by its uid, and drops one that is left out once it was changed', async () => {
        const { api, other, namespace } = await start();
        const owner = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', name, uid: `uid-of-${name}` });
        const [ours, theirs] = [owner('ours'), owner('theirs')];
        await api.create(SECRETS, secret(namespace, { a: TEXT }, { ownerReferences: [ours] }));
        await other.merge(SECRETS, { namespace, name: 'web' }, { metadata: { ownerReferences: [ours, theirs] } });
        const uids = ({ metadata }: KubernetesObject) => (metadata.ownerReferences ?? []).map(({ uid }) => uid).sort();
        const apply = (...ownerReferences: object[]) =>
          api.apply(SECRETS, secret(namespace, { a: TEXT }, { ownerReferences }));
        expect(uids(await apply())).toEqual([ours.uid, theirs.uid]);
        await apply({ ...ours, blockOwnerDeletion: false });
        expect(uids(await apply())).toEqual([theirs.uid]);
      });

      it('creates what is missing, and names who owns what', async () => {
        const { api, other, namespace } = await start();
        const place = { namespace, name: 'web' };
        await api.apply(SECRETS, secret(namespace, { a: TEXT }));
        const merged = await other.merge(SECRETS, place, { data: { b: TEXT } });
        expect(entriesOf(merged)).toEqual(['other Update f:b', 'ours Apply f:a']);
      });
    });

    describe('Secrets and finalizers', () => {
      it('never changes the type of a Secret, nor the data of an immutable one', async () => {
        const { api, other, namespace } = await start();
        await other.create(SECRETS, secret(namespace, { a: TEXT }));
        const typed = { ...secret(namespace, { a: TEXT }), type: 'example.com/other' };
        await expect(api.apply(SECRETS, typed)).rejects.toMatchObject({ status: 422, reason: 'Invalid' });
        await other.merge(SECRETS, { namespace, name: 'web' }, { immutable: true });
        const changed = api.apply(SECRETS, secret(namespace, { a: MORE }));
        await expect(changed).rejects.toMatchObject({ status: 422, reason: 'Invalid' });
      });

      it('keeps an object with a finalizer as one that is being deleted', async () => {
        const { api, other, namespace } = await start();
        const place = { namespace, name: 'web' };
        const finalizers = ['example.com/keep'];
        const made = await other.create(SECRETS, secret(namespace, { a: TEXT }, { finalizers }));
        expect(await api.delete(SECRETS, { ...place, uid: made.metadata.uid })).toBe('deleted');
        expect((await api.get(SECRETS, place))?.metadata.deletionTimestamp).toBeTypeOf('string');
        await other.merge(SECRETS, place, { metadata: { finalizers: null } });
        expect(await api.get(SECRETS, place)).toBeUndefined();
      });
    });

    describe('lists and watches', () => {
      it('lists in pages, of one version, by label and type, and metadata alone', async () => {
        const { api, namespace } = await start();
        const names = ['a', 'b', 'c'];
        for (const name of names) {
          await api.create(SECRETS, secret(namespace, { a: TEXT }, { name, labels: { 'example.com/name': name } }));
        }
        const first = await api.list(SECRETS, { namespace, limit: 2 });
        await api.create(SECRETS, secret(namespace, { a: TEXT }, { name: 'bb' }));
        const rest = await api.list(SECRETS, { namespace, limit: 2, continue: first.continue });
        expect([...first.items, ...rest.items].map(({ metadata }) => metadata.name)).toEqual(names);
        expect([rest.continue, rest.resourceVersion]).toEqual([undefined, first.resourceVersion]);
        const labelSelector = 'example.com/name in (a,c)';
        const some = await api.list(SECRETS, {
          namespace,
          labelSelector,
          fieldSelector: 'type=Opaque',
          metadataOnly: true,
        });
        expect(some.items.map(({ metadata }) => metadata.name)).toEqual(['a', 'c']);
        expect(some.items[0]).toMatchObject({ kind: 'Secret' });
        expect(some.items[0]).not.toHaveProperty('data');
      });

      it('sends each change after a version; what is selected no more as deleted, with the version of that', async () => {
        const { api, other, namespace } = await start();
        const place = { namespace, name: 'web' };
        const labels = { 'example.com/part': 'yes' };
        const selection = { namespace, labelSelector: 'example.com/part=yes' };
        const { resourceVersion } = await api.list(SECRETS, selection);
        const made = await api.create(SECRETS, secret(namespace, { a: TEXT }, { labels }));
        const ending = new AbortController();
        const frames = await api.watch(SECRETS, {
          ...selection,
          resourceVersion,
          timeoutSeconds: 30,
          signal: ending.signal,
        });
        const taking = take(frames, 4);
        await other.merge(SECRETS, place, { data: { b: TEXT } });
        const unlabelled = await other.merge(SECRETS, place, { metadata: { labels: { 'example.com/part': 'no' } } });
        await other.merge(SECRETS, place, { metadata: { labels } });
        const seen = await taking;
        ending.abort();
        expect(seen.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED', 'ADDED']);
        const versions = seen.map((frame) => 'object' in frame && frame.object.metadata.resourceVersion);
        expect([versions[0], versions[2]]).toEqual([
          made.metadata.resourceVersion,
          unlabelled.metadata.resourceVersion,
        ]);
      });

      it('sends the deletion of an object with its last state and a version of its own', async () => {
        const { api, namespace } = await start();
        const made = await api.create(SECRETS, secret(namespace, { a: TEXT }));
        const ending = new AbortController();
        const { resourceVersion } = made.metadata;
        const options = { namespace, resourceVersion, timeoutSeconds: 30, signal: ending.signal };
        const taking = take(await api.watch(SECRETS, options), 1);
        await api.delete(SECRETS, { namespace, name: 'web', uid: made.metadata.uid });
        const [frame] = await taking;
        ending.abort();
        expect(frame).toMatchObject({ type: 'DELETED', object: { data: { a: TEXT } } });
        expect(frame).not.toHaveProperty('object.metadata.resourceVersion', resourceVersion);
      });
    });
  });
}

/** The managers of the data, with its keys. */
function entriesOf({ metadata }: KubernetesObject): readonly string[] {
  const { managedFields } = metadata as unknown as {
    managedFields: { manager: string; operation: string; fieldsV1: { 'f:data'?: Record<string, unknown> } }[];
  };
  const entries = managedFields.map(({ manager, operation, fieldsV1 }) => {
    const names = Object.keys(fieldsV1['f:data'] ?? {}).filter((key) => key !== '.');
    return `${manager === FIELD_MANAGER ? 'ours' : 'other'} ${operation} ${names}`;
  });
  return entries.sort();
}

async function take(frames: AsyncIterable<WatchFrame>, count: number): Promise<readonly WatchFrame[]> {
  const taken: WatchFrame[] = [];
  for await (const frame of frames) {
    if (frame.type !== 'BOOKMARK') taken.push(frame);
    if (taken.length === count) break;
  }
  return taken;
}
