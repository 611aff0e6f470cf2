// POST /authorize (OpenID Connect Core §3.1.2.1): a form with scope openid is redirected to the GET, any other POST is 405.

import { describe, expect, it } from 'vitest';
import { rawAnswer } from '../server/raw-socket.ts';
import { OPENID, openidPath, signedIn } from './openid-world.ts';
import { answerOf } from './sign-in-browser.ts';
import { aWorld, CALLBACK, type World } from './sign-in-world.ts';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

/** The form of a good request. */
function formOf(world: World, changes: Parameters<World['authorizePath']>[0] = {}): string {
  return new URL(openidPath(world, changes), world.issuer).search.slice(1);
}

/** The form, made longer by an unknown parameter, which would be shorter in a query. */
function formOfLength(world: World, bytes: number): string {
  const form = `${formOf(world)}&filler=`;
  const escapes = Math.floor((bytes - form.length) / 3);
  return (form + '%78'.repeat(escapes)).padEnd(bytes, 'x');
}

describe('a form with scope openid at /authorize', () => {
  it('from another site, without cookies → 303 to the GET with the same parameters, which has the session', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const form = formOf(world, { nonce: 'n ü&=+%', resource: undefined });
    const answer = await world.browser().send('POST', '/authorize', { ...FORM, origin: 'https://shop.example' }, form);
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([303, []]);
    const { pathname, search } = new URL(answer.location ?? '', world.issuer);
    expect(pathname).toBe('/authorize');
    expect([...new URLSearchParams(search)]).toEqual([...new URLSearchParams(form)]);
    expect(world.storeCalls()).toEqual([]);
    const browser = await signedIn(world);
    const { code, ...rest } = answerOf(await browser.get(answer.location ?? ''));
    expect(code).toMatch(/^ac1\./);
    expect(rest).toEqual({ state: 'st&te= 1', iss: world.issuer });
  });

  it('at an issuer with a path → stays below it', async () => {
    const world = await aWorld({ clients: [OPENID], issuer: 'https://id.example/auth' });
    const answer = await world.browser().send('POST', '/auth/authorize', FORM, formOf(world));
    expect([answer.status, answer.location?.startsWith('/auth/authorize?')]).toEqual([303, true]);
  });

  it('with a doubled parameter → both, which the GET refuses', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const form = formOf(world, { prompt: ['login', 'none'] });
    const { location = '' } = await world.browser().send('POST', '/authorize', FORM, form);
    expect(new URL(location, world.issuer).searchParams.getAll('prompt')).toEqual(['login', 'none']);
    expect(answerOf(await world.browser().get(location)).error).toBe('invalid_request');
    expect(world.lastReason()).toBe('duplicate_parameter');
  });

  it('with openid among two scopes → both, which the GET refuses', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const form = formOf(world, { scope: ['shop/read', 'email openid'] });
    const { location = '' } = await world.browser().send('POST', '/authorize', FORM, form);
    expect(new URL(location, world.issuer).searchParams.getAll('scope')).toEqual(['shop/read', 'email openid']);
  });

  it('of 8 192 bytes → the redirect, of one byte more → 413, also without a length', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const send = async (bytes: number) =>
      (await world.browser().send('POST', '/authorize', FORM, formOfLength(world, bytes))).status;
    expect([await send(8192), await send(8193), await send(70_000)]).toEqual([303, 413, 413]);
    const body = new Blob([formOfLength(world, 8193)]).stream();
    const streamed: RequestInit = { method: 'POST', headers: FORM, body, duplex: 'half' };
    const answer = await fetch(`${world.issuer}/authorize`, streamed);
    expect(answer.status).toBe(413);
  });

  it('announced with 8 193 bytes → 413 before a byte of it is read', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const headers = [
      `Host: ${new URL(world.issuer).host}`,
      `Content-Type: ${FORM['content-type']}`,
      'Content-Length: 8193',
    ];
    const request = ['POST /authorize HTTP/1.1', ...headers, '', ''].join('\r\n');
    expect((await rawAnswer(Number(new URL(world.issuer).port), request)).status).toBe(413);
  });

  it('whose query would be longer than 8 KiB → 413', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const form = `${formOf(world)}&filler=${'ü'.repeat(2000)}`;
    expect(Buffer.byteLength(form)).toBeLessThan(8192);
    const answer = await world.browser().send('POST', '/authorize', FORM, form);
    expect([answer.status, answer.location]).toEqual([413, undefined]);
  });

  it('with a password → 400, and no address that holds it', async () => {
    const world = await aWorld({ clients: [OPENID] });
    const answer = await world.browser().send('POST', '/authorize', FORM, `${formOf(world)}&password=hunter2`);
    expect([answer.status, answer.location, world.lastReason()]).toEqual([400, undefined, 'credential_in_query']);
  });
});

describe('any other POST at /authorize', () => {
  const good = (world: World) => formOf(world);
  it.each<[string, string, Readonly<Record<string, string>>, (world: World) => string | undefined]>([
    ['a form without openid', '', FORM, (world) => formOf(world, { scope: 'shop/read' })],
    ['a form with a scope that only begins so', '', FORM, (world) => formOf(world, { scope: 'openid2' })],
    ['a form without a scope', '', FORM, (world) => formOf(world, { scope: undefined })],
    ['an empty form', '', FORM, () => ''],
    ['a form that is malformed', '', FORM, (world) => `${good(world)}&state=%zz`],
    ['a form with a query', `?redirect_uri=${encodeURIComponent(CALLBACK)}`, FORM, good],
    ['a form with an empty query', '?', FORM, good],
    ['a compressed form', '', { ...FORM, 'content-encoding': 'gzip' }, good],
    ['a form in Latin-1', '', { 'content-type': `${FORM['content-type']};charset=iso-8859-1` }, good],
    ['JSON', '', { 'content-type': 'application/json' }, () => '{"scope":"openid"}'],
    ['JSON of 8 193 bytes', '', { 'content-type': 'application/json' }, () => '1'.repeat(8193)],
    ['multipart', '', { 'content-type': 'multipart/form-data; boundary=x' }, () => '--x--'],
    ['no body', '', {}, () => undefined],
  ])('(%s) → 405 with Allow: GET', async (_what, query, headers, body) => {
    const world = await aWorld({ clients: [OPENID] });
    const browser = await signedIn(world);
    const answer = await browser.send('POST', `/authorize${query}`, headers, body(world));
    expect([answer.status, answer.headers.get('allow'), answer.location]).toEqual([405, 'GET', undefined]);
    expect(world.lastReason()).toBe('method_not_allowed');
  });
});
