// The consent store in Redis: one hash per person with a field per client uid, so that one script reads and changes all
// consents of a person. A field is JSON: `access` holds the scope at each audience, joined by spaces, `endsAt` the time
// at which the consent ends, and `givenAt` the time at which it was last given.

import type { Consent, ConsentStore, GivenConsent } from '../../oauth/ports/login-stores.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';
import { joined, split } from './spaced-list.ts';

const ACTIVE = `${CLOCK}
local function is_active(json)
  local consent = json and cjson.decode(json)
  return consent and now < consent.endsAt and consent or nil
end
`;

const READ: Script = {
  name: 'consentRead',
  keys: 1,
  lua: `${ACTIVE}
local json = redis.call('HGET', KEYS[1], ARGV[2])
return is_active(json) and json
`,
};

const LIST: Script = {
  name: 'consentList',
  keys: 1,
  lua: `${ACTIVE}
local all = redis.call('HGETALL', KEYS[1])
local found = {}
for at = 1, #all, 2 do
  if is_active(all[at + 1]) then
    found[#found + 1] = all[at]
    found[#found + 1] = all[at + 1]
  end
end
return found
`,
};

/** ARGV offset, client uid, lifetime, then each audience and its scope. Also deletes the person's expired consents. */
const GIVE: Script = {
  name: 'consentGive',
  keys: 1,
  lua: `${ACTIVE}
local function union(before, added)
  local all, seen = {}, {}
  for each in string.gmatch((before or '') .. ' ' .. added, '[^ ]+') do
    if not seen[each] then
      seen[each] = true
      all[#all + 1] = each
    end
  end
  return table.concat(all, ' ')
end
local before = is_active(redis.call('HGET', KEYS[1], ARGV[2]))
local access = before and before.access or {}
for at = 4, #ARGV, 2 do access[ARGV[at]] = union(access[ARGV[at]], ARGV[at + 1]) end
local ends = now + ARGV[3]
local consent = string.format('{"access":%s,"endsAt":%.0f,"givenAt":%.0f}', cjson.encode(access), ends, now)
redis.call('HSET', KEYS[1], ARGV[2], consent)
local last, all = ends, redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
  local consent = is_active(all[at + 1])
  if consent then last = math.max(last, consent.endsAt) else redis.call('HDEL', KEYS[1], all[at]) end
end
expire(KEYS[1], last)
`,
};

/** Replies with the time of the withdrawal. */
const WITHDRAW: Script = {
  name: 'consentWithdraw',
  keys: 1,
  lua: `${CLOCK}
redis.call('HDEL', KEYS[1], ARGV[2])
return string.format('%.0f', now)
`,
};

/** ARGV offset, client uid, the time of the withdrawal. A consent that was given later stays. */
const WITHDRAW_AGAIN: Script = {
  name: 'consentWithdrawAgain',
  keys: 1,
  lua: `
local json = redis.call('HGET', KEYS[1], ARGV[2])
if json and cjson.decode(json).givenAt <= tonumber(ARGV[3]) then redis.call('HDEL', KEYS[1], ARGV[2]) end
`,
};

/** {@link ConsentStore} in Redis. */
export class RedisConsents implements ConsentStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async read(subject: string, clientUid: string): Promise<Consent | undefined> {
    const reply = await this.#connection.run({
      script: READ,
      keys: [this.#keys.consentsOfUser(subject)],
      args: [clientUid],
    });
    return reply === null ? undefined : parseConsent(reply as string);
  }

  async give(subject: string, clientUid: string, allowed: Consent, lifetime: number): Promise<void> {
    const scopes = [...allowed].flatMap(([audience, scope]) => [audience, joined(scope)]);
    const args = [clientUid, lifetime, ...scopes];
    await this.#connection.run({ script: GIVE, keys: [this.#keys.consentsOfUser(subject)], args });
  }

  async withdraw(subject: string, clientUid: string): Promise<void> {
    const keys = [this.#keys.consentsOfUser(subject)];
    const time = Number(await this.#connection.run({ script: WITHDRAW, keys, args: [clientUid] }));
    this.#connection.recordForReplay({ script: WITHDRAW_AGAIN, keys, args: [clientUid, time] });
  }

  async list(subject: string): Promise<readonly GivenConsent[]> {
    const flat = (await this.#connection.run({ script: LIST, keys: [this.#keys.consentsOfUser(subject)] })) as string[];
    const clientUids = flat.filter((_, index) => index % 2 === 0);
    return clientUids.map((clientUid, index) => ({ clientUid, access: parseConsent(flat[2 * index + 1] as string) }));
  }
}

function parseConsent(json: string): Consent {
  const { access } = JSON.parse(json) as { access: Record<string, string> };
  return new Map(Object.entries(access).map(([audience, scope]) => [audience, split(scope)]));
}
