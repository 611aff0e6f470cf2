// The pages of a list whose objects are of any size, over real HTTP: what of each page is read, and how the next one is.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { ApiClient } from '../../../src/kubernetes/api/api-client.ts';
import type { ListPage } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { CONFIG_MAPS, type KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';
import { listAll } from '../../../src/kubernetes/watch/listing.ts';
import { FakeApiServer } from '../fake-api-server.ts';

const MEBIBYTE = 1024 * 1024;
const LARGEST_PAGE = 8 * MEBIBYTE;

let server: FakeApiServer;
let client: ApiClient;
let pages: ListPage[];

beforeEach(async () => {
  server = await FakeApiServer.start();
  const credentials = () => Promise.resolve({ headers: {}, tls: {}, user: 'some-user' });
  client = new ApiClient({ access: { server: server.url, credentials, renew: () => {} }, userAgent: 'grantry/1.2.3' });
  pages = [];
});
afterEach(() => {
  client.close();
  server.stop();
});

function put(prefix: string, count: number, bytes: number): void {
  const value = 'x'.repeat(bytes);
  for (let index = 0; index < count; index++) server.put(`${prefix}-${String(index).padStart(4, '0')}`, value);
}

/** The names of all objects, in the order of the list; their values are dropped page by page. */
async function listed(): Promise<readonly string[]> {
  const { objects } = await listAll({
    api: {
      list: async (...call) => {
        const page = await client.list(...call);
        pages.push(page);
        return page;
      },
    },
    resource: CONFIG_MAPS,
    selection: {},
    keep: (_, { data: _data, ...object }) => object as KubernetesObject,
    signal: new AbortController().signal,
  });
  return [...objects.values()].map(({ metadata }) => metadata.name);
}

const limits = () => server.requests.map(({ query }) => Number(query.get('limit')));

it('large objects among small ones → each page of a bounded size, small ones again 500 at once', async () => {
  put('a-small', 700, 10);
  put('b-large', 40, 250_000);
  put('c-small', 2500, 10);
  expect(await listed()).toHaveLength(3240);
  expect(Math.max(...pages.map(({ bytes }) => bytes))).toBeLessThanOrEqual(LARGEST_PAGE);
  expect(limits().slice(0, 4)).toEqual([32, 64, 128, 256]);
  expect(Math.min(...limits())).toBeLessThan(LARGEST_PAGE / 250_000);
  expect(limits().at(-1)).toBe(500);
  // No object is read twice, not even of a page that was too large.
  expect(pages.flatMap(({ items }) => items)).toHaveLength(3240);
});

it('a page that is too large → not read to its end', async () => {
  put('large', 200, 250_000);
  const list = client.list(CONFIG_MAPS, { limit: 500, maxBytes: LARGEST_PAGE });
  await expect(list).rejects.toMatchObject({ reason: 'OversizedAnswer', verb: 'list' });
});

it('a single object larger than a page → listed all the same', async () => {
  put('large', 3, LARGEST_PAGE + MEBIBYTE);
  expect(await listed()).toEqual(['large-0000', 'large-0001', 'large-0002']);
  expect(limits()).toEqual([32, 4, 1, 1, 1]);
});
