// A provider that takes codes and never answers, beside one that works.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { anOidcProvider } from '../../../login/upstream/providers.ts';
import { json, ScriptedProvider } from '../../../login/upstream/scripted-provider.ts';
import { until } from '../../../until.ts';
import { answerOf, hidden, type Page } from '../sign-in-browser.ts';
import { aWorld, WEB, type World } from '../sign-in-world.ts';

/** As many calls as one provider may hold. */
const AT_ONCE = 32;

let corp: ScriptedProvider;
let partner: ScriptedProvider;
beforeAll(async () => {
  [corp, partner] = await Promise.all([ScriptedProvider.start(), ScriptedProvider.start()]);
  partner.claims = { preferred_username: 'ada', name: 'Ada', email: 'a@b.example', email_verified: true, groups: [] };
});
afterAll(() => {
  corp.stop();
  partner.stop();
});

/** A browser of its own leaves for a provider, and comes back with a code. */
async function comeBack(world: World, name: string): Promise<Page> {
  const browser = world.browser();
  const page = await browser.get(world.authorizePath());
  const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
  const { location = '' } = await browser.post(`/login/upstream/${name}`, fields);
  const { searchParams } = new URL(location);
  if (name === 'partner') partner.nonce = searchParams.get('nonce') ?? '';
  let arrived = await browser.get(`/login/callback/${name}?state=${searchParams.get('state')}&code=c`);
  while (arrived.location?.startsWith('/')) arrived = await browser.get(arrived.location);
  return arrived;
}

it('given 32 codes that it holds → the 33rd is answered 503 at once, the other provider and the rest of the server go on', async () => {
  const held: (() => void)[] = [];
  corp.answers.set('/token', (_request, response) => {
    held.push(() => json(response, { error: 'invalid_grant' }, 400));
  });
  const other = { name: 'partner', uid: 'uid-partner', displayName: 'Partner', issuer: partner.issuer };
  const providers = [anOidcProvider({ issuer: corp.issuer }), anOidcProvider(other)];
  const clients = [Object.assign({}, WEB, { consent: 'Skip' as const })];
  const world = await aWorld({ clients, providers, hasNoUsers: true, rateLimits: false });
  const waiting = Array.from({ length: AT_ONCE }, () => comeBack(world, 'corp'));
  await until('all codes are there', () => held.length === AT_ONCE);

  const refused = await comeBack(world, 'corp');
  expect([refused.status, refused.headers.get('retry-after'), world.lastReason()]).toEqual([
    503,
    expect.stringMatching(/^\d+$/),
    'upstream_unavailable',
  ]);
  expect(corp.asked.get('/token')).toBe(AT_ONCE);
  expect(answerOf(await comeBack(world, 'partner'))).toHaveProperty('code');

  for (const answer of held) answer();
  // 503 where the test takes longer than a call may.
  for (const { status } of await Promise.all(waiting)) expect([502, 503]).toContain(status);
  const again = comeBack(world, 'corp');
  await until('there is room again', () => held.length === AT_ONCE + 1);
  held.at(-1)?.();
  expect([502, 503]).toContain((await again).status);
});
