import { describe, expect, it } from 'vitest';
import type { Condition } from '../../../src/admission/kinds/conditions.ts';
import { StatusReport } from '../../../src/controller/reconciling/status-report.ts';
import { KubernetesError, type NewObject } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, OAUTH_CLIENTS } from '../../../src/kubernetes/objects/resources.ts';
import { leaderOver, UNPLAYED } from '../leader.ts';

type Statuses = Readonly<Record<string, string>>;

/** Conditions by their types, each as `True Reason`. */
function conditions(statuses: Statuses): readonly Condition[] {
  return Object.entries(statuses).map(([type, text]) => {
    const [status, reason = type] = text.split(' ') as [Condition['status'], string?];
    return { type, status, reason, message: `It is ${text}.`, observedGeneration: 1 };
  });
}

const READY = { Accepted: 'True', Programmed: 'True', Ready: 'True' };
const REFUSED = { Accepted: 'False PolicyViolation', Programmed: 'Unknown Pending', Ready: 'False PolicyViolation' };
const MALFORMED = { ...REFUSED, Accepted: 'False InvalidManifest' };
const BEHIND = { Accepted: 'True', Programmed: 'False Pending', Ready: 'False Pending' };
const UNTRIED = { Accepted: 'True', Programmed: 'Unknown NotObserved', Ready: 'Unknown NotObserved' };
const UNGRANTED = { ...READY, ResourcesGranted: 'False ResourceNotGranted' };
const NEW = {};

function version(resourceVersion: string, uid = 'u', status: unknown = {}): KubernetesObject {
  const metadata = { name: 'web', uid, resourceVersion, creationTimestamp: '2026-01-01T00:00:00Z' };
  return { apiVersion: 'grantry.dev/v1alpha1', kind: 'OAuthClient', metadata, status };
}

function refusal(status: number, reason: string, causes: readonly string[] = []): KubernetesError {
  return new KubernetesError({ status, reason, causes, verb: 'patch', resource: OAUTH_CLIENTS, user: 'grantry' });
}

/** @param answer of the API server to a write */
function reportOver(answer: (written: NewObject) => KubernetesObject | KubernetesError) {
  const [sent, recorded]: [NewObject['metadata'][], string[]] = [[], []];
  const apply = async (_resource: unknown, object: NewObject) => {
    sent.push(object.metadata);
    const answered = answer(object);
    if (answered instanceof KubernetesError) throw answered;
    return answered;
  };
  const api = leaderOver({ ...UNPLAYED, apply });
  const record = ({ type, reason }: { type: string; reason: string }) => void recorded.push(`${type} ${reason}`);
  return { sent, recorded, reports: new StatusReport({ api, record }, OAUTH_CLIENTS) };
}

/** Whether the object has the status then. */
async function isCurrent(
  { reports, recorded }: ReturnType<typeof reportOver>,
  object: KubernetesObject,
  status: object,
  statuses: Statuses,
): Promise<boolean> {
  let calls = 0;
  const before = recorded.length;
  await reports.report(object, status, conditions(statuses), () => {
    calls++;
    // What follows from the status is recorded before its Events.
    expect(recorded).toHaveLength(before);
  });
  return calls === 1;
}

/** @param answers of the API server, one for each write */
function writesThatMeet(...answers: readonly (KubernetesObject | KubernetesError)[]) {
  const over = reportOver(() => answers[over.sent.length - 1] ?? refusal(500, 'InternalError'));
  const status = { observedGeneration: 1 };
  return { ...over, write: (object: KubernetesObject) => isCurrent(over, object, status, REFUSED) };
}

describe('a status', () => {
  it('is pinned to the uid and the version that the watch delivered', async () => {
    const { sent, write } = writesThatMeet(version('2'));
    expect(await write(version('1'))).toBe(true);
    expect(sent).toEqual([{ name: 'web', uid: 'u', resourceVersion: '1' }]);
  });

  it('that the object has → neither a write nor an Event', async () => {
    const { sent, recorded, write } = writesThatMeet();
    expect(await write(version('1', 'u', { observedGeneration: 1 }))).toBe(true);
    expect([sent, recorded]).toEqual([[], []]);
  });

  it('given a write that the watch has not delivered → no second one; after that → one of the new version', async () => {
    const { sent, recorded, write } = writesThatMeet(version('2'), version('3'));
    const cached = version('1');
    expect(await write(cached)).toBe(true);
    expect(await write(cached)).toBe(false);
    expect(recorded).toHaveLength(1);
    expect(await write(version('2'))).toBe(true);
    expect(sent.map(({ resourceVersion }) => resourceVersion)).toEqual(['1', '2']);
  });

  it('given a write that changes nothing, which no watch delivers → the next one is sent', async () => {
    const { sent, write } = writesThatMeet(version('1'), version('2'));
    const cached = version('1');
    for (const _ of ['once', 'and again']) expect(await write(cached)).toBe(true);
    expect(sent).toHaveLength(2);
  });

  it.each([
    ['another version', refusal(409, 'Conflict')],
    ['another uid', refusal(422, 'Conflict')],
    ['no object', refusal(404, 'NotFound')],
    ['a terminating namespace', refusal(403, 'Forbidden', ['NamespaceTerminating'])],
  ])('that meets %s → not written, without an Event, and left to the next change', async (_, error) => {
    const { recorded, write } = writesThatMeet(error);
    expect([await write(version('1')), recorded]).toEqual([false, []]);
  });

  it('that is refused → the error', async () => {
    const { recorded, write } = writesThatMeet(refusal(403, 'Forbidden'));
    await expect(write(version('1'))).rejects.toMatchObject({ reason: 'Forbidden' });
    expect(recorded).toEqual([]);
  });
});

