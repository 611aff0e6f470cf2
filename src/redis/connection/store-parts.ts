// The dependencies of every store over Redis.

import type { RedisConnection } from './connection.ts';
import type { RedisKeys } from './keys.ts';

export interface StoreParts {
  readonly connection: RedisConnection;
  readonly keys: RedisKeys;
}
