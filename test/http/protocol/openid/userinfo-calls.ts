// What tests of userinfo share: a person with claims, clients that may ask for them, and a call as one answer.

import { hashPassword, type LocalUser, LocalUsers } from '../../../../src/login/local/local-users.ts';
import type { Grant } from '../../../../src/oauth/ports/grant-store.ts';
import { systemClock } from '../../../../src/processes/lifecycle/machine.ts';
import type { Grantry, TestClient } from '../../../grantry.ts';
import { type Answer, TokenCalls, WEB } from '../token-calls.ts';

/** One answer of userinfo, with its challenge. */
export interface UserinfoAnswer extends Answer {
  readonly headers: Headers;
  /** Undefined without a challenge. */
  readonly challenge: string | undefined;
}

/** The scopes by which all is disclosed. */
export const PERSONAL = ['openid', 'profile', 'email', 'groups'] as const;

/** A client of OpenID Connect, by the one key that a test has. */
export const OPENID_CLIENT = {
  scopes: PERSONAL,
  idTokens: { signingAlgorithm: 'ES256', lifetimeSeconds: 3600 },
} as const;

const ALICE = {
  username: 'alice',
  displayName: 'Alice Example',
  email: 'alice@example.com',
  groups: ['team-a', 'admins'],
  disabled: false,
};

/** The password of {@link aPerson}. */
export const PASSWORD = 'a password of alice';

/** A directory of one person, who can be changed. */
export async function aPerson() {
  const alice = { ...ALICE, passwordHash: await hashPassword(PASSWORD) };
  const owners = new LocalUsers({ clock: systemClock, users: [alice] });
  const subject = (await owners.authenticate('alice', PASSWORD))?.subject ?? '';
  return {
    owners,
    subject,
    change: (changes: Partial<LocalUser> = {}) => owners.replace([{ ...alice, ...changes }]),
    remove: () => owners.replace([]),
  };
}

/** Calls userinfo as it is called, with the reason of the log line. */
export async function userinfo(grantry: Grantry, init: RequestInit = {}, query = ''): Promise<UserinfoAnswer> {
  const response = await fetch(`${grantry.url('/userinfo')}${query}`, init);
  const text = await response.text();
  const reason = grantry.logs().findLast(({ route }) => route === 'userinfo')?.reason;
  const challenge = response.headers.get('www-authenticate') ?? undefined;
  const body = text === '' ? {} : JSON.parse(text);
  return { status: response.status, body, reason, headers: response.headers, challenge };
}

/** The same with a token in the header. */
export function withToken(grantry: Grantry, token: unknown, init: RequestInit = {}): Promise<UserinfoAnswer> {
  return userinfo(grantry, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });
}

/** The tokens of a person who consented at a client. @param proof of a DPoP key */
export async function personTokens(
  grantry: Grantry,
  { clientId = WEB.clientId, secret, subject, scope = PERSONAL, audiences = [], openid, proof }: TokenWishes,
): Promise<Readonly<Record<string, unknown>>> {
  const calls = new TokenCalls(grantry, secret === undefined ? { clientId } : { clientId, secret });
  const code = await grantry.issueCode(clientId, {
    subject,
    scope: [...scope],
    audiences: [...audiences, grantry.issuer],
    openid,
  });
  const { status, body } = await calls.redeem(code, {}, proof);
  if (status !== 200) throw new Error(`the token endpoint answered ${status}`);
  return body;
}

interface TokenWishes extends Pick<TestClient, 'secret'> {
  readonly clientId?: string;
  readonly subject: string;
  readonly scope?: readonly string[];
  /** Of the APIs that the grant is for as well. */
  readonly audiences?: readonly string[];
  /** The sign-in; without it there is no ID token. */
  readonly openid?: Grant['openid'];
  readonly proof?: string;
}
