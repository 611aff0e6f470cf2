// The session store in Redis, in the shard of the person: one hash per signed-in browser, and the sorted set of the ids
// of a person's sessions, which decides whether a session is alive. The fields of a hash: `v` the session as JSON, `s`
// its person, `b` the time of the sign-in, `e` its absolute end, `u` its end if it stays idle, `i` its `sid`, `c` its MAC.

import type { NewSession, Session, SessionStore } from '../../oauth/ports/login-stores.ts';
import type { PendingLogout } from '../../oauth/ports/logout-store.ts';
import { shardOf, shardOfPerson } from '../../oauth/values/shard.ts';
import { attemptEach } from '../connection/attempt-each.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { OUT_OF_MEMORY } from '../scripts/out-of-memory.ts';
import type { Action, Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';
import { NOTING, OWING, pendingIn } from './logouts.ts';
import { RECORDED_CREDENTIAL } from './users.ts';

/**
 * KEYS session, the person's sessions, the shard's users, the person's logins, the session that it succeeds, or itself;
 * ARGV offset, session id, session, subject, absolute and idle lifetime, credential or an empty text, the `sid`, then of
 * the session that it succeeds id and `sid`. Replies with the time of the sign-in and the `sid`, or with nothing where
 * another credential is recorded.
 */
const CREATE: Script = {
  name: 'sessionCreate',
  keys: 5,
  lua: `${CLOCK}${RECORDED_CREDENTIAL}${NOTING}
local credential = ARGV[7]
if credential ~= '' then
  local recorded = recorded_credential(KEYS[3], ARGV[4])
  if recorded and recorded ~= credential then return false end
  if not recorded then redis.call('HSET', KEYS[3], ARGV[4], credential) end
end
local ends = now + ARGV[5]
local idle = math.min(now + ARGV[6], ends)
local time = string.format('%.0f', now)
local sid, former = ARGV[8], ARGV[9]
local person, former_idle = unpack(redis.call('HMGET', KEYS[5], 's', 'u'))
local lives_on = former ~= '' and person == ARGV[4] and now < tonumber(former_idle) and redis.call('ZSCORE', KEYS[2], former)
if lives_on then sid = ARGV[10] end
redis.call('HSET', KEYS[1], 'v', ARGV[3], 's', ARGV[4], 'b', time, 'e', ends, 'u', idle, 'i', sid)
expire(KEYS[1], idle)
if lives_on then
  redis.call('DEL', KEYS[5])
  redis.call('ZREM', KEYS[2], former)
  keep_logins(KEYS[4], sid, ends)
end
forget_logins(KEYS[4])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZADD', KEYS[2], ends, ARGV[2])
expire(KEYS[2], redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2])
return { time, sid }
`,
};

/** KEYS session, the person's sessions, the user watermark; ARGV offset, session id. */
const ACTIVE = `${CLOCK}
local session, born, ends, idle, sid, mac = unpack(redis.call('HMGET', KEYS[1], 'v', 'b', 'e', 'u', 'i', 'c'))
if not session or now >= tonumber(idle) or not redis.call('ZSCORE', KEYS[2], ARGV[2]) then return false end
if tonumber(born) <= tonumber(redis.call('GET', KEYS[3]) or 0) then return false end
`;

/** While the memory of Redis is full the session is not renewed, but used: the person may deny a request or sign out. */
const USE: Script = {
  name: 'sessionUse',
  keys: 3,
  lua: `${ACTIVE}${OUT_OF_MEMORY}
local renewed = math.min(now + cjson.decode(session).idleLifetime, ends)
local written = redis.pcall('HSET', KEYS[1], 'u', renewed)
if type(written) == 'number' then
  expire(KEYS[1], renewed)
elseif not is_out_of_memory(written) then
  return written
end
return { session, born, sid, mac or '' }
`,
};

const READ: Script = { name: 'sessionLook', keys: 3, lua: `${ACTIVE}return { session, born, sid, mac or '' }` };

/** ARGV offset, MAC. */
const SEAL: Script = {
  name: 'sessionSeal',
  keys: 1,
  lua: "if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'c', ARGV[2]) end",
};

/** The person never changes; the other keys of a session are in the same shard, under the person's name. */
const PERSON: Script = { name: 'sessionPerson', keys: 1, lua: "return redis.call('HGET', KEYS[1], 's')" };

/**
 * KEYS session, the person's sessions and logins, the shard's logouts; ARGV offset, session id, subject, and the `sid`, or
 * an empty text: that of the session. Replies with the pending logouts.
 */
const END: Script = {
  name: 'sessionEnd',
  keys: 4,
  allowsOom: true,
  lua: `${CLOCK}${OWING}
local sid = ARGV[4] ~= '' and ARGV[4] or redis.call('HGET', KEYS[1], 'i') or ''
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[2])
return owe(KEYS[3], KEYS[4], ARGV[3], sid)
`,
};

/**
 * KEYS the person's sessions and logins, the shard's logouts; ARGV offset, subject. A session that is not among them is
 * over. Replies with the ids of those that lived.
 */
const END_ALL: Script = {
  name: 'sessionEndAll',
  keys: 3,
  allowsOom: true,
  lua: `${CLOCK}${OWING}
local ended = redis.call('ZRANGE', KEYS[1], '(' .. now, '+inf', 'BYSCORE')
redis.call('DEL', KEYS[1])
owe_all(KEYS[2], KEYS[3], ARGV[2])
return ended
`,
};

/** ARGV offset, how many at most; all where it is negative. Those that may live longest come first. */
const INDEXED: Script = {
  name: 'sessionIndexed',
  keys: 1,
  lua: `${CLOCK}return redis.call('ZRANGE', KEYS[1], '+inf', '(' .. now, 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[2])`,
};

/** Sessions of one person read at a time: they must not use up the capacity for all other requests. */
const BATCH = 100;

/** {@link SessionStore} in Redis. */
export class RedisSessions implements SessionStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async create(
    session: NewSession,
    credential: string | undefined,
    succeeds?: Pick<Session, 'sessionId' | 'sid'>,
  ): Promise<Session | 'outdated'> {
    const { sessionId, sid, subject, idleLifetime, absoluteLifetime } = session;
    // A session of another person may be in another shard; this script never ends it.
    const former = succeeds !== undefined && shardOf(succeeds.sessionId) === shardOf(sessionId) ? succeeds : undefined;
    const reply = (await this.#connection.run({
      script: CREATE,
      keys: [
        this.#keys.session(sessionId),
        this.#keys.sessionsOfUser(subject),
        this.#keys.users(shardOf(sessionId)),
        this.#keys.loginsOfUser(subject),
        this.#keys.session(former?.sessionId ?? sessionId),
      ],
      args: [
        sessionId,
        JSON.stringify(session),
        subject,
        absoluteLifetime,
        idleLifetime,
        credential ?? '',
        sid,
        former?.sessionId ?? '',
        former?.sid ?? '',
      ],
    })) as [time: string, sid: string] | null;
    return reply === null ? 'outdated' : { ...session, sid: reply[1], authTime: Number(reply[0]) };
  }

  async seal({ sessionId }: Session, mac: string): Promise<void> {
    await this.#connection.run({ script: SEAL, keys: [this.#keys.session(sessionId)], args: [mac] });
  }

  async use(sessionId: string): Promise<Session | undefined> {
    const keys = [this.#keys.session(sessionId)];
    const subject = (await this.#connection.run({ script: PERSON, keys })) as string | null;
    return subject === null ? undefined : await this.#session(USE, { sessionId, subject });
  }

  async end(session: Pick<Session, 'sessionId' | 'subject' | 'sid'>): Promise<readonly PendingLogout[]> {
    const ending = this.#ending(session);
    try {
      return ((await this.#connection.run(ending)) as string[]).map(pendingIn);
    } finally {
      // Also when no answer came.
      this.#connection.recordForReplay(ending);
    }
  }

  async endAll(subject: string): Promise<void> {
    const keys = [this.#keys.sessionsOfUser(subject), ...this.#keysOfLogins(subject)];
    const ended = (await this.#connection.run({ script: END_ALL, keys, args: [subject] })) as string[];
    for (const sessionId of ended) this.#connection.recordForReplay(this.#ending({ sessionId, subject, sid: '' }));
  }

  async list(subject: string, most = -1): Promise<readonly Session[]> {
    const keys = [this.#keys.sessionsOfUser(subject)];
    const sessionIds = (await this.#connection.run({ script: INDEXED, keys, args: [most] })) as string[];
    const read = (sessionId: string) => this.#session(READ, { sessionId, subject });
    const { values, failed } = await attemptEach(sessionIds, BATCH, read);
    if (failed[0] !== undefined) throw failed[0].error;
    return values.filter((session) => session !== undefined);
  }

  #ending({ sessionId, subject, sid }: Pick<Session, 'sessionId' | 'subject' | 'sid'>): Action {
    const own = [this.#keys.session(sessionId), this.#keys.sessionsOfUser(subject)];
    return { script: END, keys: [...own, ...this.#keysOfLogins(subject)], args: [sessionId, subject, sid] };
  }

  #keysOfLogins(subject: string): readonly [logins: string, logouts: string] {
    return [this.#keys.loginsOfUser(subject), this.#keys.logouts(shardOfPerson(subject))];
  }

  async #session(
    script: Script,
    { sessionId, subject }: Pick<Session, 'sessionId' | 'subject'>,
  ): Promise<Session | undefined> {
    const keys = [this.#keys.session(sessionId), this.#keys.sessionsOfUser(subject), this.#keys.userWatermark(subject)];
    const reply = (await this.#connection.run({ script, keys, args: [sessionId] })) as
      | [json: string, born: string, sid: string, mac: string]
      | null;
    if (reply === null) return undefined;
    const [json, born, sid, mac] = reply;
    const session = { ...(JSON.parse(json) as NewSession), sid, authTime: Number(born) };
    return mac === '' ? session : { ...session, mac };
  }
}
