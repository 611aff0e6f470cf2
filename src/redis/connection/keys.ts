// The names of all keys in Redis. Every key has the hash tag of a virtual shard, `{s000}` to `{s255}`, so that the keys
// of one script share a slot of a Cluster. The shard of a grant or an opaque token is in its id; any other shard is the
// first byte of the SHA-256 of the name, unless the method says otherwise. docs/reference/redis-keys.md lists types and
// lifetimes.

import { hash } from 'node:crypto';
import { RecentValues } from '../../oauth/values/recent-values.ts';
import { shardOf, shardOfDigest } from '../../oauth/values/shard.ts';

/** The pattern of every key below the prefix; `<…>` stands for a digest or an id, `NNN` for a shard. */
export const KEY_PATTERNS = {
  grant: '{sNNN}:g:<SHA-256 of the family>',
  grantsOfPerson: '{sNNN}:grants:<SHA-256 of subject and client uid>',
  accessToken: '{sNNN}:token:<SHA-256 of the token>',
  raisedAlerts: '{sNNN}:outbox',
  webhookAlerts: '{sNNN}:outbox:webhook',
  controllerAlerts: '{sNNN}:outbox:controller',
  globalWatermark: '{sNNN}:nbf:global',
  clientWatermark: '{sNNN}:nbf:client:<client uid>',
  peopleWatermark: '{sNNN}:nbf:people',
  userWatermark: '{sNNN}:nbf:user:<SHA-256 of the subject>',
  consentWatermark: '{sNNN}:nbf:consent:<SHA-256 of subject and client uid>',
  revokedToken: '{sNNN}:jti:<SHA-256 of the jti>',
  users: '{sNNN}:users',
  person: '{sNNN}:person:<SHA-256 of the subject>',
  session: '{sNNN}:session:<SHA-256 of the cookie>',
  sessionsOfUser: '{sNNN}:sessions:<SHA-256 of the subject>',
  loginsOfUser: '{sNNN}:logins:<SHA-256 of the subject>',
  logouts: '{sNNN}:logouts',
  consentsOfUser: '{sNNN}:consents:<SHA-256 of the subject>',
  usesOfUser: '{sNNN}:uses:<SHA-256 of the subject>',
  interactionsOfSession: '{sNNN}:interactions:<SHA-256 of the session id>',
  replay: '{sNNN}:seen:<SHA-256 of purpose and value>',
  rateLimit: '{sNNN}:rate:<SHA-256 of what is counted>',
  marker: '{sNNN}:marker',
  issuer: '{sNNN}:issuer',
} as const;

type KeyName = keyof typeof KEY_PATTERNS;

/** The part of each key between its shard and its id. */
const KINDS = Object.fromEntries(
  Object.entries(KEY_PATTERNS).map(([name, pattern]) => [name, pattern.slice('{sNNN}'.length).split('<')[0]]),
) as Record<KeyName, string>;

/** The shards of how many clients are cached at least: every request about a grant needs the shard of its client. */
const MIN_CACHED_CLIENTS = 1000;

/** The key names of one deployment. */
export class RedisKeys {
  readonly #prefix: string;
  readonly #shardsOfClients = new RecentValues<string>(MIN_CACHED_CLIENTS);

  /** @param prefix of every key; without braces, which would move the hash tag. */
  constructor(prefix: string) {
    if (/[{}]/.test(prefix)) throw new TypeError('a key prefix has no braces');
    this.#prefix = prefix;
  }

  /** @param grantId `<shard>.<SHA-256(family)>` */
  grant(grantId: string): string {
    return this.#key('grant', shardOf(grantId), grantId.slice(4));
  }

  /** The index of the grants of a person at a client, in the shard of the person, as the grants are. */
  grantsOfPerson(clientUid: string, subject: string): string {
    const digest = digestOf(JSON.stringify([subject, clientUid]));
    return this.#key('grantsOfPerson', shardOfDigest(digestOf(subject)), digest);
  }

  /** @param tokenId `<shard>.<SHA-256(token)>`, with the shard of its grant */
  accessToken(tokenId: string): string {
    return this.#key('accessToken', shardOf(tokenId), tokenId.slice(4));
  }

