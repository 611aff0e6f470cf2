// The controller's questions and the endpoints of a replica, made apart, understand each other.

import { expect, it } from 'vitest';
import { proofFault } from '../../../src/admission/references/controller-proof.ts';
import { PolledReplicas, replicasBehind } from '../../../src/controller/replicas/observed-replicas.ts';
import { ReplicaReports } from '../../../src/controller/replicas/replica-reports.ts';
import { replicasAt } from '../../../src/controller/replicas/replicas.ts';
import { startGrantry } from '../../grantry.ts';
import { askable, PROOF_KEY } from './replica-servers.ts';

const UID = '6b8f6a52-5a0e-4b0e-9d5c-0f6a0f3f4c11';
const NOW = '2026-03-01T12:00:05.000Z';

it('a controller learns from a replica what it serves and what its clients met with', async () => {
  const asked: unknown[] = [];
  const grantry = await startGrantry({
    clients: [],
    replica: {
      proofFault: ({ authorization, ...question }) => proofFault(question, authorization, PROOF_KEY, Date.now()),
      observed: (question) => {
        asked.push(question);
        return {
          clients: { [UID]: { generation: 3, secretRevision: 2 } },
          resources: { 'uid-resource': { generation: 4 } },
          keyIds: ['k-1'],
        };
      },
      report: (question) => {
        asked.push(question);
        const times = { generation: 3, count: 2, lastTime: NOW };
        const reasons = ['invalid_scope', 'refresh_token.reuse_detected'] as const;
        const denied = { [UID]: reasons.map((reason) => ({ reason, ...times })) };
        const providers = { 'uid-corp': { generation: 2, reachable: false, reason: 'NotObserved' as const } };
        const users = { 'uid-people': { name: 'people', message: 'the list has a fault at users[1].passwordHash' } };
        return { cursor: 'c-1', lastUsed: { [UID]: '2026-03-01' }, denied, providers, users, alerts: [] };
      },
    },
  });
  const refusing: unknown[] = [];
  const log = { warn: (line: { replica: string }) => void refusing.push(line.replica) };
  const find = () => replicasAt([grantry.adminUrl('')]);
  const replicas = askable(find, { log: log as never });
  const observation = await new PolledReplicas(replicas).observe([UID]);
  expect(observation).toMatchObject({
    outcome: 'Observed',
    replicas: [{ state: { keyIds: new Set(['k-1']), resources: new Map([['uid-resource', { generation: 4 }]]) } }],
  });
  const hasIt = (generation: number) =>
    replicasBehind(observation, ({ clients }) => clients.get(UID)?.generation === generation).length === 0;
  expect([hasIt(3), hasIt(4)]).toEqual([true, false]);

  const metadata = {
    name: 'web',
    namespace: 'shop',
    uid: UID,
    generation: 3,
    resourceVersion: '1',
    creationTimestamp: '',
  };
  const events: string[] = [];
  const reports = new ReplicaReports({
    releaseNamespace: 'grantry',
    replicas,
    clientOf: () => ({ apiVersion: 'grantry.dev/v1alpha1', kind: 'OAuthClient', metadata }),
    record: ({ reason }) => events.push(reason),
    onChange: () => {},
    clock: { now: () => Date.parse('2026-03-01T12:00:00Z') },
  });
  await reports.poll();
  const conditions = reports.notices(UID, 3, undefined).flatMap(({ condition }) => condition ?? []);
  expect(conditions.map(({ reason }) => reason)).toEqual(['InvalidScope', 'RefreshTokenReuse']);
  reports.notices(UID, 3, { conditions });
  await reports.poll();
  expect(events.sort()).toEqual(['InvalidScope', 'InvalidUsers', 'RefreshTokenReuse']);
  expect(reports.lastUsed(UID)).toBe('2026-03-01');
  const held = new Map([['uid-corp', { generation: 2, reachable: false, reason: 'NotObserved' }]]);
  expect(reports.providers.latest).toEqual([{ name: grantry.adminUrl(''), providers: held }]);
  expect(asked).toEqual([{ uids: [UID] }, {}, { after: 'c-1' }]);

  expect(refusing).toEqual([]);
  const stranger = new PolledReplicas(askable(find, { key: () => 'another'.repeat(7), log: log as never }));
  for (const _ of [1, 2]) expect(await stranger.observe([UID])).toMatchObject({ replicas: [{ state: undefined }] });
  expect(refusing).toEqual([grantry.adminUrl('')]);
});
