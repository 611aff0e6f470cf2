// A decorator of the stores that seals what they keep about people and tokens with a MAC, and treats a record without a
// right one as gone. `oauth/tokens/record-macs.ts` makes and checks the MACs; this file says which fields each covers.

import { cappedExpiry } from '../../oauth/access/access.ts';
import type {
  AudienceRules,
  Grant,
  GrantStore,
  OpenidLogin,
  RedeemRequest,
  RotateRequest,
} from '../../oauth/ports/grant-store.ts';
import type {
  Consent,
  ConsentStore,
  Interaction,
  InteractionStore,
  OpenidRequest,
  Session,
  SessionStore,
} from '../../oauth/ports/login-stores.ts';
import type { LogoutStore, OwedLogout } from '../../oauth/ports/logout-store.ts';
import type { PersonStore, VouchedRecord } from '../../oauth/ports/person-store.ts';
import type { Stores } from '../../oauth/ports/ports.ts';
import type { AccessTokenStore, NewAccessToken, StoredAccessToken } from '../../oauth/ports/token-stores.ts';
import type { RecordFields, RecordKind, RecordMacs } from '../../oauth/tokens/record-macs.ts';

export interface AuthenticStoresOptions {
  readonly macs: RecordMacs;
  /** Called for each record whose MAC is missing or wrong. @param grantId where the record names a grant */
  readonly onForged: (kind: RecordKind, grantId?: string) => void;
}

/** The same stores, for which only records count that a holder of a pepper has made. */
export function authenticStores(stores: Stores, { macs, onForged }: AuthenticStoresOptions): Stores {
  const seals: Seals = {
    make: (kind, fields) => macs.make(kind, fields),
    report: onForged,
    isRight: (mac, kind, fields) => macs.isRight(mac, kind, fields),
    check(mac, kind, fields, grantId) {
      const isRight = macs.isRight(mac, kind, fields);
      if (!isRight) onForged(kind, grantId);
      return isRight;
    },
  };
  return {
    ...stores,
    grants: authenticGrants(stores.grants, seals),
    accessTokens: authenticAccessTokens(stores.accessTokens, seals),
    persons: authenticPersons(stores.persons, seals),
    sessions: authenticSessions(stores.sessions, seals),
    logouts: authenticLogouts(stores.logouts, seals),
    interactions: authenticInteractions(stores.interactions, seals),
    consents: authenticConsents(stores.consents, seals),
  };
}

interface Seals {
  make(kind: RecordKind, fields: RecordFields): string;
  isRight(mac: string | undefined, kind: RecordKind, fields: RecordFields): boolean;
  /** Reports a record that no holder of a pepper has made. */
  report(kind: RecordKind, grantId?: string): void;
  /** As `isRight`, and reports what is not. */
  check(mac: string | undefined, kind: RecordKind, fields: RecordFields, grantId?: string): boolean;
}

/** A field that only some records have comes last: the MAC of the others is the same with and without it. */
function present(value: string | undefined): readonly string[] {
  return value === undefined ? [] : [value];
}

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

