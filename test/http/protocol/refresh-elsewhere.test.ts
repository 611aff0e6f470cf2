// Refresh tokens that are retried within the grace from other addresses: what raises the alert, and that nothing is revoked.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { basic, type Grantry, PKCE, startGrantry } from '../../grantry.ts';
import { WEB } from './token-calls.ts';

const APP = { clientId: 'shop.app' };
const HOME = '192.0.2.7';
const ELSEWHERE = '198.51.100.7';

let grantry: Grantry;
beforeEach(async () => {
  grantry = await startGrantry({ clients: [APP, WEB], trustedProxies: ['127.0.0.1'] });
});
afterEach(() => grantry.stop());

async function post(client: { clientId: string; secret?: string }, address: string, form: Record<string, string>) {
  const headers: Record<string, string> = { 'x-forwarded-for': address };
  if (client.secret !== undefined) headers.authorization = basic(client.clientId, client.secret);
  const own = client.secret === undefined ? { client_id: client.clientId } : {};
  const response = await grantry.post('/token', { ...form, ...own }, { headers });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** A family of the client; `refresh` gives the next refresh token. */
async function begin(client: typeof APP | typeof WEB) {
  const code = await grantry.issueCode(client.clientId);
  const form = { grant_type: 'authorization_code', code, redirect_uri: 'https://app.example/cb' };
  const { body } = await post(client, HOME, { ...form, code_verifier: PKCE.verifier });
  const refresh = async (token: unknown, address: string) => {
    const answer = await post(client, address, { grant_type: 'refresh_token', refresh_token: String(token) });
    expect(answer.status).toBe(200);
    return answer.body.refresh_token;
  };
  return { first: body.refresh_token, refresh };
}

/** Five rotations, each with a retry; the two addresses take turns. */
async function inTurn(client: typeof APP | typeof WEB, one: string, other: string): Promise<void> {
  const { first, refresh } = await begin(client);
  let token = first;
  for (let turn = 0; turn < 5; turn++) {
    const [rotating, retrying] = turn % 2 === 0 ? [one, other] : [other, one];
    const successor = await refresh(token, rotating);
    expect(await refresh(token, retrying)).toBe(successor);
    token = successor;
  }
  await refresh(token, one);
}

const events = (type: string) => grantry.audits().filter(({ event }) => event === type);
const ALERT = 'refresh_token.retried_elsewhere';

describe('a refresh token that is retried within the grace', () => {
  it.each([
    ['/24 of IPv4', HOME, ELSEWHERE],
    ['/48 of IPv6', '2001:db8:1::7', '2001:db8:2::7'],
  ])(
    'from two networks (%s) in turn over five rotations → one alert, a line with both addresses for each, no revocation',
    async (_, one, other) => {
      await inTurn(APP, one, other);
      const [line, ...more] = events(ALERT);
      expect(more).toEqual([]);
      expect(line).toMatchObject({
        level: 'warn',
        clientId: APP.clientId,
        address: other,
        alert: {
          type: ALERT,
          action: 'answered_again',
          presentedGeneration: 2,
          currentGeneration: 3,
          address: other,
          lastAddress: one,
        },
      });
      expect(events('refresh_token.retried').map(({ address, lastAddress }) => [address, lastAddress])).toEqual(
        [0, 1, 2, 3, 4].map((turn) => (turn % 2 === 0 ? [other, one] : [one, other])),
      );
      expect([events('refresh_token.reuse_detected'), events('token.revoked')]).toEqual([[], []]);
      const metrics = await (await fetch(grantry.adminUrl('/metrics'))).text();
      expect(metrics).toMatch(/^grantry_refresh_retried_elsewhere_total 1$/m);
    },
  );

  it.each([
    ['in turn by IPv4 and IPv6', APP, HOME, '2001:db8:1::7'],
    ['from two addresses of one /24', APP, HOME, '192.0.2.200'],
    ['from two /64 of one /48', APP, '2001:db8:1:2::7', '2001:db8:1:ffff::7'],
    ['by a confidential client behind two gateways', WEB, HOME, ELSEWHERE],
  ])('%s → no alert, and no line with a second address', async (_, client, one, other) => {
    await inTurn(client, one, other);
    expect(events(ALERT)).toEqual([]);
    expect(events('refresh_token.retried').map(({ lastAddress }) => lastAddress)).toEqual(Array(5).fill(undefined));
  });

  it('by two tabs at once → no alert', async () => {
    const { first, refresh } = await begin(APP);
    let token = first;
    for (let turn = 0; turn < 5; turn++) {
      const [one, other] = await Promise.all([refresh(token, HOME), refresh(token, HOME)]);
      expect(other).toBe(one);
      token = one;
    }
    expect([events('refresh_token.retried').length, events(ALERT)]).toEqual([5, []]);
  });
});

it('a retry from elsewhere that the store cannot note → answered all the same', async () => {
  await grantry.stop();
  const fault = new StoreUnavailableError('grants.noteRetryElsewhere');
  grantry = await startGrantry({
    clients: [APP],
    trustedProxies: ['127.0.0.1'],
    wrapStores: (stores) => {
      stores.grants.noteRetryElsewhere = () => Promise.reject(fault);
      return stores;
    },
  });
  await inTurn(APP, HOME, ELSEWHERE);
  expect([events('refresh_token.retried').length, events(ALERT)]).toEqual([5, []]);
});
