// What the audit log counts beside its lines.

import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { Metrics } from '../../../src/http/metrics/metrics.ts';
import type { AuditEvent } from '../../../src/oauth/ports/audit.ts';
import { AuditLog } from '../../../src/processes/log/audit-log.ts';
import { createLog } from '../../../src/processes/log/log.ts';

const COUNTED = {
  'refresh_token.reuse_detected': 'grantry_refresh_reuse_detected_total',
  'refresh_token.retried': 'grantry_refresh_retried_total',
  'authorization_code.replayed': 'grantry_code_replayed_total',
  state_lost: 'grantry_state_lost_total',
} as const;

it.each(Object.keys(COUNTED) as (keyof typeof COUNTED)[])('counts %s, and nothing else for it', async (type) => {
  const { audit, counts } = anAuditLog();
  audit.record({ type, clientId: 'shop.web' });
  audit.record({ type, clientId: 'shop.web' });
  const none = Object.fromEntries(Object.values(COUNTED).map((name) => [name, 0]));
  expect(await counts()).toEqual({ ...none, [COUNTED[type]]: 2 });
});

it('counts an alert once, however often it is raised', async () => {
  const { audit, counts } = anAuditLog();
  const alert: AuditEvent['alert'] = {
    id: '007.x.state_lost',
    type: 'state_lost',
    time: 1,
    clientUid: 'uid',
    clientId: 'shop.web',
    subject: 'usr_a',
    grantId: '007.x',
    presentedGeneration: 5,
    currentGeneration: 3,
    address: '198.51.100.7',
    lastAddress: undefined,
    action: 'healed_forward',
  };
  audit.record({ type: 'state_lost', alert });
  audit.record({ type: 'state_lost', alert });
  expect(await counts()).toMatchObject({ grantry_state_lost_total: 1 });
});

function anAuditLog() {
  const metrics = new Metrics({ clients: () => 0, logDropped: () => 0, processMetrics: false });
  const log = createLog('info', new PassThrough().resume());
  const audit = new AuditLog({ log, metrics, subjects: 'hashed', pepper: Buffer.alloc(32, 1) });
  const counts = async () => {
    const text = await metrics.text();
    return Object.fromEntries(
      Object.values(COUNTED).map((name) => [name, Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1])]),
    );
  };
  return { audit, counts };
}
