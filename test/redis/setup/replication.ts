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

/** Whether this server is a primary and so many replicas have said that they have all it wrote. */
export async function isFollowed(server: RedisServer, replicas = 2): Promise<boolean> {
  const info = await replicationOf(server);
  return info.includes('role:master') && info.split(`state=online,offset=${offsetIn(info)},`).length === replicas + 1;
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
