// What the admin port says about the stores: every call is timed, every failure counted, also one without an effect on a request.

import { expect, it } from 'vitest';
import { hidden } from '../sign-in/sign-in-browser.ts';
import { aWorld, PASSWORD, WEB, type World } from '../sign-in/sign-in-world.ts';

async function signedIn(world: World) {
  const browser = world.browser();
  const page = await browser.get(world.authorizePath());
  const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
  await browser.post('/login', { username: 'alice', password: PASSWORD, ...fields });
  return browser;
}

const count = (metrics: string, series: string) => {
  const line = metrics.split('\n').find((candidate) => candidate.startsWith(`grantry_store_${series} `));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
};

it('each call of a store is timed under the name of store and action', async () => {
  const world = await aWorld({ clients: [{ ...WEB, consent: 'Skip' }] });
  const browser = await signedIn(world);
  const before = await world.metrics();
  await browser.get(world.authorizePath());
  const after = await world.metrics();
  for (const operation of ['sessions.use', 'watermarks.read', 'consents.read', 'grants.issue', 'replays.claim']) {
    const series = `duration_seconds_count{operation="${operation}"}`;
    expect(count(after, series), operation).toBe((count(before, series) ?? 0) + 1);
  }
  expect(after).not.toContain('grantry_store_errors_total{');
});

it('a failed call is counted by what failed and why, also when the request succeeds all the same', async () => {
  const world = await aWorld({ clients: [{ ...WEB, consent: 'Skip' }] });
  const browser = await signedIn(world);
  world.breakStore('replays');
  expect((await browser.get(world.authorizePath())).location).toContain('code=');
  world.breakStore('consents', new Error('broken'));
  await browser.get(world.authorizePath());
  const metrics = await world.metrics();
  expect(count(metrics, 'errors_total{operation="replays.claim",reason="unavailable"}')).toBe(1);
  expect(count(metrics, 'errors_total{operation="consents.read",reason="unexpected"}')).toBe(1);
  expect(count(metrics, 'duration_seconds_count{operation="replays.claim"}')).toBe(1);
});

it('an action that was renamed keeps the value of its label', async () => {
  const world = await aWorld({ clients: [WEB] });
  const metrics = await world.metrics();
  for (const operation of ['users.settle', 'users.settleAbsent', 'logouts.settle']) {
    expect(count(metrics, `duration_seconds_count{operation="${operation}"}`), operation).toBeDefined();
  }
  expect(metrics).not.toMatch(/operation="(?:users\.record|logouts\.acknowledge)/);
});
