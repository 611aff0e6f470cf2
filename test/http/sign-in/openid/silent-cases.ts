// Silent requests that cannot be answered by a code (OpenID Connect Core §3.1.2.6), and what the client is answered.

import type { Client } from '../../../../src/oauth/registry/client.ts';
import { hintFor, idTokenKey, OPENID, type Query, signedIn } from '../openid-world.ts';
import type { TestBrowser } from '../sign-in-browser.ts';
import { NATIVE, type World } from '../sign-in-world.ts';

/** {@link OPENID}, but its people must consent. */
export const ASKS = { ...OPENID, consent: 'Required' } as const;
const PUBLIC = { ...NATIVE, scopes: ['openid'], consent: 'Skip', redirectUris: ['http://localhost:8000'] } as const;
/** Of the hints. */
export const key = await idTokenKey();

/** A request, and whose browser makes it. */
export interface SilentCase {
  readonly clients: readonly Client[];
  /** Undefined: the browser has no session. */
  readonly person?: string;
  /** How long ago, in milliseconds. */
  readonly age?: number;
  readonly changes?: (world: World) => Promise<Query> | Query;
  readonly before?: (world: World) => Promise<void>;
}

/** Each with the error at the client, and the reason of the log line. */
export const SILENT_CASES: readonly (readonly [what: string, given: SilentCase, error: string, reason: string])[] = [
  ['no session', { clients: [OPENID] }, 'login_required', 'not_signed_in'],
  [
    'another person signed in',
    {
      clients: [OPENID],
      person: 'alice',
      changes: async (world) => ({ id_token_hint: await hintFor(world, 'bob', key) }),
    },
    'login_required',
    'sign_in_needed',
  ],
  [
    'a sign-in that is too old',
    { clients: [OPENID], person: 'alice', age: 65_000, changes: () => ({ max_age: '60' }) },
    'login_required',
    'sign_in_needed',
  ],
  [
    'a sign-in before a revocation',
    {
      clients: [OPENID],
      person: 'alice',
      age: 1000,
      before: async (world) => void (await world.stores.watermarks.raise({ kind: 'global' }, world.now())),
    },
    'login_required',
    'sign_in_needed',
  ],
  ['a person without consent', { clients: [ASKS], person: 'alice' }, 'consent_required', 'consent_needed'],
  [
    'a public client on localhost, though it never asks',
    {
      clients: [PUBLIC],
      person: 'alice',
      changes: () => ({ client_id: PUBLIC.clientId, redirect_uri: 'http://localhost:8000' }),
    },
    'consent_required',
    'consent_needed',
  ],
];

/** The browser that makes the request. Its person signed in at another client. */
export async function browserOf(world: World, { clients, person, age = 0 }: SilentCase): Promise<TestBrowser> {
  if (person === undefined) return world.browser();
  world.setClients([...clients, { ...OPENID, uid: 'uid-of-another', clientId: 'another' }]);
  const browser = await signedIn(world, person, { client_id: 'another' });
  world.advance(age);
  return browser;
}
