// The session store in Redis, in the shard of the person: one hash per signed-in browser, and the sorted set of the ids
// of a person's sessions, which decides whether a session is alive. The fields of a hash: `v` the session as JSON, `s`
// its person, `b` the time of the sign-in, `e` its absolute end, `u` its end if it stays idle, `c` its MAC.

import type { NewSession, Session, SessionStore } from '../../oauth/ports/login-stores.ts';
import { shardOf } from '../../oauth/values/shard.ts';
import { attemptEach } from '../connection/attempt-each.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { OUT_OF_MEMORY } from '../scripts/out-of-memory.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';
import { NOTED_CREDENTIAL } from './users.ts';

/**
 * KEYS session, the person's sessions, the shard's users; ARGV offset, session id, session, subject, absolute and idle
 * lifetime, credential or an empty text. Replies with the time of the sign-in, or nothing where another credential is
 * noted.
 */
const CREATE: Script = {
  name: 'sessionCreate',
  keys: 3,
  lua: `${CLOCK}${NOTED_CREDENTIAL}
local credential = ARGV[7]
if credential ~= '' then
  local noted = noted_credential(KEYS[3], ARGV[4])
  if noted and noted ~= credential then return false end
  if not noted then redis.call('HSET', KEYS[3], ARGV[4], credential) end
end
local ends = now + ARGV[5]
local idle = math.min(now + ARGV[6], ends)
local time = string.format('%.0f', now)
redis.call('HSET', KEYS[1], 'v', ARGV[3], 's', ARGV[4], 'b', time, 'e', ends, 'u', idle)
expire(KEYS[1], idle)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZADD', KEYS[2], ends, ARGV[2])
expire(KEYS[2], redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2])
return time
`,
};

/** KEYS session, the person's sessions, the user watermark; ARGV offset, session id. */
const LIVING = `${CLOCK}
local session, born, ends, idle, mac = unpack(redis.call('HMGET', KEYS[1], 'v', 'b', 'e', 'u', 'c'))
if not session or now >= tonumber(idle) or not redis.call('ZSCORE', KEYS[2], ARGV[2]) then return false end
if tonumber(born) <= tonumber(redis.call('GET', KEYS[3]) or 0) then return false end
`;

/** While the memory of Redis is full the session is not renewed, but used: the person may deny a request or sign out. */
const USE: Script = {
  name: 'sessionUse',
  keys: 3,
  lua: `${LIVING}${OUT_OF_MEMORY}
local renewed = math.min(now + cjson.decode(session).idleLifetime, ends)
local written = redis.pcall('HSET', KEYS[1], 'u', renewed)
if type(written) == 'number' then
  expire(KEYS[1], renewed)
elseif not is_out_of_memory(written) then
  return written
end
return { session, born, mac or '' }
`,
};

const READ: Script = { name: 'sessionLook', keys: 3, lua: `${LIVING}return { session, born, mac or '' }` };

/** ARGV offset, MAC. */
const SEAL: Script = {
  name: 'sessionSeal',
  keys: 1,
  lua: "if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'c', ARGV[2]) end",
};

/** The person never changes; the other keys of a session are in the same shard, under the person's name. */
const PERSON: Script = { name: 'sessionPerson', keys: 1, lua: "return redis.call('HGET', KEYS[1], 's')" };

/** KEYS session, the person's sessions; ARGV offset, session id. */
const END: Script = {
  name: 'sessionEnd',
  keys: 2,
  lua: "redis.call('DEL', KEYS[1])\nredis.call('ZREM', KEYS[2], ARGV[2])",
};

/** KEYS the person's sessions. A session that is not among them is over. Replies with the ids of those that lived. */
const END_ALL: Script = {
  name: 'sessionEndAll',
  keys: 1,
  lua: `${CLOCK}
local ended = redis.call('ZRANGE', KEYS[1], '(' .. now, '+inf', 'BYSCORE')
redis.call('DEL', KEYS[1])
return ended
`,
};

const INDEXED: Script = {
  name: 'sessionIndexed',
  keys: 1,
  lua: `${CLOCK}return redis.call('ZRANGE', KEYS[1], '(' .. now, '+inf', 'BYSCORE')`,
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

  async create(session: NewSession, credential: string | undefined): Promise<Session | 'outdated'> {
    const { sessionId, subject, idleLifetime, absoluteLifetime } = session;
    const keys = [this.#keys.session(sessionId), this.#keys.sessionsOfUser(subject)];
    const time = (await this.#connection.run({
      script: CREATE,
      keys: [...keys, this.#keys.users(shardOf(sessionId))],
      args: [sessionId, JSON.stringify(session), subject, absoluteLifetime, idleLifetime, credential ?? ''],
    })) as string | null;
    return time === null ? 'outdated' : { ...session, authTime: Number(time) };
  }

  async seal({ sessionId }: Session, mac: string): Promise<void> {
    await this.#connection.run({ script: SEAL, keys: [this.#keys.session(sessionId)], args: [mac] });
  }

  async use(sessionId: string): Promise<Session | undefined> {
    const keys = [this.#keys.session(sessionId)];
    const subject = (await this.#connection.run({ script: PERSON, keys })) as string | null;
    return subject === null ? undefined : await this.#session(USE, { sessionId, subject });
  }

  async end(session: Pick<Session, 'sessionId' | 'subject'>): Promise<void> {
    const ending = this.#ending(session);
    try {
      await this.#connection.run(ending);
    } finally {
      // Also when no answer came.
      this.#connection.recordForReplay(ending);
    }
  }

  async endAll(subject: string): Promise<void> {
    const keys = [this.#keys.sessionsOfUser(subject)];
    const ended = (await this.#connection.run({ script: END_ALL, keys })) as string[];
    for (const sessionId of ended) this.#connection.recordForReplay(this.#ending({ sessionId, subject }));
  }

  async list(subject: string): Promise<readonly Session[]> {
    const sessionIds = (await this.#connection.run({
      script: INDEXED,
      keys: [this.#keys.sessionsOfUser(subject)],
    })) as string[];
    const read = (sessionId: string) => this.#session(READ, { sessionId, subject });
    const { values, failed } = await attemptEach(sessionIds, BATCH, read);
    if (failed[0] !== undefined) throw failed[0].error;
    return values.filter((session) => session !== undefined);
  }

  #ending({ sessionId, subject }: Pick<Session, 'sessionId' | 'subject'>) {
    const keys = [this.#keys.session(sessionId), this.#keys.sessionsOfUser(subject)];
    return { script: END, keys, args: [sessionId] };
  }

  async #session(
    script: Script,
    { sessionId, subject }: Pick<Session, 'sessionId' | 'subject'>,
  ): Promise<Session | undefined> {
    const keys = [this.#keys.session(sessionId), this.#keys.sessionsOfUser(subject), this.#keys.userWatermark(subject)];
    const reply = (await this.#connection.run({ script, keys, args: [sessionId] })) as [string, string, string] | null;
    if (reply === null) return undefined;
    const [json, born, mac] = reply;
    const session = { ...(JSON.parse(json) as NewSession), authTime: Number(born) };
    return mac === '' ? session : { ...session, mac };
  }
}