  /** Alerts to be logged. */
  raisedAlerts(shard: string): string {
    return this.#key('raisedAlerts', shard, '');
  }

  webhookAlerts(shard: string): string {
    return this.#key('webhookAlerts', shard, '');
  }

  controllerAlerts(shard: string): string {
    return this.#key('controllerAlerts', shard, '');
  }

  /** The copy of the global watermark that one shard holds. */
  globalWatermark(shard: string): string {
    return this.#key('globalWatermark', shard, '');
  }

  /** @param shard that of the client */
  clientWatermark(clientUid: string, shard = this.shardOfClient(clientUid)): string {
    return this.#key('clientWatermark', shard, clientUid);
  }

  /** The upper bound of the watermarks of the shard's people. */
  peopleWatermark(shard: string): string {
    return this.#key('peopleWatermark', shard, '');
  }

  userWatermark(subject: string): string {
    return this.#digestKey('userWatermark', subject);
  }

  consentWatermark(clientUid: string, subject: string): string {
    return this.#consentWatermark(clientUid, subject, shardOfDigest(digestOf(subject)));
  }

  /** The user watermark and the consent watermark of a person at a client; one script reads both. */
  personWatermarks(clientUid: string, subject: string): readonly [user: string, consent: string] {
    const digest = digestOf(subject);
    const shard = shardOfDigest(digest);
    return [this.#key('userWatermark', shard, digest), this.#consentWatermark(clientUid, subject, shard)];
  }

  /** The shard of a key that this object made. */
  shardOfKey(key: string): string {
    const start = this.#prefix.length + '{s'.length;
    return key.slice(start, start + 3);
  }

  shardOfClient(clientUid: string): string {
    const known = this.#shardsOfClients.get(clientUid);
    if (known !== undefined) return known;
    const shard = shardOfDigest(digestOf(clientUid));
    this.#shardsOfClients.set(clientUid, shard);
    return shard;
  }

  revokedToken(jti: string): string {
    return this.#digestKey('revokedToken', jti);
  }

  /** The credentials of the local users of a shard. */
  users(shard: string): string {
    return this.#key('users', shard, '');
  }

  person(subject: string): string {
    return this.#digestKey('person', subject);
  }

  /** @param sessionId `<shard>.<SHA-256 of the cookie>` */
  session(sessionId: string): string {
    return this.#key('session', shardOf(sessionId), sessionId.slice(4));
  }

  sessionsOfUser(subject: string): string {
    return this.#digestKey('sessionsOfUser', subject);
  }

  /** The recorded logins of the sessions of the person. */
  loginsOfUser(subject: string): string {
    return this.#digestKey('loginsOfUser', subject);
  }

  logouts(shard: string): string {
    return this.#key('logouts', shard, '');
  }

  consentsOfUser(subject: string): string {
    return this.#digestKey('consentsOfUser', subject);
  }

  usesOfUser(subject: string): string {
    return this.#digestKey('usesOfUser', subject);
  }

  interactionsOfSession(sessionId: string): string {
    return this.#digestKey('interactionsOfSession', sessionId);
  }

  replay(purpose: string, value: string): string {
    return this.#digestKey('replay', JSON.stringify([purpose, value]));
  }

  rateLimit(name: string): string {
    return this.#digestKey('rateLimit', name);
  }

  /** Its absence shows that the shard has been emptied. */
  marker(shard: string): string {
    return this.#key('marker', shard, '');
  }

  /** One key, in the first shard. */
  issuer(): string {
    return this.#key('issuer', '000', '');
  }

  /** In the shard of the person, so that one script reads it together with the user watermark. */
  #consentWatermark(clientUid: string, subject: string, shard: string): string {
    return this.#key('consentWatermark', shard, digestOf(JSON.stringify([subject, clientUid])));
  }

  #digestKey(key: KeyName, name: string): string {
    const digest = digestOf(name);
    return this.#key(key, shardOfDigest(digest), digest);
  }

  #key(key: KeyName, shard: string, id: string): string {
    return `${this.#prefix}{s${shard}}${KINDS[key]}${id}`;
  }
}

function digestOf(name: string): string {
  return hash('sha256', name, 'base64url');
}
