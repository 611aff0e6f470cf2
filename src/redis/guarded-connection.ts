// The connection of a replica that serves: it asks for nothing in a shard that this replica has not looked at yet. Whose
// state lies there and whether something of it was lost is known first, whatever part of Redis is away.

import { StoreUnavailableError } from '../oauth/error.ts';
import type { ManagedConnection, RedisConnection } from './connection.ts';
import type { RedisKeys } from './keys.ts';
import type { PlainRead, Script } from './script.ts';
import { UnansweredError } from './unanswered.ts';

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

  run(
    action: Script | PlainRead,
    keys: readonly string[],
    args: readonly (string | number)[],
    deadline?: number,
  ): Promise<unknown> {
    return this.#refused(action, keys) ?? this.#connection.run(action, keys, args, deadline);
  }

  runDurably(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    deadline?: number,
  ): Promise<{ reply: unknown; acknowledged: boolean }> {
    return this.#refused(script, keys) ?? this.#connection.runDurably(script, keys, args, deadline);
  }

  /** Applied by the watch, which has looked by then. */
  remember(script: Script, keys: readonly string[], args: readonly (string | number)[]): void {
    this.#connection.remember(script, keys, args);
  }

  onReconnect(listener: () => void): () => void {
    return this.#connection.onReconnect(listener);
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  /** The first key will do: others are in its shard, or on its server and looked at with it. */
  #refused({ name }: Script | PlainRead, [first = '']: readonly string[]): Promise<never> | undefined {
    if (this.#isOpen(this.#keys.shardOfKey(first))) return undefined;
    const cause = new UnansweredError('not_joined');
    return Promise.reject(new StoreUnavailableError(name, cause, { reason: cause.reason }));
  }
}
