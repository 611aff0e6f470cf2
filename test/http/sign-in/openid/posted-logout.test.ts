// POST /logout (OpenID Connect RP-Initiated Logout 1.0 §2): a form is redirected to the GET as it came, any other POST is 405.

import { describe, expect, it } from 'vitest';
import { OPENID, openidPath, signedIn } from '../openid-world.ts';
import { aWorld, type World } from '../sign-in-world.ts';

const BYE = 'https://shop.example/bye';
const SHOP = { ...OPENID, postLogoutRedirectUris: [BYE] };
const FORM = { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://shop.example' };

function post(world: World, body: string | undefined, headers: Readonly<Record<string, string>> = FORM, query = '') {
  return world.browser().send('POST', `/logout${query}`, headers, body);
}

describe('a form that is posted to /logout', () => {
  it('→ its parameters to the letter, doubled ones doubled, which the GET refuses', async () => {
    const world = await aWorld({ clients: [SHOP] });
    const pairs: [string, string][] = [
      ['state', 'st&te= 1ü'],
      ['state', 'again'],
      ['client_id', SHOP.clientId],
    ];
    const { status, location = '' } = await post(world, new URLSearchParams(pairs).toString());
    expect([status, [...new URL(location, world.issuer).searchParams]]).toEqual([303, pairs]);
    expect((await world.browser().get(location)).status).toBe(400);
    expect(world.lastReason()).toBe('duplicate_parameter');
  });

  it('of an issuer with a path → stays below it', async () => {
    const world = await aWorld({ clients: [SHOP], issuer: 'https://id.example/auth' });
    const answer = await world.browser().send('POST', '/auth/logout', FORM, `client_id=${SHOP.clientId}`);
    expect([answer.status, answer.location]).toEqual([303, `/auth/logout?client_id=${SHOP.clientId}`]);
  });

  it('without a field → the question, from a browser that is signed in', async () => {
    const world = await aWorld({ clients: [SHOP] });
    const { status, location = '' } = await post(world, '');
    expect([status, location]).toEqual([303, '/logout?']);
    const page = await (await signedIn(world)).get(location);
    expect([page.status, page.body.includes('name="csrf"')]).toEqual([200, true]);
  });

  it('of 8 192 bytes → the redirect; of one byte more, or whose query would be longer → 413', async () => {
    const world = await aWorld({ clients: [SHOP] });
    const status = async (body: string) => (await post(world, body)).status;
    const filled = (bytes: number) => 'state='.padEnd(bytes, 'x');
    expect([await status(filled(8192)), await status(filled(8193))]).toEqual([303, 413]);
    expect(await status(`state=${'ü'.repeat(2000)}`)).toBe(413);
  });

  it('with a password → 400, and no address that holds it', async () => {
    const world = await aWorld({ clients: [SHOP] });
    const { status, location } = await post(world, 'password=hunter2');
    expect([status, location, world.lastReason()]).toEqual([400, undefined, 'credential_in_query']);
  });
});

it.each<[string, string | undefined, Readonly<Record<string, string>>, string]>([
  ['a query', `client_id=${SHOP.clientId}`, FORM, `?client_id=${SHOP.clientId}`],
  ['an empty query', `client_id=${SHOP.clientId}`, FORM, '?'],
  ['JSON', '{}', { 'content-type': 'application/json' }, ''],
  ['a part of multipart', '--x--', { 'content-type': 'multipart/form-data; boundary=x' }, ''],
  ['no body', undefined, {}, ''],
  ['a malformed form', 'state=%zz', FORM, ''],
  ['a compressed form', 'state=a', { ...FORM, 'content-encoding': 'gzip' }, ''],
])('a POST of %s to /logout → 405 with Allow: GET, and nothing ends', async (_what, body, headers, query) => {
  const world = await aWorld({ clients: [SHOP] });
  const browser = await signedIn(world);
  const answer = await browser.send('POST', `/logout${query}`, headers, body);
  expect([answer.status, answer.headers.get('allow'), answer.location]).toEqual([405, 'GET', undefined]);
  expect((await browser.get(openidPath(world))).status).toBe(302);
});
