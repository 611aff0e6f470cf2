import { expect, it } from 'vitest';
import { verifierSecret } from '../../../src/controller/client-secrets/credential-state.ts';
import { VerifierSecret } from '../../../src/controller/client-secrets/verifier-secret.ts';
import type { LeaderApiOptions } from '../../../src/controller/leadership/leader-api.ts';
import { LeadershipLostError } from '../../../src/controller/leadership/lease.ts';
import { StaleReadError } from '../../../src/controller/reconciling/stale-read.ts';
import type { NewObject } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, SECRETS } from '../../../src/kubernetes/objects/resources.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { MemoryApi } from '../../model/api-server/memory-api.ts';
import { MemoryApiServer } from '../../model/api-server/memory-api-server.ts';
import { leaderOver, UNPLAYED } from '../leader.ts';

const OWNER = { namespace: 'shop', name: 'web', uid: 'u-1' };
const STATE = {
  revision: 1,
  verifiers: [],
  rotatedAt: 0,
  begunAt: undefined,
  handled: { rotateAt: undefined, rotateNow: undefined },
};

/** Verifiers of a client where a Secret of another type stands in their place. */
function behindAnother({
  leadsFor = 9,
  deletion = 'deleted',
}: {
  leadsFor?: number;
  deletion?: 'deleted' | 'changed';
}) {
  const writes: string[] = [];
  let left = leadsFor;
  const name = 'grantry-client-u-1';
  const metadata = { name, namespace: 'auth', uid: 's-1', resourceVersion: '1', creationTimestamp: '' };
  const other: KubernetesObject = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque' };
  const note = (verb: string) => {
    writes.push(verb);
    left -= 1;
  };
  const written = (verb: string, object: NewObject): KubernetesObject => {
    note(verb);
    return { ...other, ...object, metadata: { ...metadata, ...object.metadata, uid: 's-2', resourceVersion: '2' } };
  };
  const calls: LeaderApiOptions['api'] = {
    ...UNPLAYED,
    get: async () => undefined,
    create: async (_, object) => written('create', object),
    apply: async (_, object) => written('apply', object),
    delete: async () => {
      note('delete');
      return deletion;
    },
  };
  const api = leaderOver(calls, () => {
    if (left <= 0) throw new LeadershipLostError();
  });
  const options = { api, releaseNamespace: 'auth', className: 'default', clientExists: () => true };
  const verifiers = new VerifierSecret(options, OWNER, other);
  return { verifiers, writes };
}

it('a Secret of another type is replaced by the verifiers of its client', async () => {
  const { verifiers, writes } = behindAnother({ leadsFor: 2 });
  await verifiers.put(STATE);
  expect(writes).toEqual(['delete', 'create']);
});

it('verifiers are not written by who stopped leading between removing what was in their place and writing them', async () => {
  const { verifiers, writes } = behindAnother({ leadsFor: 1 });
  await expect(verifiers.put(STATE)).rejects.toBeInstanceOf(LeadershipLostError);
  expect(writes).toEqual(['delete']);
});

it.each([
  ['replaced', (verifiers: VerifierSecret) => verifiers.put(STATE)],
  ['removed', (verifiers: VerifierSecret) => verifiers.remove()],
])('a Secret that changes while it is to be %s is a stale read', async (_, act) => {
  const { verifiers, writes } = behindAnother({ deletion: 'changed' });
  await expect(act(verifiers)).rejects.toBeInstanceOf(StaleReadError);
  expect(writes).toEqual(['delete']);
});

it('given verifiers that a restore created while a rotation was pending → the rotation ends all the same', async () => {
  const server = new MemoryApiServer({ now: Date.now });
  const accepted = { verifier: secretVerifier(OWNER.uid, 's'.repeat(43)), revision: 1 };
  const state = { ...STATE, verifiers: [accepted], begunAt: Date.parse('2026-03-01T12:00:00Z') };
  const install = { releaseNamespace: 'auth', className: 'default' };
  server.create(SECRETS, verifierSecret(OWNER, state, install), 'restore');
  const api = leaderOver(new MemoryApi(server));
  const verifiers = new VerifierSecret({ ...install, api, clientExists: () => true }, OWNER, undefined);
  await verifiers.read();
  expect(verifiers.state?.begunAt).toBe(state.begunAt);
  await verifiers.put({ ...state, revision: 2, begunAt: undefined });
  expect(verifiers.state).toMatchObject({ revision: 2, begunAt: undefined });
});
