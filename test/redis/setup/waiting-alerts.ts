// The alerts that wait in the outbox.

import type { Alert } from '../../../src/oauth/ports/audit.ts';
import type { Grant } from '../../../src/oauth/ports/grant-store.ts';
import { shardOf } from '../../../src/oauth/values/shard.ts';
import type { RedisConnection } from '../../../src/redis/connection/connection.ts';
import type { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { Outbox } from '../../../src/redis/grants/outbox.ts';

/** The alerts about one grant that are not delivered yet, first to last. */
export async function alertsAbout(
  { grantId }: Pick<Grant, 'grantId'>,
  of: { readonly connection: RedisConnection; readonly keys: RedisKeys },
): Promise<readonly Alert[]> {
  const { entries } = await new Outbox(of).list(shardOf(grantId));
  return entries.map(({ alert }) => alert).filter((alert) => alert.grantId === grantId);
}
