import { describe, expect, it } from 'vitest';
import { StatusWrites } from '../../../src/controller/reconciling/status-writes.ts';
import { KubernetesError, type NewObject } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { CLIENT_POLICIES, type KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';
import { leaderOver, UNPLAYED } from '../leader.ts';

function version(resourceVersion: string): KubernetesObject {
  const metadata = { name: 'gold', uid: 'u', resourceVersion, creationTimestamp: '' };
  return { apiVersion: 'grantry.dev/v1alpha1', kind: 'ClientPolicy', metadata };
}

function refusal(status: number, reason: string, causes: readonly string[] = []): KubernetesError {
  return new KubernetesError({ status, reason, causes, verb: 'patch', resource: CLIENT_POLICIES, user: 'grantry' });
}

/** @param answers of the API server, one for each write */
function writesThatMeet(...answers: readonly (KubernetesObject | KubernetesError)[]) {
  const sent: NewObject['metadata'][] = [];
  const apply = async (_resource: unknown, { metadata }: NewObject) => {
    sent.push(metadata);
    const answer = answers[sent.length - 1] ?? refusal(500, 'InternalError');
    if (answer instanceof KubernetesError) throw answer;
    return answer;
  };
  return { sent, statuses: new StatusWrites(leaderOver({ ...UNPLAYED, apply }), CLIENT_POLICIES) };
}

describe('a status', () => {
  it('is pinned to the uid and the version that the watch delivered', async () => {
    const { sent, statuses } = writesThatMeet(version('2'));
    expect(await statuses.write(version('1'), {})).toBe(true);
    expect(sent).toEqual([{ name: 'gold', uid: 'u', resourceVersion: '1' }]);
  });

  it('given a write that the watch has not delivered → no second one; after that → one of the new version', async () => {
    const { sent, statuses } = writesThatMeet(version('2'), version('3'));
    const cached = version('1');
    expect(await statuses.write(cached, {})).toBe(true);
    expect(await statuses.write(cached, {})).toBe(false);
    expect(await statuses.write(version('2'), {})).toBe(true);
    expect(sent.map(({ resourceVersion }) => resourceVersion)).toEqual(['1', '2']);
  });

  it('given a write that changes nothing, which no watch delivers → the next one is sent', async () => {
    const { sent, statuses } = writesThatMeet(version('1'), version('2'));
    const cached = version('1');
    for (const _ of ['once', 'and again']) expect(await statuses.write(cached, {})).toBe(true);
    expect(sent).toHaveLength(2);
  });

  it.each([
    ['another version', refusal(409, 'Conflict')],
    ['another uid', refusal(422, 'Conflict')],
    ['no object', refusal(404, 'NotFound')],
    ['a terminating namespace', refusal(403, 'Forbidden', ['NamespaceTerminating'])],
  ])('that meets %s → not written, and left to the next change', async (_, error) => {
    expect(await writesThatMeet(error).statuses.write(version('1'), {})).toBe(false);
  });

  it('that is refused → the error', async () => {
    const { statuses } = writesThatMeet(refusal(403, 'Forbidden'));
    await expect(statuses.write(version('1'), {})).rejects.toMatchObject({ reason: 'Forbidden' });
  });
});
