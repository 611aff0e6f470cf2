// Grants and the requests for them, right in every respect; a test names what it makes different.

import { hash } from 'node:crypto';
import type {
  AccessRequest,
  Grant,
  GrantStore,
  NewGrant,
  RedeemRequest,
  RotateRequest,
} from '../../src/oauth/ports/grant-store.ts';
import type { NewSession, Session, SessionStore } from '../../src/oauth/ports/login-stores.ts';
import type { NewAccessToken, StoredAccessToken } from '../../src/oauth/ports/token-stores.ts';
import { shardOfPerson } from '../../src/oauth/values/shard.ts';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const DAY = 24 * 60 * MINUTE;
export const CODE_LIFETIME = 60 * SECOND;
export const RETENTION = 90 * DAY;

/** Of the person of the samples. */
export const SHARD = shardOfPerson('usr_alice');

/** After every watermark that a test raises: a grant of an earlier sign-in would not be issued. */
const LATE_SIGN_IN = Date.UTC(2100, 0);

export const SECRET_HASH = digest('secret');
const CHALLENGE = digest('verifier');

let made = 0;

/** A digest as the stores keep them: 43 base64url characters. */
export function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}

/** An id that no other call has given. */
export function uniqueId(): string {
  made += 1;
  return `id-${made}`;
}

/** A grant with an id of its own. */
export function sampleGrant(different: Partial<NewGrant> = {}): NewGrant {
  return {
    grantId: `${shardOfPerson(different.subject ?? 'usr_alice')}.${digest(uniqueId())}`,
    clientUid: 'uid-of-shop',
    clientId: 'default.shop',
    subject: 'usr_alice',
    sessionId: 'session-of-alice',
    authTime: LATE_SIGN_IN,
    scope: ['read', 'write'],
    audiences: ['https://api.example', 'https://files.example'],
    redirectUri: 'https://shop.example/cb',
    codeChallenge: CHALLENGE,
    ...different,
  };
}

/** A session with an id of its own, in the shard of its person. */
export function sampleSession(different: Partial<NewSession> = {}): NewSession {
  return {
    sessionId: `${shardOfPerson(different.subject ?? 'usr_alice')}.${digest(uniqueId())}`,
    sid: digest(uniqueId()),
    subject: 'usr_alice',
    username: 'alice',
    displayName: 'Alice Example',
    idleLifetime: 60 * MINUTE,
    absoluteLifetime: 12 * 60 * MINUTE,
    ...different,
  };
}

/** A signed-in browser of the person. @throws Error if another credential of the person is recorded */
export async function signedIn(
  sessions: SessionStore,
  different: Partial<NewSession> = {},
  credential?: string,
): Promise<Session> {
  const session = await sessions.create(sampleSession(different), credential);
  if (session === 'outdated') throw new Error('another credential is recorded');
  return session;
}

export function accessRequest(different: Partial<AccessRequest> = {}): AccessRequest {
  return {
    scope: undefined,
    resource: undefined,
    allowedScopes: ['read', 'write', 'admin'],
    allowedAudiences: ['https://api.example', 'https://files.example', 'https://other.example'],
    defaultAudience: undefined,
    at: undefined,
    ...different,
  };
}

/** The request that redeems the grant's code, under an attempt id of its own. */
export function redeemRequest(grant: Grant, different: Partial<RedeemRequest> = {}): RedeemRequest {
  return {
    grantId: grant.grantId,
    secretHash: SECRET_HASH,
    clientUid: grant.clientUid,
    redirectUri: grant.redirectUri,
    confirmation: undefined,
    bindsRefreshTokens: false,
    verifierChallenge: CHALLENGE,
    attemptId: uniqueId(),
    retention: RETENTION,
    access: accessRequest(),
    accessToken: undefined,
    revokedBefore: 0,
    address: '192.0.2.1',
    ...different,
  };
}

/** The request that refreshes with the given generation, under an attempt id of its own. */
export function rotateRequest(grant: Grant, generation: number, different: Partial<RotateRequest> = {}): RotateRequest {
  return {
    grantId: grant.grantId,
    clientUid: grant.clientUid,
    generation,
    confirmation: undefined,
    isPublic: false,
    rotation: 'Always',
    reuseGrace: 10 * SECOND,
    idleLifetime: 14 * DAY,
    absoluteLifetime: 90 * DAY,
    retention: RETENTION,
    attemptId: uniqueId(),
    access: accessRequest(),
    accessToken: undefined,
    address: '192.0.2.2',
    subject: grant.subject,
    revokedBefore: 0,
    ...different,
  };
}

/** A grant whose code can be redeemed. */
export async function issued(grants: GrantStore, different: Partial<NewGrant> = {}): Promise<Grant> {
  const grant = sampleGrant(different);
  await grants.issue(grant, SECRET_HASH, CODE_LIFETIME, RETENTION);
  return grant;
}

/** A grant whose refresh token has generation 0. */
export async function redeemed(
  grants: GrantStore,
  different: Partial<NewGrant> = {},
  access: Partial<AccessRequest> = {},
): Promise<Grant> {
  const grant = await issued(grants, different);
  const answer = await grants.redeem(redeemRequest(grant, { access: accessRequest(access) }));
  if (answer.outcome !== 'redeemed') throw new Error(`the sample grant was not redeemed: ${answer.outcome}`);
  return grant;
}

/** A grant whose refresh token has the given generation. */
export async function rotatedTo(grants: GrantStore, generation: number): Promise<Grant> {
  const grant = await redeemed(grants);
  for (let current = 0; current < generation; current++) await grants.rotate(rotateRequest(grant, current));
  return grant;
}

/** How often each outcome occurs. */
export function tally(answers: readonly { readonly outcome: string }[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of answers) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

/** The opaque access token that redeeming or rotating writes, with what was given of the grant. */
export function tokenOf(
  { clientUid, clientId, subject, grantId, authTime }: Grant,
  token: NewAccessToken,
  given: Pick<StoredAccessToken, 'scope' | 'audience'>,
): StoredAccessToken {
  return { ...token, clientUid, clientId, subject, grantId, authTime, ...given };
}
