// The name of every key in Redis. All keys carry the hash tag of a virtual shard, `{s000}` to `{s255}`, so that what one
// script touches shares a slot of a Cluster: that of a grant or an opaque token is in its id, that of everything else is the
// first byte of the SHA-256 of its name, unless its method says otherwise. Types and lifetimes are in
// docs/reference/redis-keys.md.

import { hash } from 'node:crypto';
import { RecentValues } from '../../oauth/values/recent-values.ts';
import { shardOf, shardOfDigest } from '../../oauth/values/shard.ts';

/** Every pattern of a key below the prefix; `<…>` stands for a digest or an id, `NNN` for a shard. */
export const KEY_PATTERNS = {
  grant: '{sNNN}:g:<SHA-256 of the family>',
  accessToken: '{sNNN}:token:<SHA-256 of the token>',
  outbox: '{sNNN}:outbox',
  alertTurns: '{sNNN}:turns',
  globalWatermark: '{sNNN}:nbf:global',
  clientWatermark: '{sNNN}:nbf:client:<client uid>',
  peopleWatermark: '{sNNN}:nbf:people',
  userWatermark: '{sNNN}:nbf:user:<SHA-256 of the subject>',
  consentWatermark: '{sNNN}:nbf:consent:<SHA-256 of subject and client uid>',
  revokedToken: '{sNNN}:jti:<SHA-256 of the jti>',
  session: '{sNNN}:session:<SHA-256 of the session id>',
  sessionsOfUser: '{sNNN}:sessions:<SHA-256 of the subject>',
  consentsOfUser: '{sNNN}:consents:<SHA-256 of the subject>',
  interactionsOfSession: '{sNNN}:interactions:<SHA-256 of the session id>',
  replay: '{sNNN}:seen:<SHA-256 of purpose and value>',
  rateLimit: '{sNNN}:rate:<SHA-256 of what is counted>',
  marker: '{sNNN}:marker',
  issuer: '{sNNN}:issuer',
} as const;

type KeyName = keyof typeof KEY_PATTERNS;

/** What each key has between its shard and its id. */
const KINDS = Object.fromEntries(
  Object.entries(KEY_PATTERNS).map(([name, pattern]) => [name, pattern.slice('{sNNN}'.length).split('<')[0]]),
) as Record<KeyName, string>;

/** Of how many clients the shard is known at least: it is asked for with each of their grants. */
const CLIENTS = 1000;

/** What Redis keys are called in one deployment. */
export class RedisKeys {
  readonly #prefix: string;
  readonly #shardsOfClients = new RecentValues<string>(CLIENTS);

  /** @param prefix of every key; without braces, which would move the hash tag. */
  constructor(prefix: string) {
    if (/[{}]/.test(prefix)) throw new TypeError('a key prefix has no braces');
    this.#prefix = prefix;
  }

  /** @param grantId `<shard>.<SHA-256(family)>` */
  grant(grantId: string): string {
    return this.#key('grant', shardOf(grantId), grantId.slice(4));
  }

  /** @param tokenId `<shard>.<SHA-256(token)>`, with the shard of its grant */
  accessToken(tokenId: string): string {
    return this.#key('accessToken', shardOf(tokenId), tokenId.slice(4));
  }

  outbox(shard: string): string {
    return this.#key('outbox', shard, '');
  }

  alertTurns(shard: string): string {
    return this.#key('alertTurns', shard, '');
  }

  /** The copy of the global watermark that one shard holds. */
  globalWatermark(shard: string): string {
    return this.#key('globalWatermark', shard, '');
  }

  /** @param shard that of the client */
  clientWatermark(clientUid: string, shard = this.shardOfClient(clientUid)): string {
    return this.#key('clientWatermark', shard, clientUid);
  }

  /** No watermark of a person of this shard is higher. */
  peopleWatermark(shard: string): string {
    return this.#key('peopleWatermark', shard, '');
  }

  userWatermark(subject: string): string {
    return this.#digestKey('userWatermark', subject);
  }

  consentWatermark(clientUid: string, subject: string): string {
    return this.#consentWatermark(clientUid, subject, shardOfDigest(digestOf(subject)));
  }

  /** Both of a person with a client; one script reads them. */
  personWatermarks(clientUid: string, subject: string): readonly [user: string, consent: string] {
    const digest = digestOf(subject);
    const shard = shardOfDigest(digest);
    return [this.#key('userWatermark', shard, digest), this.#consentWatermark(clientUid, subject, shard)];
  }

  /** The shard that one of these keys is in. */
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

  session(sessionId: string): string {
    return this.#digestKey('session', sessionId);
  }

  sessionsOfUser(subject: string): string {
    return this.#digestKey('sessionsOfUser', subject);
  }

  consentsOfUser(subject: string): string {
    return this.#digestKey('consentsOfUser', subject);
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

  /** What is gone when the shard has been emptied. */
  marker(shard: string): string {
    return this.#key('marker', shard, '');
  }

  /** In the first shard; there is one. */
  issuer(): string {
    return this.#key('issuer', '000', '');
  }

  /** In the shard of the person, so that one script reads it together with theirs. */
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
