// The person store in Redis: one hash per person, in the shard of the person. The fields: `v` what the provider asserted
// as JSON, `t` when, `e` the end of the record, `c` its MAC. A record that waits for its MAC is in `nv`, `nt` and `ne`.

import type { AssertedRecord, NewAssertedRecord, PersonStore } from '../../oauth/ports/person-store.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';

/** ARGV offset, record, lifetime. Replies with the time. */
const REMEMBER: Script = {
  name: 'personRemember',
  keys: 1,
  lua: `${CLOCK}
local time = string.format('%.0f', now)
redis.call('HSET', KEYS[1], 'nv', ARGV[2], 'nt', time, 'ne', now + ARGV[3])
expire(KEYS[1], math.max(now + ARGV[3], tonumber(redis.call('HGET', KEYS[1], 'e') or 0)))
return time
`,
};

/** ARGV offset, record, time, MAC. Two sign-ins may be recorded in one millisecond: the record is compared too. */
const SEAL: Script = {
  name: 'personSeal',
  keys: 1,
  lua: `${CLOCK}
local record, time, ends = unpack(redis.call('HMGET', KEYS[1], 'nv', 'nt', 'ne'))
if record ~= ARGV[2] or time ~= ARGV[3] then return end
redis.call('HSET', KEYS[1], 'v', record, 't', time, 'e', ends, 'c', ARGV[4])
redis.call('HDEL', KEYS[1], 'nv', 'nt', 'ne')
expire(KEYS[1], tonumber(ends))
`,
};

const READ: Script = {
  name: 'personRead',
  keys: 1,
  lua: `${CLOCK}
local record, time, ends, mac = unpack(redis.call('HMGET', KEYS[1], 'v', 't', 'e', 'c'))
if not record or now >= tonumber(ends) then return false end
return { record, time, mac or '' }
`,
};

/** {@link PersonStore} in Redis. */
export class RedisPersons implements PersonStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async remember(record: NewAssertedRecord, lifetime: number): Promise<AssertedRecord> {
    const keys = [this.#keys.person(record.subject)];
    const args = [jsonOf(record), lifetime];
    return { ...record, verifiedAt: Number(await this.#connection.run({ script: REMEMBER, keys, args })) };
  }

  async seal(record: AssertedRecord, mac: string): Promise<void> {
    const keys = [this.#keys.person(record.subject)];
    await this.#connection.run({ script: SEAL, keys, args: [jsonOf(record), record.verifiedAt, mac] });
  }

  async read(subject: string): Promise<AssertedRecord | undefined> {
    const reply = await this.#connection.run({ script: READ, keys: [this.#keys.person(subject)], args: [] });
    if (reply === null) return undefined;
    const [json, time, mac] = reply as [string, string, string];
    const facts = factsOf(JSON.parse(json) as NewAssertedRecord);
    return { ...facts, subject, verifiedAt: Number(time), mac: mac === '' ? undefined : mac };
  }
}

/** The same text for the same facts. */
function jsonOf(record: NewAssertedRecord): string {
  return JSON.stringify(factsOf(record));
}

/** What a record says, in one order. */
function factsOf(record: NewAssertedRecord): NewAssertedRecord {
  const { subject, provider, issuer, type, username, displayName, email, unverifiedEmail, groups } = record;
  return { subject, provider, issuer, type, username, displayName, email, unverifiedEmail, groups };
}
