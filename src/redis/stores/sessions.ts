// The session store in Redis, one hash per signed-in browser: `v` the session as JSON, `s` its person, `e` its absolute
// end, `u` its end if it stays idle. The sorted set of a person's session ids is in another slot and is only a hint: a
// session that it names may have ended.

import type { Session, SessionStore } from '../../oauth/ports/login-stores.ts';
import { attemptEach } from '../connection/attempt-each.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { OUT_OF_MEMORY } from '../scripts/out-of-memory.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';

/** ARGV offset, session, subject, absolute and idle lifetime. */
const CREATE: Script = {
  name: 'sessionCreate',
  keys: 1,
  lua: `${CLOCK}
local ends = now + ARGV[4]
local idle = math.min(now + ARGV[5], ends)
redis.call('HSET', KEYS[1], 'v', ARGV[2], 's', ARGV[3], 'e', ends, 'u', idle)
expire(KEYS[1], idle)
`,
};

const LIVING = `
local session, ends, idle = unpack(redis.call('HMGET', KEYS[1], 'v', 'e', 'u'))
if not session or now >= tonumber(idle) then return false end
`;

/** While the memory of Redis is full the session is not renewed, but used: the person may deny a request or sign out. */
const USE: Script = {
  name: 'sessionUse',
  keys: 1,
  lua: `${CLOCK}${OUT_OF_MEMORY}${LIVING}
local renewed = math.min(now + cjson.decode(session).idleLifetime, ends)
local written = redis.pcall('HSET', KEYS[1], 'u', renewed)
if type(written) == 'number' then
  expire(KEYS[1], renewed)
elseif not is_out_of_memory(written) then
  return written
end
return session
`,
};

const READ: Script = { name: 'sessionLook', keys: 1, lua: `${CLOCK}${LIVING}return session` };

const END: Script = {
  name: 'sessionEnd',
  keys: 1,
  lua: `
local subject = redis.call('HGET', KEYS[1], 's')
redis.call('DEL', KEYS[1])
return subject
`,
};

/** ARGV offset, session id, absolute lifetime. */
const INDEX: Script = {
  name: 'sessionIndex',
  keys: 1,
  lua: `${CLOCK}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZADD', KEYS[1], now + ARGV[3], ARGV[2])
expire(KEYS[1], redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2])
`,
};

const INDEXED: Script = {
  name: 'sessionIndexed',
  keys: 1,
  lua: `${CLOCK}return redis.call('ZRANGE', KEYS[1], '(' .. now, '+inf', 'BYSCORE')`,
};

const FORGET: Script = { name: 'sessionForget', keys: 1, lua: "redis.call('ZREM', KEYS[1], ARGV[2])" };

/** Sessions of one person read or ended at a time: they must not use up the capacity for all other requests. */
const BATCH = 100;

/** {@link SessionStore} in Redis. */
export class RedisSessions implements SessionStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
  }

  // The index is written first: a session that is missing there would survive `endAll`.
  async create(session: Session): Promise<void> {
    const { sessionId, subject, idleLifetime, absoluteLifetime } = session;
    await this.#connection.run({
      script: INDEX,
      keys: [this.#keys.sessionsOfUser(subject)],
      args: [sessionId, absoluteLifetime],
    });
    const args = [JSON.stringify(session), subject, absoluteLifetime, idleLifetime];
    await this.#connection.run({ script: CREATE, keys: [this.#keys.session(sessionId)], args });
  }

  use(sessionId: string): Promise<Session | undefined> {
    return this.#session(USE, sessionId);
  }

  async end(sessionId: string): Promise<void> {
    await this.#end(sessionId, { mayBeSigningIn: false });
  }

  /**
   * @param options.mayBeSigningIn whether a missing session may belong to a sign-in in progress, which may then
   *   continue
   */
  async #end(sessionId: string, { mayBeSigningIn }: { readonly mayBeSigningIn: boolean }): Promise<void> {
    const ending = { script: END, keys: [this.#keys.session(sessionId)] };
    let subject: string | null | undefined;
    try {
      subject = (await this.#connection.run(ending)) as string | null;
    } finally {
      // Also when no answer came.
      if (subject !== null || !mayBeSigningIn) this.#connection.recordForReplay(ending);
    }
    // A session of a sign-in in progress must be found later: it stays in the index, whose scores expire it otherwise.
    if (subject === null) return;
    const keys = [this.#keys.sessionsOfUser(subject)];
    await this.#connection.run({ script: FORGET, keys, args: [sessionId] });
  }

  /** @throws StoreUnavailableError when some sessions could not be ended; all others are ended */
  async endAll(subject: string): Promise<void> {
    await this.#each(subject, (sessionId) => this.#end(sessionId, { mayBeSigningIn: true }));
  }

  async list(subject: string): Promise<readonly Session[]> {
    const sessions = await this.#each(subject, (sessionId) => this.#session(READ, sessionId));
    return sessions.filter((session) => session !== undefined);
  }

  /** @throws the error of the first session that failed, after all were tried */
  async #each<Value>(subject: string, work: (sessionId: string) => Promise<Value>): Promise<readonly Value[]> {
    const sessionIds = (await this.#connection.run({
      script: INDEXED,
      keys: [this.#keys.sessionsOfUser(subject)],
    })) as string[];
    const { values, failed } = await attemptEach(sessionIds, BATCH, work);
    if (failed[0] !== undefined) throw failed[0].error;
    return values;
  }

  async #session(script: Script, sessionId: string): Promise<Session | undefined> {
    const json = (await this.#connection.run({ script, keys: [this.#keys.session(sessionId)] })) as string | null;
    return json === null ? undefined : (JSON.parse(json) as Session);
  }
}
