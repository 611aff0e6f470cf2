// How long a person is not asked again for what they once allowed. The clock of the server is moved by a year.

import { expect, it } from 'vitest';
import { hidden, type TestBrowser } from './sign-in-browser.ts';
import { aWorld, PASSWORD, type World } from './sign-in-world.ts';

const YEAR = 365 * 24 * 3_600_000;

/** Alice signs in again; where she is sent: to the consent page, or on to the client. */
async function arrives(world: World): Promise<{ readonly browser: TestBrowser; readonly path: string }> {
  const browser = world.browser();
  const page = await browser.get(world.authorizePath());
  const fields = {
    username: 'alice',
    password: PASSWORD,
    csrf: hidden(page, 'csrf'),
    request: hidden(page, 'request'),
  };
  const answer = await browser.post('/login', fields);
  expect(answer.status).toBe(303);
  return { browser, path: answer.location ?? '' };
}

const isAsked = async (world: World) => (await arrives(world)).path.startsWith('/consent/');

it('a consent lasts a year from when it was given, and no longer, however often it was used', async () => {
  const world = await aWorld();
  const { browser, path } = await arrives(world);
  const answer = await browser.post(path, { decision: 'allow', csrf: hidden(await browser.get(path), 'csrf') });
  expect(answer.status).toBe(303);
  expect(await isAsked(world)).toBe(false);
  world.advance(YEAR - 1);
  expect(await isAsked(world)).toBe(false);
  world.advance(1);
  expect(await isAsked(world)).toBe(true);
});
