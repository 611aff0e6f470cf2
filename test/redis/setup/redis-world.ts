// A store world over a Redis that many tests share: each world has keys of its own and a clock that only the test moves, in
// Redis too. Beside the stores it has what only Redis has: the outboxes of alerts.

import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { AlertOutbox } from '../../../src/redis/grants/alert-outbox.ts';
import type { Script } from '../../../src/redis/scripts/script.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import type { RedisCredentials } from '../../../src/redis/topology/connection-maker.ts';
import type { StoreWorld } from '../../contracts/store-world.ts';
import { frozen } from './frozen-time.ts';
import { connectPatiently } from './patience.ts';

/** What all keys of all worlds begin with. */
export const WORLD = 'world-';

/** A store world and what is beside the stores. */
export interface RedisWorld extends StoreWorld {
  readonly keys: RedisKeys;
  readonly outbox: AlertOutbox;
  /** Writes a field of a hash past everything. */
  put(key: string, field: string, value: string): Promise<void>;
  /** How many fields a hash has. */
  fieldsOf(key: string): Promise<number>;
}

/** The worlds of one server. `close` ends their connection. */
export interface RedisWorlds {
  readonly makeStores: () => Promise<RedisWorld>;
  close(): Promise<void>;
}

const PUT: Script = { name: 'testPut', keys: 1, lua: "return redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])" };
const FIELDS: Script = { name: 'testFields', keys: 1, lua: "return redis.call('HLEN', KEYS[1])" };

/**
 * Connects to a server when the first world is made.
 * @param wrap what the stores have for their connection
 */
export function redisWorlds(
  server: () => { readonly url: string; readonly user?: RedisCredentials },
  wrap = (connection: ManagedConnection) => connection,
): RedisWorlds {
  let now = Date.now();
  let worlds = 0;
  let connecting: Promise<ManagedConnection> | undefined;
  return {
    async makeStores() {
      const credentials = () => server().user ?? {};
      connecting ??= connectPatiently(server(), { clockOffset: () => now, credentials });
      const connection = wrap(frozen(await connecting));
      worlds += 1;
      const keys = new RedisKeys(`${WORLD}${worlds}:`);
      return {
        keys,
        stores: redisStores({ connection, keys }),
        outbox: new AlertOutbox({ connection, keys }),
        async put(key, field, value) {
          await connection.run({ script: PUT, keys: [key], args: [field, value] });
        },
        fieldsOf: async (key) => Number(await connection.run({ script: FIELDS, keys: [key] })),
        now: () => now,
        advance(milliseconds) {
          now += milliseconds;
        },
        tick: 1,
        dispose: async () => {},
      };
    },
    async close() {
      await (await connecting)?.close();
    },
  };
}
