// `prompt=none` (OpenID Connect Core §3.1.2.1): a code or an error at once. Nothing is shown, stored or set.

import { describe, expect, it } from 'vitest';
import { ASKS, browserOf, key, SILENT_CASES } from './openid/silent-cases.ts';
import { OPENID, openidPath, signedIn } from './openid-world.ts';
import { answerOf } from './sign-in-browser.ts';
import { aWorld, CALLBACK } from './sign-in-world.ts';

/** All that an unanswered silent request may do at the stores. */
const READS = ['sessions.use', 'watermarks.read', 'consents.read'];

describe('prompt=none', () => {
  it('given a person who need not be asked → the code', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const browser = await signedIn(world);
    const answer = await browser.get(openidPath(world, { prompt: 'none' }));
    const { code, ...rest } = answerOf(answer);
    expect([answer.status, code]).toEqual([302, expect.stringMatching(/^ac1\./)]);
    expect(rest).toEqual({ state: 'st&te= 1', iss: world.issuer });
  });

  it.each(SILENT_CASES)(
    'given %s → the error at the client by 302, nothing stored, no cookie',
    async (_what, given, ...expected) => {
      const [error, reason] = expected;
      const world = await aWorld({ clients: given.clients, keys: [key] });
      const browser = await browserOf(world, given);
      await given.before?.(world);
      const changes = { prompt: 'none', ...(await given.changes?.(world)) };
      const before = world.storeCalls().length;
      const answer = await browser.get(openidPath(world, changes));
      expect(answer.status).toBe(302);
      const { error_description: _text, ...rest } = answerOf(answer);
      expect(rest).toEqual({ error, state: 'st&te= 1', iss: world.issuer });
      expect(world.logs().at(-1)).toMatchObject({ outcome: 'refused', reason });
      expect(answer.headers.getSetCookie()).toEqual([]);
      const calls = world.storeCalls().slice(before);
      expect(calls.filter((call) => !READS.includes(call))).toEqual([]);
      expect(await world.metrics()).toContain(
        `grantry_token_errors_total{endpoint="authorize",error="${error}",reason="${reason}"} 1`,
      );
    },
  );

  it('given an unavailable store → temporarily_unavailable at the client', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const browser = await signedIn(world);
    world.breakStore('sessions');
    const answer = await browser.get(openidPath(world, { prompt: 'none' }));
    expect([answer.status, answerOf(answer).error]).toEqual([302, 'temporarily_unavailable']);
  });
});

describe('prompt=none of a client that only the baseline admits', () => {
  const baseline = (client: typeof OPENID) => ({ ...client, admittedBy: 'baseline' }) as const;

  it('given no session → a 400 page that links to login_required, and no cookie', async () => {
    const world = await aWorld({ clients: [baseline(OPENID)] });
    const answer = await world.browser().get(openidPath(world, { prompt: 'none' }));
    expect([answer.status, answer.location, answer.headers.getSetCookie()]).toEqual([400, undefined, []]);
    const [, href = ''] = /<a href="([^"]*)"/.exec(answer.body) ?? [];
    const link = new URL(href.replaceAll('&#38;', '&'));
    expect([link.origin + link.pathname, link.searchParams.get('error')]).toEqual([CALLBACK, 'login_required']);
    expect(world.lastReason()).toBe('not_signed_in');
    expect(world.storeCalls()).toEqual([]);
  });

  it('given no session, in a frame → login_required by 302', async () => {
    const world = await aWorld({ clients: [baseline(OPENID)] });
    const answer = await world.browser().get(openidPath(world, { prompt: 'none' }), { 'sec-fetch-dest': 'iframe' });
    expect([answer.status, answerOf(answer).error]).toEqual([302, 'login_required']);
  });

  it('given a person signed in → the code, or consent_required by 302', async () => {
    const world = await aWorld({ clients: [baseline(OPENID)] });
    const browser = await signedIn(world);
    const ask = async () => answerOf(await browser.get(openidPath(world, { prompt: 'none' })));
    expect((await ask()).code).toMatch(/^ac1\./);
    world.setClients([baseline(ASKS)]);
    expect((await ask()).error).toBe('consent_required');
  });
});
