import { expect, it } from 'vitest';
import type { LeaderApi } from '../../../src/controller/leadership/leader-api.ts';
import { LeadershipLostError } from '../../../src/controller/leadership/lease.ts';
import { OAUTH_CLIENTS, SECRETS } from '../../../src/kubernetes/objects/resources.ts';
import { leaderOver } from '../leader.ts';

const PLACE = { namespace: 'shop', name: 'web' };
const OBJECT = { apiVersion: 'v1', kind: 'Secret', metadata: { ...PLACE, uid: 'u', resourceVersion: '1' } };
const FOUND = { ...OBJECT, metadata: { ...OBJECT.metadata, creationTimestamp: '' } };

function leader() {
  const sent: string[] = [];
  const send =
    <Answer>(verb: string, answer: Answer) =>
    async () => {
      sent.push(verb);
      return answer;
    };
  const state = { leads: true };
  const calls = {
    get: send('get', FOUND),
    create: send('create', FOUND),
    apply: send('apply', FOUND),
    merge: send('merge', FOUND),
    delete: send('delete', 'deleted' as const),
  };
  const api = leaderOver(calls, () => {
    if (!state.leads) throw new LeadershipLostError();
  });
  return { api, sent, state };
}

it.each<[string, (api: LeaderApi) => Promise<unknown>]>([
  ['create', (api) => api.create(SECRETS, { metadata: PLACE })],
  ['apply', (api) => api.apply(SECRETS, { metadata: PLACE })],
  ['apply', (api) => api.apply(OAUTH_CLIENTS, { metadata: PLACE, status: {} }, { subresource: 'status' })],
  ['merge', (api) => api.merge(SECRETS, { metadata: { ...PLACE, resourceVersion: '1' } })],
  ['delete', (api) => api.delete(SECRETS, { ...PLACE, uid: 'u', resourceVersion: '1' })],
])('%s is sent by who holds the lease, and not by who lost it', async (verb, write) => {
  const { api, sent, state } = leader();
  await write(api);
  expect(sent).toEqual([verb]);
  state.leads = false;
  await expect(write(api)).rejects.toBeInstanceOf(LeadershipLostError);
  expect(sent).toEqual([verb]);
});

it('who lost the lease may still read', async () => {
  const { api, state } = leader();
  state.leads = false;
  expect(await api.get(SECRETS, PLACE)).toBe(FOUND);
});
