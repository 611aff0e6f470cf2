// The alerts that wait in their outboxes.

import type { Alert } from '../../../src/oauth/ports/audit.ts';
import type { Grant } from '../../../src/oauth/ports/grant-store.ts';
import { shardOf } from '../../../src/oauth/values/shard.ts';
import type { RedisConnection } from '../../../src/redis/connection/connection.ts';
import type { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { AlertOutbox, type QueuedAlert } from '../../../src/redis/grants/alert-outbox.ts';

/** What is in the outboxes of a shard, once for each: to be logged, for the webhook, for the controller. */
async function queuedIn(outbox: AlertOutbox, shard: string): Promise<readonly QueuedAlert[]> {
  const { raised, webhook, controller } = outbox;
  return (await Promise.all([raised, webhook, controller].map((each) => each.list(shard)))).flat();
}

/** The alerts about one grant that are not delivered yet, first to last. */
export async function alertsAbout(
  { grantId }: Pick<Grant, 'grantId'>,
  of: { readonly connection: RedisConnection; readonly keys: RedisKeys },
): Promise<readonly Alert[]> {
  const queued = await queuedIn(new AlertOutbox(of), shardOf(grantId));
  return queued.flatMap(({ alert }) => (alert?.grantId === grantId ? [alert] : []));
}
