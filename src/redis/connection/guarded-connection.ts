// The connection of a process that serves requests: it refuses every action in a shard that this process has not
// inspected yet. The inspection determines which deployment the state belongs to and whether writes were lost; it is
// done per shard, so that an unavailable part of Redis does not block the others.

import { StoreUnavailableError } from '../../oauth/ports/error.ts';
import { UnansweredError } from '../link/redis-errors.ts';
import type { Action, PlainRead, Script } from '../scripts/script.ts';
import type { ManagedConnection, RedisConnection } from './connection.ts';
import type { RedisKeys } from './keys.ts';

export interface GuardedConnectionParts {
  readonly connection: ManagedConnection;
  readonly keys: RedisKeys;
  /** Whether a shard may be read and written now. */
  readonly isOpen: (shard: string) => boolean;
}

export class GuardedConnection implements RedisConnection {
  readonly allowsCrossSlot: boolean;
  readonly #connection: ManagedConnection;
  readonly #keys: RedisKeys;
  readonly #isOpen: (shard: string) => boolean;

  constructor({ connection, keys, isOpen }: GuardedConnectionParts) {
    this.allowsCrossSlot = connection.allowsCrossSlot;
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

  /** Not refused: the shard watch replays it, after it has inspected the shard. */
  recordForReplay(action: Action): void {
    this.#connection.recordForReplay(action);
  }

  onReconnect(listener: () => void): () => void {
    return this.#connection.onReconnect(listener);
  }

  /** The first key is enough: the others are in its shard, or on its server and inspected together with it. */
  #refused({ script, keys: [first = ''] }: Action<Script | PlainRead>): Promise<never> | undefined {
    if (this.#isOpen(this.#keys.shardOfKey(first))) return undefined;
    const cause = new UnansweredError('not_joined');
    return Promise.reject(new StoreUnavailableError(script.name, cause, { reason: cause.reason }));
  }
}
