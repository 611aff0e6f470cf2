// How far replication has got: what a replica has of what its primary wrote.

import { until } from '../../until.ts';
import type { RedisServer } from './servers.ts';

/** What a server says of its replication, in lines of `name:value`. */
export async function replicationOf(server: RedisServer): Promise<string> {
  return String(await server.command('INFO', 'replication'));
}

export async function isPrimary(server: RedisServer): Promise<boolean> {
  return (await replicationOf(server)).includes('role:master');
}

/** Whether so many replicas have said that they have all this primary wrote; hardly ever where Sentinels watch it. */
export async function isFollowed(server: RedisServer, replicas: number): Promise<boolean> {
  const info = await replicationOf(server);
  return info.includes('role:master') && info.split(`state=online,offset=${offsetIn(info)},`).length === replicas + 1;
}

/**
 * Waits until so many replicas have said that they have what this primary had written when it was asked first. Sentinels have
 * it write on and on, and replicas speak once a second: what each of them has is hardly ever all of it.
 */
export async function followed(server: RedisServer, { replicas = 2, limit = 15_000 } = {}): Promise<void> {
  let wanted: number | undefined;
  await until(
    `${replicas} replicas follow`,
    async () => {
      const info = await replicationOf(server);
      if (!info.includes('role:master')) return false;
      wanted ??= offsetIn(info);
      const offsets = [...info.matchAll(/state=online,offset=(\d+),/g)].map(([, offset]) => Number(offset));
      return offsets.filter((offset) => offset >= (wanted as number)).length === replicas;
    },
    limit,
  );
}

/** Waits until these replicas have what their primary had when this was called. @returns that moment */
export async function inStep(primary: RedisServer, replicas: readonly RedisServer[]): Promise<number> {
  const moment = performance.now();
  const wanted = offsetIn(await replicationOf(primary));
  for (const replica of replicas) {
    await until('a replica is in step', async () => {
      const info = await replicationOf(replica);
      return info.includes('master_link_status:up') && offsetIn(info) >= wanted;
    });
  }
  return moment;
}

function offsetIn(info: string): number {
  return Number(/^master_repl_offset:(\d+)/m.exec(info)?.[1]);
}
