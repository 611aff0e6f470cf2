// The connection of a process that serves: it asks for nothing in a shard that this process has not looked at yet. Whose
// state lies there and whether something of it was lost is known first, whatever part of Redis is away.

import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import { UnansweredError } from '../link/redis-errors.ts';
import type { Action, PlainRead, Script } from '../scripts/script.ts';
import type { ManagedConnection, RedisConnection } from './connection.ts';
import type { RedisKeys } from './keys.ts';

export interface GuardedConnectionParts {
  readonly connection: ManagedConnection;
  readonly keys: RedisKeys;
  /** Whether a shard may be asked and written to by now. */
  readonly isOpen: (shard: string) => boolean;
}

export class GuardedConnection implements RedisConnection {
  readonly crossesSlots: boolean;
  readonly #connection: ManagedConnection;
  readonly #keys: RedisKeys;
  readonly #isOpen: (shard: string) => boolean;

  constructor({ connection, keys, isOpen }: GuardedConnectionParts) {
    this.crossesSlots = connection.crossesSlots;
    this.#connection = connection;
    this.#keys = keys;
    this.#isOpen = isOpen;
  }

  run(action: Action<Script | PlainRead>, deadline?: number): Promise<unknown> {
    return this.#refused(action) ?? this.#connection.run(action, deadline);
  }

  runDurably(action: Action, deadline?: number): Promise<{ reply: unknown; acknowledged: boolean }> {
    return this.#refused(action) ?? this.#connection.runDurably(action, deadline);
  }

  /** Applied by the watch, which has looked by then. */
  remember(action: Action): void {
    this.#connection.remember(action);
  }

  onReconnect(listener: () => void): () => void {
    return this.#connection.onReconnect(listener);
  }

  /** The first key will do: others are in its shard, or on its server and looked at with it. */
  #refused({ script, keys: [first = ''] }: Action<Script | PlainRead>): Promise<never> | undefined {
    if (this.#isOpen(this.#keys.shardOfKey(first))) return undefined;
    const cause = new UnansweredError('not_joined');
    return Promise.reject(new StoreUnavailableError(script.name, cause, { reason: cause.reason }));
  }
}
