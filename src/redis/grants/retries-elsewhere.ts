// Lua that counts retries of refresh tokens from another network than the rotation's. It runs for such a retry only.

import { RETRIES_IN_A_ROW } from '../../oauth/ports/grant-store.ts';
import type { Script } from '../scripts/script.ts';
import { CLOCK } from '../scripts/script-clock.ts';
import { EFFECTS, RECORD } from './grant-record.ts';

/** KEYS grant, outbox; ARGV offset, the RetryElsewhere as JSON. Answers the alert that it raises. */
export const RETRIED_ELSEWHERE: Script = {
  name: 'grantRetriedElsewhere',
  keys: 2,
  lua: `${CLOCK}${RECORD}local request = cjson.decode(ARGV[2])
${EFFECTS}
if not record or record.z or not record.g then return end
local last, row = string.match(record.j or '-1 0', '^(-?%d+) (%d+)$')
if request.generation <= tonumber(last) then return end
row = request.generation == last + 1 and row + 1 or 1
redis.call('HSET', KEYS[1], 'j', request.generation .. ' ' .. row)
record.l = request.rotatedFrom
if row >= ${RETRIES_IN_A_ROW} then return raise('refresh_token.retried_elsewhere', 'answered_again') end
`,
};