/** One object whose status goes through these; the first is there when the process begins to lead. */
async function eventsOf([first = NEW, ...written]: readonly Statuses[], uid = 'uid-web', over = recorder()) {
  let before = first;
  for (const [index, statuses] of written.entries()) {
    const object = version(`${index}`, uid, { conditions: conditions(before) });
    // Another field differs each time: the status is written.
    const status = { observedGeneration: index, conditions: conditions(statuses) };
    expect(await isCurrent(over, object, status, statuses)).toBe(true);
    before = statuses;
  }
  return over.recorded;
}

function recorder() {
  return reportOver(({ metadata }) => version(`${metadata.resourceVersion} and later`));
}

it.each<[string, readonly Statuses[], readonly string[]]>([
  ['a new object that is Ready', [NEW, READY], []],
  ['a new object that waits, and is Ready', [NEW, BEHIND, UNTRIED, READY], []],
  ['one that is Ready, waits again, and is Ready', [READY, BEHIND, READY], []],
  ['one that is refused', [NEW, REFUSED], ['Warning PolicyViolation']],
  ['one that is refused, twice for one reason', [NEW, REFUSED, REFUSED], ['Warning PolicyViolation']],
  [
    'two reasons',
    [NEW, REFUSED, MALFORMED, READY],
    ['Warning PolicyViolation', 'Warning InvalidManifest', 'Normal Ready'],
  ],
  ['one that is refused, and Ready', [NEW, REFUSED, READY], ['Warning PolicyViolation', 'Normal Ready']],
  ['one that is Ready for a second status', [NEW, REFUSED, READY, READY], ['Warning PolicyViolation', 'Normal Ready']],
  [
    'a wait in between',
    [NEW, REFUSED, BEHIND, UNTRIED, READY, BEHIND, READY],
    ['Warning PolicyViolation', 'Normal Ready'],
  ],
  ['one that is refused, and waits', [NEW, REFUSED, BEHIND, UNTRIED], ['Warning PolicyViolation']],
  ['a Warning of a former leader', [REFUSED, READY], ['Normal Ready']],
  ['a Warning of a former leader, and a wait', [REFUSED, BEHIND, READY], ['Normal Ready']],
  ['a fault beside Ready', [NEW, UNGRANTED, READY], ['Warning ResourceNotGranted', 'Normal Ready']],
  [
    'a fault beside Ready that stays',
    [NEW, REFUSED, UNGRANTED],
    ['Warning PolicyViolation', 'Warning ResourceNotGranted'],
  ],
  [
    'a fault that comes back',
    [NEW, REFUSED, READY, REFUSED, READY],
    ['Warning PolicyViolation', 'Normal Ready', 'Warning PolicyViolation', 'Normal Ready'],
  ],
])('given %s → its Events', async (_, statuses, expected) => {
  expect(await eventsOf(statuses)).toEqual(expected);
});

it('given a Warning of one object → no Event of another that becomes Ready', async () => {
  const over = recorder();
  await eventsOf([NEW, REFUSED], 'uid-api', over);
  expect(await eventsOf([BEHIND, READY], 'uid-web', over)).toEqual(['Warning PolicyViolation']);
});

it('given more objects with a Warning than are remembered → those of the last 4096 get the Event after a wait', async () => {
  const over = recorder();
  for (let index = 0; index <= 4096; index++) await eventsOf([NEW, REFUSED, BEHIND], `uid-${index}`, over);
  over.recorded.length = 0;
  expect(await eventsOf([BEHIND, READY], 'uid-0', over)).toEqual([]);
  expect(await eventsOf([BEHIND, READY], 'uid-1', over)).toEqual(['Normal Ready']);
});
