// A store world over a Redis that many tests share: each world has keys of its own and a clock that the test moves while
// real time runs under it.

import type { RedisCredentials } from '../../src/redis/clients.ts';
import type { ManagedConnection } from '../../src/redis/connection.ts';
import { RedisKeys } from '../../src/redis/keys.ts';
import { redisStores } from '../../src/redis/stores.ts';
import type { MakeStores } from '../contracts/store-world.ts';
import { connectTo } from './connect.ts';

/** Longer than what a test does between two looks at the clock takes on a busy machine. */
const TICK = 900;

/** What all keys of all worlds begin with. */
export const WORLD = 'world-';

/** The worlds of one server. `close` ends their connection. */
export interface RedisWorlds {
  readonly makeStores: MakeStores;
  close(): Promise<void>;
}

/** Connects to a server when the first world is made. */
export function redisWorlds(server: () => { readonly url: string; readonly user?: RedisCredentials }): RedisWorlds {
  let offset = 0;
  let worlds = 0;
  let connecting: Promise<ManagedConnection> | undefined;
  return {
    async makeStores() {
      const credentials = () => server().user ?? {};
      connecting ??= connectTo(server(), { clockOffset: () => offset, credentials });
      const connection = await connecting;
      worlds += 1;
      return {
        stores: redisStores({ connection, keys: new RedisKeys(`${WORLD}${worlds}:`) }),
        now: () => Date.now() + offset,
        advance(milliseconds) {
          offset += milliseconds;
        },
        tick: TICK,
        dispose: async () => {},
      };
    },
    async close() {
      await (await connecting)?.close();
    },
  };
}
