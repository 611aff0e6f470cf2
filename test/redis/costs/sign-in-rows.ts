// The requests of a browser whose person signs in by a password and agrees to what a plain client asks for.

import { PLAIN, PORTAL, SIGN_IN_SCOPES } from './clients.ts';
import type { Row } from './ledger.ts';
import { usernameOf } from './people.ts';
import {
  agreed,
  allowing,
  atConsent,
  atLogin,
  authorizePath,
  expecting,
  newBrowser,
  returning,
  submittingLogin,
  type Wish,
} from './visits.ts';
import type { CostWorld } from './world.ts';

const API = { caller: PLAIN, scope: 'read' };
const OPENID = { caller: PORTAL, scope: [...SIGN_IN_SCOPES, 'read'].join(' ') };

/** Of a person who was never asked before. */
const askedFirst = (world: CostWorld): Wish => ({ ...API, username: world.newPerson() });

async function again(world: CostWorld, wish: Omit<Wish, 'username'>) {
  const browser = await agreed(await atConsent(world, { ...wish, username: world.newPerson() }));
  return returning(browser, authorizePath(wish));
}

export const SIGN_IN_ROWS: readonly Row[] = [
  {
    name: '/authorize without a session',
    async prepare(world) {
      const browser = newBrowser(world);
      return expecting(200, () => browser.get(authorizePath(API)));
    },
  },
  {
    name: 'sign-in by password',
    async prepare(world) {
      const wish = { ...API, username: usernameOf(0) };
      return submittingLogin(await atLogin(world, wish), wish);
    },
  },
  {
    name: 'page of consent',
    async prepare(world) {
      const { browser, path } = await atConsent(world, askedFirst(world));
      return expecting(200, () => browser.get(path));
    },
  },
  {
    name: 'consent',
    prepare: async (world) => allowing(await atConsent(world, askedFirst(world))),
  },
  {
    name: 'return to the client after consent',
    async prepare(world) {
      const asked = await atConsent(world, askedFirst(world));
      const { location = '' } = await allowing(asked)();
      return returning(asked.browser, location);
    },
  },
  { name: '/authorize with a session', prepare: (world) => again(world, API) },
  { name: '/authorize with a session and openid', prepare: (world) => again(world, OPENID) },
];
