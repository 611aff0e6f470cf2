import { expect, it } from 'vitest';
import type { Condition } from '../../../src/admission/kinds/conditions.ts';
import { ConditionEvents } from '../../../src/controller/reconciling/condition-events.ts';

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

/** One object whose status goes through these; the first is there when the process begins to lead. */
function eventsOf([first = NEW, ...written]: readonly Statuses[], uid = 'uid-web', events = new Recorder()) {
  let before = first;
  for (const statuses of written) {
    const metadata = { name: 'web', uid, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
    const object = { apiVersion: 'v1', kind: 'OAuthClient', metadata, status: { conditions: conditions(before) } };
    events.conditionEvents.record(object, conditions(statuses));
    before = statuses;
  }
  return events.recorded;
}

class Recorder {
  readonly recorded: string[] = [];
  readonly conditionEvents = new ConditionEvents(({ type, reason }) => this.recorded.push(`${type} ${reason}`));
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
])('given %s → its Events', (_, statuses, expected) => {
  expect(eventsOf(statuses)).toEqual(expected);
});

it('given a Warning of one object → no Event of another that becomes Ready', () => {
  const events = new Recorder();
  eventsOf([NEW, REFUSED], 'uid-api', events);
  expect(eventsOf([BEHIND, READY], 'uid-web', events)).toEqual(['Warning PolicyViolation']);
});

it('given more objects with a Warning than are remembered → those of the last 4096 get the Event after a wait', () => {
  const events = new Recorder();
  for (let index = 0; index <= 4096; index++) eventsOf([NEW, REFUSED, BEHIND], `uid-${index}`, events);
  events.recorded.length = 0;
  expect(eventsOf([BEHIND, READY], 'uid-0', events)).toEqual([]);
  expect(eventsOf([BEHIND, READY], 'uid-1', events)).toEqual(['Normal Ready']);
});
