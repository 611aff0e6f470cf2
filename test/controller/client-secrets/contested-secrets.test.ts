import { describe, expect, it } from 'vitest';
import { ContestedSecrets, contestFault } from '../../../src/controller/client-secrets/contested-secrets.ts';

const UID = 'u-1';
const SECOND = 1000;
const MINUTE = 60_000;

describe('a Secret that another writer keeps changing', () => {
  it('is put back at once a few times, then ever later, and never later than in ten minutes', () => {
    const clock = { time: 0, now: () => clock.time };
    const contested = new ContestedSecrets(clock);
    const waits: number[] = [];
    for (let times = 0; times < 14; times++) {
      const until = contested.backoffUntil(UID)?.until ?? clock.time;
      waits.push(until - clock.time);
      clock.time = until;
      expect(contested.backoffUntil(UID)).toBeUndefined();
      contested.recordRepair(UID);
    }
    const growing = [10, 20, 40, 80, 160, 320].map((seconds) => seconds * SECOND);
    expect(waits).toEqual([0, 0, 0, ...growing, ...Array(5).fill(10 * MINUTE)]);
    expect(contested.backoffUntil('another')).toBeUndefined();
  });

  it('is like any other again once it was left alone for a while', () => {
    const clock = { time: 0, now: () => clock.time };
    const contested = new ContestedSecrets(clock);
    for (let times = 0; times < 5; times++) contested.recordRepair(UID);
    expect(contested.backoffUntil(UID)).toEqual({ times: 5, until: 40 * SECOND });
    clock.time = 20 * MINUTE;
    for (const _ of [1, 2]) {
      expect(contested.backoffUntil(UID)).toBeUndefined();
      contested.recordRepair(UID);
    }
  });
});

describe('the fault that its owner gets', () => {
  const secret = (...managedFields: object[]) => {
    const metadata = { name: 'app', namespace: 'team', uid: 'u', resourceVersion: '1', creationTimestamp: '' };
    return { apiVersion: 'v1', kind: 'Secret', metadata: { ...metadata, managedFields } };
  };
  const contest = { times: 3, until: Date.parse('2026-03-01T12:00:00Z') };

  it('names who wrote it last, as far as the API server knows', () => {
    const fault = contestFault(
      'app-oauth',
      secret(
        { manager: 'older', time: '2026-03-01T10:00:00Z' },
        { manager: 'argocd-controller', time: '2026-03-01T11:00:00Z' },
        { manager: 'grantry-controller', time: '2026-03-01T11:30:00Z' },
      ),
      contest,
    );
    expect(fault.reason).toBe('SecretContested');
    expect(fault.message).toContain('"argocd-controller"');
    expect(fault.message).toContain('2026-03-01T12:00:00.000Z');
    for (const unknown of [undefined, secret(), secret({ manager: 'grantry-controller' }, { time: 'x' })]) {
      expect(contestFault('app-oauth', unknown, contest).message).not.toContain('argocd');
    }
  });
});
