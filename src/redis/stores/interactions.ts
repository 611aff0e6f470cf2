// The interaction store in Redis: one hash per session with a field per interaction, so that one script can limit their
// number. A field is four words: its end, its rank among the session's interactions, the decision with its MAC (or
// `-`), and the interaction as JSON. A decision does not extend the lifetime. An interaction that was taken stays until the session's
// next one, prefixed with two more words, `taken` and the attempt id: a retry of an unanswered attempt gets the same
// answer.

import {
  type Interaction,
  type InteractionStore,
  OPEN_INTERACTIONS_PER_SESSION,
  type TakeAttempt,
} from '../../oauth/ports/login-stores.ts';
import type { RedisConnection } from '../connection/connection.ts';
import type { RedisKeys } from '../connection/keys.ts';
import type { StoreParts } from '../connection/store-parts.ts';
import { OUT_OF_MEMORY } from '../scripts/out-of-memory.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK, NOW } from '../scripts/script-clock.ts';

/** Lua: parses and writes a field; a taken or expired interaction parses to nil. */
const FIELD = `
local function parsed(text)
  local ends, place, decision, interaction = string.match(text or '', '^(%d+) (%d+) (%S+) (.*)$')
  if not ends or now >= tonumber(ends) then return nil end
  return { ends = tonumber(ends), place = tonumber(place), decision = decision, interaction = interaction }
end
local function write(id, it)
  local text = string.format('%.0f %.0f %s ', it.ends, it.place, it.decision) .. it.interaction
  redis.call('HSET', KEYS[1], id, text)
end
`;

/** ARGV offset, interaction id, interaction, lifetime, the most interactions of a session. */
const CREATE: Script = {
  name: 'interactionCreate',
  keys: 1,
  lua: `${CLOCK}${FIELD}
local created = { ends = now + ARGV[4], place = 0, decision = '-', interaction = ARGV[3] }
local open, last, all = {}, created.ends, redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
  local other = parsed(all[at + 1])
  if other then
    open[#open + 1] = { id = all[at], place = other.place }
    last = math.max(last, other.ends)
    created.place = math.max(created.place, other.place + 1)
  else
    redis.call('HDEL', KEYS[1], all[at])
  end
end
table.sort(open, function(one, other) return one.place < other.place end)
for at = 1, #open + 1 - tonumber(ARGV[5]) do redis.call('HDEL', KEYS[1], open[at].id) end
write(ARGV[2], created)
expire(KEYS[1], last)
`,
};

/** ARGV offset, interaction id. */
const FOUND = `${CLOCK}${FIELD}
local found = parsed(redis.call('HGET', KEYS[1], ARGV[2]))
`;

const READ: Script = {
  name: 'interactionRead',
  keys: 1,
  lua: `${FOUND}return found and { found.interaction, found.decision }`,
};

/** ARGV offset, interaction id, decision, which is a word, a dot and a MAC. */
const DECIDE: Script = {
  name: 'interactionDecide',
  keys: 1,
  lua: `${FOUND}
if not found then return 'gone' end
if found.decision ~= '-' then
  return string.match(found.decision, '^%a+') == string.match(ARGV[3], '^%a+') and 'decided' or 'conflict'
end
found.decision = ARGV[3]
write(ARGV[2], found)
return 'decided'
`,
};

/** A decision that ends the interaction. */
const DENY: Script = { ...DECIDE, name: 'interactionDeny', allowsOom: true };

/**
 * ARGV offset, interaction id, attempt id, the ids of the earlier unanswered attempts, in one word with a dot around
 * each. While the memory of Redis is full a denied interaction is removed: its taking cannot be recorded for a retry.
 */
const TAKE: Script = {
  name: 'interactionTake',
  keys: 1,
  lua: `${NOW}${FIELD}${OUT_OF_MEMORY}
local text = redis.call('HGET', KEYS[1], ARGV[2])
local taker, kept = string.match(text or '', '^taken (%S+) (.*)$')
if taker and taker ~= ARGV[3] and not string.find(ARGV[4], '.' .. taker .. '.', 1, true) then return false end
local found = parsed(kept or text)
if not found or found.decision == '-' then return false end
local written = redis.pcall('HSET', KEYS[1], ARGV[2], 'taken ' .. ARGV[3] .. ' ' .. (kept or text))
if type(written) ~= 'number' then
  if not is_out_of_memory(written) or not string.find(found.decision, '^deny') then return written end
  redis.call('HDEL', KEYS[1], ARGV[2])
end
return { found.interaction, found.decision }
`,
  // After a refusal the page asks the person to reload it: the attempt must not run after that.
  hasDeadline: true,
};

type InteractionReply = readonly [interaction: string, decision: string] | null;

/** {@link InteractionStore} in Redis. */
export class RedisInteractions implements InteractionStore {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor({ connection, keys }: StoreParts) {
    this.#connection = connection;
    this.#keys = keys;
  }

  async create(interaction: Omit<Interaction, 'decision' | 'decisionMac'>, lifetime: number): Promise<void> {
    const { interactionId, sessionId } = interaction;
    const args = [interactionId, JSON.stringify(interaction), lifetime, OPEN_INTERACTIONS_PER_SESSION];
    await this.#connection.run({ script: CREATE, keys: [this.#keys.interactionsOfSession(sessionId)], args });
  }

  read(interactionId: string, sessionId: string): Promise<Interaction | undefined> {
    return this.#interaction(READ, interactionId, sessionId);
  }

  async decide(
    interactionId: string,
    sessionId: string,
    decision: 'allow' | 'deny',
    mac = '',
  ): Promise<'decided' | 'conflict' | 'gone'> {
    const keys = [this.#keys.interactionsOfSession(sessionId)];
    const script = decision === 'deny' ? DENY : DECIDE;
    const answer = await this.#connection.run({ script, keys, args: [interactionId, `${decision}.${mac}`] });
    return answer as 'decided' | 'conflict' | 'gone';
  }

  take(interactionId: string, sessionId: string, { attemptId, after }: TakeAttempt): Promise<Interaction | undefined> {
    return this.#interaction(TAKE, interactionId, sessionId, [attemptId, ['', ...after, ''].join('.')]);
  }

  async #interaction(
    script: Script,
    interactionId: string,
    sessionId: string,
    more: readonly string[] = [],
  ): Promise<Interaction | undefined> {
    const keys = [this.#keys.interactionsOfSession(sessionId)];
    const reply = (await this.#connection.run({ script, keys, args: [interactionId, ...more] })) as InteractionReply;
    if (reply === null) return undefined;
    const [json, word] = reply;
    const [decision, decisionMac] = word === '-' ? [] : word.split('.');
    const interaction = { ...(JSON.parse(json) as Interaction), decision: decision as Interaction['decision'] };
    return decisionMac ? { ...interaction, decisionMac } : interaction;
  }
}
