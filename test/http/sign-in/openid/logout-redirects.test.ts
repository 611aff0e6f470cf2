// Where /logout sends a browser (OpenID Connect RP-Initiated Logout 1.0 §3): to a registered address, compared as text, and
// nowhere else. Each address that has fooled a matcher of redirect addresses is tried (docs/scope.md: RPL-4, R1 to R4).

import { describe, expect, it } from 'vitest';
import { attacksOn, LOOPBACK_ATTACKS, type RedirectAttack } from '../../../oauth/values/redirect-attacks.ts';
import { hintFor, idTokenKey, OPENID, openidPath, signedIn } from '../openid-world.ts';
import type { Page } from '../sign-in-browser.ts';
import { aWorld } from '../sign-in-world.ts';

const BYE = 'https://shop.example/bye';
const LOCAL = 'http://127.0.0.1/callback';
const SHOP = { ...OPENID, postLogoutRedirectUris: [BYE, LOCAL] };
/** Of another client, and of the sign-in: registered, but not for this. */
const FOREIGN: readonly RedirectAttack[] = [
  ['the address of another client', 'https://wiki.example/bye'],
  ...OPENID.redirectUris.map((uri): RedirectAttack => ['a redirect_uri of the client', uri]),
  ['another port of loopback', 'http://127.0.0.1:8080/callback'],
  ['two registered addresses', `${BYE} ${LOCAL}`],
];
const WIKI = {
  ...SHOP,
  uid: 'uid-of-wiki',
  clientId: 'shop.wiki',
  postLogoutRedirectUris: ['https://wiki.example/bye'],
};
const key = await idTokenKey();

/** What an answer does of all that it must not. */
function faultsOf({ status, location, body }: Page): readonly string[] {
  const faults = status === 400 ? [] : [`status ${status}`];
  if (location !== undefined) faults.push(`a redirect to ${location}`);
  if (/<a |http-equiv|evil\.example/.test(body)) faults.push('a link');
  return faults;
}

describe('an address that is not registered, whatever a parser makes of it', () => {
  const attacks = [...attacksOn(BYE), ...LOOPBACK_ATTACKS, ...FOREIGN];
  const ways = ['with a hint', 'with the client alone', 'without a session'] as const;

  it.each(ways)('%s → a 400 page without a link, and nothing ends', async (way) => {
    const world = await aWorld({ clients: [SHOP, WIKI], keys: [key] });
    const browser = await signedIn(world);
    const id_token_hint = await hintFor(world, 'alice', key, { client: SHOP });
    const send = (post_logout_redirect_uri: string): Promise<Page> => {
      const hinted = { id_token_hint, post_logout_redirect_uri };
      const named = { client_id: SHOP.clientId, post_logout_redirect_uri };
      const asker = way === 'without a session' ? world.browser() : browser;
      return asker.get(`/logout?${new URLSearchParams(way === 'with the client alone' ? named : hinted)}`);
    };
    const wrong: unknown[] = [];
    for (const [name, address] of attacks) {
      const faults = faultsOf(await send(address));
      if (faults.length > 0) wrong.push({ name, address, faults });
    }
    expect(wrong).toEqual([]);
    expect((await browser.get(openidPath(world))).status).toBe(302);
    expect(world.events.filter(({ type }) => type === 'session.ended')).toEqual([]);
    // A registered one is no fault: the browser goes there, or the person is asked.
    expect(faultsOf(await send(BYE))).not.toEqual([]);
  });

  it('as a form that another site posts → redirected to the GET, which refuses it', async () => {
    const world = await aWorld({ clients: [SHOP, WIKI], keys: [key] });
    const headers = { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://evil.example' };
    for (const [name, address] of FOREIGN) {
      const form = new URLSearchParams({ client_id: SHOP.clientId, post_logout_redirect_uri: address }).toString();
      const { status, location = '' } = await world.browser().send('POST', '/logout', headers, form);
      expect([name, status, location.startsWith('/logout?')]).toEqual([name, 303, true]);
      expect(faultsOf(await world.browser().get(location))).toEqual([]);
    }
  });
});

it('state of any text → comes back as one parameter of the registered address, and changes nothing else of it', async () => {
  const world = await aWorld({ clients: [SHOP], keys: [key] });
  for (const state of [
    '#',
    '&post_logout_redirect_uri=https://evil.example',
    '//evil.example',
    '\r\nX: y',
    '@evil',
    '\u2028',
  ]) {
    const query = new URLSearchParams({ client_id: SHOP.clientId, post_logout_redirect_uri: BYE, state });
    const { status, location = '' } = await world.browser().get(`/logout?${query}`);
    const { origin, pathname, searchParams, hash } = new URL(location);
    expect([status, origin + pathname, [...searchParams], hash]).toEqual([302, BYE, [['state', state]], '']);
  }
});
