// What the audit stream and the counters say of a refresh that was not an ordinary one and was answered all the same.

import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { Handles } from '../../../src/oauth/tokens/handles.ts';
import { type Grantry, startGrantry } from '../../grantry.ts';
import { TokenCalls, WEB } from './token-calls.ts';

const GRACE = 10_000;
const pepper = randomBytes(32);

let grantry: Grantry;
let calls: TokenCalls;
beforeEach(async () => {
  await grantry?.stop();
  grantry = await startGrantry({ clients: [WEB], pepper });
  calls = new TokenCalls(grantry);
});

/** A family and its refresh tokens, of which the store may know nothing yet. */
async function begin() {
  const { body } = await calls.redeem(await grantry.issueCode(WEB.clientId));
  const handles = new Handles({ issuer: grantry.issuer, peppers: [pepper], random: { bytes: randomBytes } });
  const family = handles.parseRefreshToken(String(body.refresh_token));
  if (family === undefined) throw new Error('no refresh token came');
  return { grantId: family.grantId, tokenOf: (generation: number) => handles.refreshToken(family, generation) };
}

const events = (...types: readonly string[]) => grantry.audits().filter(({ event }) => types.includes(String(event)));
const subjectOf = () => events('token.issued')[0]?.subject;
const metrics = async () => (await fetch(grantry.adminUrl('/metrics'))).text();

describe('a refresh that is repeated within the grace', () => {
  it('has an audit line of its own each time, which is no alert, and is counted', async () => {
    const { grantId, tokenOf } = await begin();
    await calls.refresh(tokenOf(0));
    expect(events('refresh_token.retried')).toEqual([]);
    grantry.clock.advance(GRACE);
    for (const time of [1, 2]) {
      expect((await calls.refresh(tokenOf(0))).status).toBe(200);
      expect(events('refresh_token.retried')).toHaveLength(time);
    }
    for (const line of events('refresh_token.retried')) {
      const { time: _time, ...fields } = line;
      const what = { level: 'info', stream: 'audit', event: 'refresh_token.retried' };
      expect(fields).toEqual({ ...what, clientId: WEB.clientId, subject: subjectOf(), grantId, address: '127.0.0.1' });
    }
    expect(events('state_lost', 'refresh_token.reuse_detected')).toEqual([]);
    expect(await metrics()).toMatch(/^grantry_refresh_retried_total 2$/m);
  });

  it('has none where the repetition was refused', async () => {
    const { tokenOf } = await begin();
    await calls.refresh(tokenOf(0));
    expect((await calls.refresh(tokenOf(0), { scope: 'more' })).status).toBe(400);
    grantry.clock.advance(GRACE + 1);
    expect((await calls.refresh(tokenOf(0))).status).toBe(400);
    expect(events('refresh_token.retried')).toEqual([]);
    expect(await metrics()).toMatch(/^grantry_refresh_retried_total 0$/m);
  });
});

describe('a refresh that heals', () => {
  it('has the audit line of its alert, once for the family, and is counted', async () => {
    const { grantId, tokenOf } = await begin();
    await calls.refresh(tokenOf(0));
    const { status, body } = await calls.refresh(tokenOf(4));
    expect([status, body.refresh_token]).toEqual([200, tokenOf(5)]);
    expect((await calls.refresh(tokenOf(9))).status).toBe(200);
    const [line, ...more] = events('state_lost');
    expect(more).toEqual([]);
    expect(line).toMatchObject({ level: 'warn', clientId: WEB.clientId, subject: subjectOf(), grantId });
    expect(line?.address).toBe('127.0.0.1');
    expect(line?.alert).toEqual({
      id: `${grantId}.state_lost`,
      type: 'state_lost',
      time: grantry.clock.now(),
      action: 'healed_forward',
      presentedGeneration: 4,
      currentGeneration: 1,
      address: '127.0.0.1',
      lastAddress: '127.0.0.1',
    });
    expect(events('refresh_token.retried', 'refresh_token.reuse_detected')).toEqual([]);
    expect(await metrics()).toMatch(/^grantry_state_lost_total 1$/m);
  });
});
