// What the checks of the start hold a Redis against, for a grantry without credentials; a test names what is different.

import type { RedisExpectation } from '../../../src/redis/data-loss/start-checks.ts';
import { parseRedisUrl } from '../../../src/redis/link/redis-url.ts';

export function expecting(url: string, different: Partial<RedisExpectation> = {}): RedisExpectation {
  return {
    target: parseRedisUrl(url),
    acknowledgement: undefined,
    passwordFile: undefined,
    certificateFile: undefined,
    prefix: 'grantry:',
    ...different,
  };
}