function authenticGrants(store: GrantStore, seals: Seals): GrantStore {
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
      // The subject that the caller judged was read without a MAC.
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

/** What is known of a token before the store action that writes it. */
function tokenFields(token: NewAccessToken, grantId?: string): RecordFields {
  return [token.tokenId, token.issuedAtSeconds, token.expiresAtSeconds, grantId, ...present(token.confirmation)];
}

/** A token of a grant is judged by the record of the grant (`token-status.ts`); its own MAC binds it to that grant. */
function storedTokenFields(token: StoredAccessToken): RecordFields {
  const fields = tokenFields(token, token.grantId);
  if (token.grantId !== undefined) return fields;
  const { clientUid, clientId, subject, authTime, audience, scope } = token;
  return [...fields, clientUid, clientId, subject, authTime, audience, scope];
}

function authenticAccessTokens(store: AccessTokenStore, seals: Seals): AccessTokenStore {
  return {
    write: (token) => store.write({ ...token, mac: seals.make('access_token', storedTokenFields(token)) }),
    async read(tokenId) {
      const token = await store.read(tokenId);
      if (token === undefined) return undefined;
      const isAsked = token.tokenId === tokenId;
      const isRight = seals.check(token.mac, 'access_token', storedTokenFields({ ...token, tokenId }), token.grantId);
      return isAsked && isRight ? token : undefined;
    },
    revoke: (tokenId) => store.revoke(tokenId),
  };
}

function sessionFields(session: Session): RecordFields {
  const { sessionId, sid, subject, username, displayName, authTime, idleLifetime, absoluteLifetime } = session;
  return [
    sessionId,
    sid,
    subject,
    username,
    displayName,
    authTime,
    idleLifetime,
    absoluteLifetime,
    ...optionalSessionFields(session),
  ];
}

/** Tagged by their number: there is no browser without an address. */
function optionalSessionFields({ address, browser, provider, upstreamAuthTime }: Session): RecordFields {
  if (provider !== undefined) return [address, browser, provider, upstreamAuthTime];
  return address === undefined ? [] : [address, browser];
}

function authenticSessions(store: SessionStore, seals: Seals): SessionStore {
  const isAuthentic = (session: Session) => seals.check(session.mac, 'session', sessionFields(session));
  return {
    async create(begun, credential, succeeds) {
      const session = await store.create(begun, credential, succeeds);
      if (session === 'outdated') return session;
      // The store stamps the time of the sign-in, so the MAC comes after it.
      const mac = seals.make('session', sessionFields(session));
      await store.seal(session, mac);
      return { ...session, mac };
    },
    seal: (session, mac) => store.seal(session, mac),
    async use(sessionId) {
      const session = await store.use(sessionId);
      return session !== undefined && isAuthentic({ ...session, sessionId }) ? session : undefined;
    },
    async end(session) {
      const owed = await store.end(session);
      return owed.filter((each) => seals.check(each.mac, 'login', loginFields(each)));
    },
    endAll: (subject) => store.endAll(subject),
    async list(subject, most) {
      const sessions = await store.list(subject, most);
      return sessions.filter((session) => session.subject === subject && isAuthentic(session));
    },
  };
}

function personFields(record: VouchedRecord): RecordFields {
  const { subject, provider, issuer, type, username, displayName, email, groups, verifiedAt } = record;
  const always = [subject, provider, issuer, type, username, displayName, email, groups, verifiedAt];
  return [...always, ...present(record.unverifiedEmail)];
}

function authenticPersons(store: PersonStore, seals: Seals): PersonStore {
  return {
    async remember(record, lifetime) {
      const noted = await store.remember(record, lifetime);
      // The store stamps the time, so the MAC comes after it.
      const mac = seals.make('person', personFields(noted));
      await store.seal(noted, mac);
      return { ...noted, mac };
    },
    seal: (record, mac) => store.seal(record, mac),
    async read(subject) {
      const record = await store.read(subject);
      if (record === undefined) return undefined;
      const isRight = record.subject === subject && seals.check(record.mac, 'person', personFields(record));
      return isRight ? record : undefined;
    },
  };
}

function loginFields({ clientUid, subject, sid }: Pick<OwedLogout, 'clientUid' | 'subject' | 'sid'>): RecordFields {
  return [clientUid, subject, sid];
}

/** A notice that no session owes is settled: a party that writes to the store must not get a logout token signed. */
function authenticLogouts(store: LogoutStore, seals: Seals): LogoutStore {
  return {
    async list(shard, limit) {
      const authentic: OwedLogout[] = [];
      for (const owed of await store.list(shard, limit)) {
        if (seals.check(owed.mac, 'login', loginFields(owed))) authentic.push(owed);
        else await store.settle(owed);
      }
      return authentic;
    },
    take: (owed, lease) => store.take(owed, lease),
    postpone: (owed, pause) => store.postpone(owed, pause),
    settle: (owed) => store.settle(owed),
  };
}

function interactionFields(interaction: Omit<Interaction, 'decision'>): RecordFields {
  const { interactionId, sessionId, subject, authTime, request } = interaction;
  const { clientUid, clientId, redirectUri, codeChallenge, state, scope, audiences, confirmation, openid } = request;
  const { uiLocales } = request;
  return [
    interactionId,
    sessionId,
    subject,
    authTime,
    clientUid,
    clientId,
    redirectUri,
    codeChallenge,
    state,
    scope,
    audiences,
    ...(openid === undefined ? present(confirmation) : [confirmation, ...openidFields(openid)]),
    // Behind these only a list can stand.
    ...(uiLocales === undefined ? [] : [uiLocales]),
  ];
}

function openidFields({ nonce, prompt, maxAge, loginHint, subject }: OpenidRequest): RecordFields {
  return [nonce, prompt, maxAge, loginHint, subject];
}

function authenticInteractions(store: InteractionStore, seals: Seals): InteractionStore {
  const decisionFields = (interactionId: string, sessionId: string, decision: string): RecordFields => [
    interactionId,
    sessionId,
    decision,
  ];
  const authentic = (found: Interaction | undefined, interactionId: string, sessionId: string) => {
    if (found === undefined) return undefined;
    const { decision, decisionMac } = found;
    const fields = interactionFields({ ...found, interactionId, sessionId });
    if (!seals.check(found.mac, 'interaction', fields)) return undefined;
    if (decision === undefined) return found;
    const isDecided = seals.check(decisionMac, 'decision', decisionFields(interactionId, sessionId, decision));
    return isDecided ? found : undefined;
  };
  return {
    create: (interaction, lifetime) =>
      store.create({ ...interaction, mac: seals.make('interaction', interactionFields(interaction)) }, lifetime),
    read: async (interactionId, sessionId) =>
      authentic(await store.read(interactionId, sessionId), interactionId, sessionId),
    decide: (interactionId, sessionId, decision) =>
      store.decide(
        interactionId,
        sessionId,
        decision,
        seals.make('decision', decisionFields(interactionId, sessionId, decision)),
      ),
    take: async (interactionId, sessionId, by) =>
      authentic(await store.take(interactionId, sessionId, by), interactionId, sessionId),
  };
}

/** Between a scope and its MAC in a consent; no scope has this character (RFC 6749 §3.3). */
const MARK = '"';

/** A scope without a right MAC is not reported: a consent may outlive the pepper of its MAC, and the person decides again. */
function authenticConsents(store: ConsentStore, seals: Seals): ConsentStore {
  const fields = (subject: string, clientUid: string, audience: string, scope: string) => [
    subject,
    clientUid,
    audience,
    scope,
  ];
  const authentic = (access: Consent, subject: string, clientUid: string): Consent => {
    const checked = [...access].map(([audience, sealed]) => {
      const scope = sealed.flatMap((text) => {
        const [value = '', mac] = text.split(MARK);
        return seals.isRight(mac, 'consent', fields(subject, clientUid, audience, value)) ? [value] : [];
      });
      return [audience, [...new Set(scope)]] as const;
    });
    return new Map(checked.filter(([, scope]) => scope.length > 0));
  };
  return {
    async read(subject, clientUid) {
      const access = await store.read(subject, clientUid);
      return access && authentic(access, subject, clientUid);
    },
    give(subject, clientUid, allowed, lifetime) {
      const seal = (audience: string, scope: string) =>
        scope + MARK + seals.make('consent', fields(subject, clientUid, audience, scope));
      const sealed = [...allowed].map(
        ([audience, scopes]) => [audience, scopes.map((scope) => seal(audience, scope))] as const,
      );
      return store.give(subject, clientUid, new Map(sealed), lifetime);
    },
    withdraw: (subject, clientUid) => store.withdraw(subject, clientUid),
    async list(subject) {
      const given = await store.list(subject);
      return given.map(({ clientUid, access }) => ({ clientUid, access: authentic(access, subject, clientUid) }));
    },
  };
}
