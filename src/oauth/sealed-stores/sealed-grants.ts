// The stores of grants and of opaque access tokens, for which only records count that a holder of a pepper has made.

import { cappedExpiry } from '../access/access.ts';
import type {
  AudienceRules,
  Grant,
  GrantStore,
  OpenidLogin,
  RedeemRequest,
  RotateRequest,
} from '../ports/grant-store.ts';
import type { PendingLogout } from '../ports/logout-store.ts';
import type { AccessTokenStore, NewAccessToken, StoredAccessToken } from '../ports/token-stores.ts';
import type { RecordFields } from '../tokens/record-macs.ts';
import { present, type Seals } from './seals.ts';

function grantFields(grant: Grant): RecordFields {
  const { grantId, clientUid, clientId, subject, sessionId, authTime, redirectUri, codeChallenge } = grant;
  return [
    grantId,
    clientUid,
    clientId,
    subject,
    sessionId,
    authTime,
    redirectUri,
    codeChallenge,
    grant.scope,
    grant.audiences,
    ...optionalGrantFields(grant),
  ];
}

/** Tagged by their number: a grant may have each alone. */
function optionalGrantFields({ confirmation, openid, upstreamAuthTime }: Grant): RecordFields {
  if (upstreamAuthTime !== undefined) return [confirmation, openid?.sid, upstreamAuthTime];
  return openid === undefined ? present(confirmation) : [confirmation, openid.sid];
}

/** The same grants. */
export function sealedGrants(store: GrantStore, seals: Seals): GrantStore {
  const isAuthentic = (grant: Grant) => seals.check(grant.mac, 'grant', grantFields(grant), grant.grantId);
  const isOf = (subject: string, grant: Grant) => {
    if (subject !== grant.subject) seals.report('grant', grant.grantId);
    return subject === grant.subject;
  };
  const sealed = <Request extends RedeemRequest | RotateRequest>(request: Request): Request => {
    const { accessToken, grantId, access } = request;
    if (accessToken === undefined) return request;
    const macOf = (token: NewAccessToken) => seals.make('access_token', tokenFields(token, grantId));
    // Which audience the token is for is known only within the action of the store, and some end it earlier.
    const macAt = access.at && macsAt(access.at, accessToken, macOf);
    return { ...request, accessToken: { ...accessToken, mac: macOf(accessToken), macAt } };
  };
  // A nonce leaves the record before the rest, so it has a MAC of its own, in front of it.
  const withSealedNonce = ({ sid, nonce }: OpenidLogin, grantId: string): OpenidLogin => ({
    sid,
    nonce: nonce === undefined ? undefined : `${seals.make('nonce', [grantId, nonce])}.${nonce}`,
  });
  const withNonce = ({ openid, grantId }: Grant): OpenidLogin | 'forged' | undefined => {
    if (openid?.nonce === undefined) return openid;
    const [mac = '', ...parts] = openid.nonce.split('.');
    const nonce = parts.join('.');
    return seals.check(mac, 'nonce', [grantId, nonce], grantId) ? { ...openid, nonce } : 'forged';
  };
  return {
    issue(grant, secretHash, codeLifetime, retention) {
      const { clientUid, subject } = grant;
      const openid = grant.openid && withSealedNonce(grant.openid, grant.grantId);
      const login = grant.login && {
        ...grant.login,
        mac: seals.make('login', loginFields({ clientUid, subject, sid: grant.login.sid })),
      };
      const whole = { ...grant, openid, login, mac: seals.make('grant', grantFields(grant)) };
      return store.issue(whole, secretHash, codeLifetime, retention);
    },
    async redeem(request) {
      const answer = await store.redeem(sealed(request));
      if (!('grant' in answer)) return answer;
      const openid = withNonce(answer.grant);
      if (openid === 'forged' || !isAuthentic(answer.grant)) return { outcome: 'gone' };
      return openid === undefined ? answer : { ...answer, grant: { ...answer.grant, openid } };
    },
    async rotate(request) {
      const answer = await store.rotate(sealed(request));
      if (!('grant' in answer)) return answer;
      // The subject that the caller checked was read without a MAC.
      if (!isAuthentic(answer.grant) || !isOf(request.subject, answer.grant)) return { outcome: 'gone' };
      const { openid } = answer.grant;
      // Core §12.2: the nonce is that of the first ID token alone.
      return openid === undefined
        ? answer
        : { ...answer, grant: { ...answer.grant, openid: { ...openid, nonce: undefined } } };
    },
    noteRetryElsewhere: (retry) => store.noteRetryElsewhere(retry),
    subjectOf: (grantId) => store.subjectOf(grantId),
    revoke: (grantId) => store.revoke(grantId),
    async read(grantId) {
      const state = await store.read(grantId);
      return state !== undefined && isAuthentic(state.grant) ? state : undefined;
    },
    async status(grantId, parties) {
      const status = await store.status(grantId, parties);
      return status !== undefined && isAuthentic(status.grant) ? status : undefined;
    },
  };
}

/** The MAC of the token for each audience that shortens its life. */
function macsAt(
  at: Readonly<Record<string, AudienceRules>>,
  token: NewAccessToken,
  macOf: (token: NewAccessToken) => string,
): Readonly<Record<string, string>> {
  const capped = Object.entries(at).map(([audience, { maxLifetimeSeconds }]) => {
    const expiresAtSeconds = cappedExpiry(token, maxLifetimeSeconds);
    return { audience, token: { ...token, expiresAtSeconds } };
  });
  const shortened = capped.filter((each) => each.token.expiresAtSeconds < token.expiresAtSeconds);
  return Object.fromEntries(shortened.map((each) => [each.audience, macOf(each.token)]));
}

/** The fields of a token that are known before the store action that writes it. */
function tokenFields(token: NewAccessToken, grantId?: string): RecordFields {
  return [token.tokenId, token.issuedAtSeconds, token.expiresAtSeconds, grantId, ...present(token.confirmation)];
}

/** A token of a grant is valid by the record of the grant (`token-status.ts`); its own MAC binds it to that grant. */
function storedTokenFields(token: StoredAccessToken): RecordFields {
  const fields = tokenFields(token, token.grantId);
  if (token.grantId !== undefined) return fields;
  const { clientUid, clientId, subject, authTime, audience, scope } = token;
  return [...fields, clientUid, clientId, subject, authTime, audience, scope];
}

/** The same access tokens. */
export function sealedAccessTokens(store: AccessTokenStore, seals: Seals): AccessTokenStore {
  return {
    write: (token) => store.write({ ...token, mac: seals.make('access_token', storedTokenFields(token)) }),
    async read(tokenId) {
      const token = await store.read(tokenId);
      if (token === undefined) return undefined;
      // The MAC of a token of a grant does not cover its subject, which finds the person.
      const isAsked = token.tokenId === tokenId && typeof token.subject === 'string';
      const isRight = seals.check(token.mac, 'access_token', storedTokenFields({ ...token, tokenId }), token.grantId);
      return isAsked && isRight ? token : undefined;
    },
    revoke: (tokenId) => store.revoke(tokenId),
  };
}

/** The fields under the MAC of a login, and of the pending logout that it leads to. */
export function loginFields({
  clientUid,
  subject,
  sid,
}: Pick<PendingLogout, 'clientUid' | 'subject' | 'sid'>): RecordFields {
  return [clientUid, subject, sid];
}
