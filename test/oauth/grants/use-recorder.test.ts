// Which tokens are recorded as uses, and how often the store is asked.

import { describe, expect, it } from 'vitest';
import { UseRecorder } from '../../../src/oauth/grants/use-recorder.ts';
import type { AuditEvent } from '../../../src/oauth/ports/audit.ts';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { USE_INTERVAL } from '../../../src/oauth/ports/login-stores.ts';
import { KeyRing } from '../../../src/oauth/registry/keys.ts';
import { Registry } from '../../../src/oauth/registry/registry.ts';
import { createLog } from '../../../src/processes/log/log.ts';
import { TestClock } from '../../grantry.ts';
import { until } from '../../until.ts';
import { aClient } from '../a-client.ts';

const SHOP = aClient({ uid: 'uid-of-shop', clientId: 'shop.web' });
const REFRESHED: AuditEvent = { type: 'token.refreshed', clientId: 'shop.web', subject: 'usr_alice', grantId: '007.x' };
const ISSUED: AuditEvent = { ...REFRESHED, type: 'token.issued' };

function aWorld(note: (subject: string, clientUid: string) => Promise<void> = async () => {}) {
  const clock = new TestClock();
  const recorded: AuditEvent[] = [];
  const storedUses: string[] = [];
  const lines: string[] = [];
  const uses = new UseRecorder({
    audit: { record: (event) => void recorded.push(event) },
    uses: {
      note: (subject, clientUid) => {
        storedUses.push(`${subject} ${clientUid}`);
        return note(subject, clientUid);
      },
    },
    registry: { current: new Registry([SHOP], new KeyRing([])) },
    clock,
    log: createLog('info', { write: (line) => void lines.push(line) }),
  });
  return { uses, clock, recorded, storedUses, lines };
}

describe('a use', () => {
  it('given a refresh → the use and the event are recorded', () => {
    const { uses, recorded, storedUses } = aWorld();
    uses.record(REFRESHED);
    expect(storedUses).toEqual(['usr_alice uid-of-shop']);
    expect(recorded).toEqual([REFRESHED]);
  });

  it('given a redeemed code → the event alone is recorded, and the refreshes of the next hour are no uses', () => {
    const { uses, clock, recorded, storedUses } = aWorld();
    uses.record(ISSUED);
    expect(recorded).toEqual([ISSUED]);
    clock.advance(USE_INTERVAL - 1);
    uses.record(REFRESHED);
    expect(storedUses).toEqual([]);
    clock.advance(1);
    uses.record(REFRESHED);
    expect(storedUses).toEqual(['usr_alice uid-of-shop']);
  });

  it('given another code within the hour → the first refresh an hour after the former code is a use', () => {
    const { uses, clock, storedUses } = aWorld();
    uses.record(ISSUED);
    clock.advance(USE_INTERVAL - 1);
    uses.record(ISSUED);
    clock.advance(1);
    uses.record(REFRESHED);
    expect(storedUses).toEqual(['usr_alice uid-of-shop']);
  });

  it('given refreshes → one an hour for each person and client', () => {
    const { uses, clock, storedUses } = aWorld();
    uses.record(REFRESHED);
    uses.record({ ...REFRESHED, subject: 'usr_bob' });
    clock.advance(USE_INTERVAL - 1);
    uses.record(REFRESHED);
    expect(storedUses).toEqual(['usr_alice uid-of-shop', 'usr_bob uid-of-shop']);
    clock.advance(1);
    uses.record(REFRESHED);
    expect(storedUses).toHaveLength(3);
  });

  it.each([
    ['a token of a client for itself', { ...REFRESHED, subject: 'shop.web', grantId: undefined }],
    ['a refused request', { ...REFRESHED, type: 'token.refused' } as const],
    ['a client that is no longer registered', { ...REFRESHED, clientId: 'shop.gone' }],
  ])('given %s → the event is recorded, and no use', (_name, event) => {
    const { uses, recorded, storedUses } = aWorld();
    uses.record(event);
    expect(recorded).toEqual([event]);
    expect(storedUses).toEqual([]);
  });

  it('given an unavailable store → no fault and no log line; given another fault → a log line', async () => {
    const faults: unknown[] = [new StoreUnavailableError('unavailable'), new TypeError('of ours')];
    const { uses, storedUses, lines } = aWorld(async () => {
      throw faults.shift();
    });
    uses.record(REFRESHED);
    uses.record({ ...REFRESHED, subject: 'usr_bob' });
    expect(storedUses).toHaveLength(2);
    await until('the second is logged', () => lines.length > 0);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('of ours');
  });
});
