import { describe, expect, it } from 'vitest';
import { SECRETS } from '../../../src/kubernetes/objects/resources.ts';
import { apiServerContract } from './api-server-contract.ts';
import { MemoryApi } from './memory-api.ts';
import { MemoryApiServer } from './memory-api-server.ts';

apiServerContract('in memory', async () => {
  const server = new MemoryApiServer({ now: Date.now });
  return {
    api: new MemoryApi(server),
    other: {
      apply: async (resource, object) => server.apply(resource, object, { manager: 'test' }),
      merge: async (resource, place, patch) => server.merge(resource, place, { ...patch }, 'test'),
      create: async (resource, object) => server.create(resource, object, 'test'),
    },
    namespace: 'team',
  };
});

describe('an API server in memory that has forgotten', () => {
  it('refuses a watch from a version of before, and the rest of a list', async () => {
    const server = new MemoryApiServer({ now: Date.now });
    const api = new MemoryApi(server);
    for (const name of ['a', 'b']) await api.create(SECRETS, { metadata: { namespace: 'team', name } });
    const { resourceVersion, continue: token } = await api.list(SECRETS, { limit: 1 });
    server.compact();
    const expired = { status: 410, reason: 'Expired' };
    const { signal } = new AbortController();
    const watch = api.watch(SECRETS, { resourceVersion, timeoutSeconds: 30, signal });
    await expect(watch).rejects.toMatchObject(expired);
    await expect(api.list(SECRETS, { limit: 1, continue: token })).rejects.toMatchObject(expired);
  });
});
