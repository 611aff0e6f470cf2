// A decorator of the stores that seals what they keep about people and tokens with a MAC, and treats a record without a
// right one as gone. `oauth/tokens/record-macs.ts` makes and checks the MACs; which fields each covers stands here, and in
// `sealed-grants.ts`.

import type {
  Consent,
  ConsentStore,
  Interaction,
  InteractionStore,
  OpenidRequest,
  Session,
  SessionStore,
} from '../ports/login-stores.ts';
import type { LogoutStore, PendingLogout } from '../ports/logout-store.ts';
import type { AssertedRecord, PersonStore } from '../ports/person-store.ts';
import type { Stores } from '../ports/ports.ts';
import type { RecordFields, RecordKind, RecordMacs } from '../tokens/record-macs.ts';
import { loginFields, sealedAccessTokens, sealedGrants } from './sealed-grants.ts';
import { present, type Seals } from './seals.ts';

export interface SealedStoresOptions {
  readonly macs: RecordMacs;
  /** Called for each record whose MAC is missing or wrong. @param grantId where the record names a grant */
  readonly onForged: (kind: RecordKind, grantId?: string) => void;
}

/** The same stores, for which only records count that a holder of a pepper has made. */
export function sealedStores(stores: Stores, { macs, onForged }: SealedStoresOptions): Stores {
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
    grants: sealedGrants(stores.grants, seals),
    accessTokens: sealedAccessTokens(stores.accessTokens, seals),
    persons: sealedPersons(stores.persons, seals),
    sessions: sealedSessions(stores.sessions, seals),
    logouts: sealedLogouts(stores.logouts, seals),
    interactions: sealedInteractions(stores.interactions, seals),
    consents: sealedConsents(stores.consents, seals),
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

function sealedSessions(store: SessionStore, seals: Seals): SessionStore {
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
      const pending = await store.end(session);
      return pending.filter((each) => seals.check(each.mac, 'login', loginFields(each)));
    },
    endAll: (subject) => store.endAll(subject),
    async list(subject, most) {
      const sessions = await store.list(subject, most);
      return sessions.filter((session) => session.subject === subject && isAuthentic(session));
    },
  };
}

function personFields(record: AssertedRecord): RecordFields {
  const { subject, provider, issuer, type, username, displayName, email, groups, verifiedAt } = record;
  const always = [subject, provider, issuer, type, username, displayName, email, groups, verifiedAt];
  return [...always, ...present(record.unverifiedEmail)];
}

function sealedPersons(store: PersonStore, seals: Seals): PersonStore {
  return {
    async remember(record, lifetime) {
      const stamped = await store.remember(record, lifetime);
      // The store stamps the time, so the MAC comes after it.
      const mac = seals.make('person', personFields(stamped));
      await store.seal(stamped, mac);
      return { ...stamped, mac };
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

/** An entry without a valid MAC is acknowledged unsent: a party that writes to the store must not get a logout token signed. */
function sealedLogouts(store: LogoutStore, seals: Seals): LogoutStore {
  return {
    async list(shard, limit) {
      const authentic: PendingLogout[] = [];
      for (const pending of await store.list(shard, limit)) {
        if (seals.check(pending.mac, 'login', loginFields(pending))) authentic.push(pending);
        else await store.acknowledge(pending);
      }
      return authentic;
    },
    take: (pending, lease) => store.take(pending, lease),
    postpone: (pending, pause) => store.postpone(pending, pause),
    acknowledge: (pending) => store.acknowledge(pending),
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

function sealedInteractions(store: InteractionStore, seals: Seals): InteractionStore {
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
function sealedConsents(store: ConsentStore, seals: Seals): ConsentStore {
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
