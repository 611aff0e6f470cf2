// What can happen to a Redis server that stands alone, and to what it answers.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisServer } from '../redis/servers.ts';
import { until } from '../until.ts';
import { blindly, EVERYTHING, type FaultKind } from './faults.ts';
import type { ProxyMode, TcpProxy } from './tcp-proxy.ts';

/** What happens to a server that stands alone and keeps its file, behind a proxy. */
export function faultsOfServer(server: RedisServer, proxy: TcpProxy): readonly FaultKind[] {
  const proxied = (name: string, mode: ProxyMode): FaultKind => ({
    name,
    async strike(random) {
      proxy.setMode(mode);
      await sleep(random.between(100, 900));
      proxy.setMode('pass');
      return {};
    },
  });
  return [
    {
      name: 'Redis is killed and comes back with its file',
      async strike(random) {
        const blind = await blindly(
          () => server.kill(),
          () => sleep(random.between(50, 800)),
        );
        await server.start();
        return { breaksLogins: true, blind };
      },
    },
    {
      name: 'Redis is killed and comes back empty',
      async strike(random) {
        const [, folder] = (await server.command('CONFIG', 'GET', 'dir')) as [string, string];
        const blind = await blindly(
          () => server.kill(),
          () => sleep(random.between(0, 500)),
        );
        rmSync(join(folder, 'appendonlydir'), { recursive: true });
        await server.start();
        return { lostSince: EVERYTHING, breaksLogins: true, blind };
      },
    },
    {
      name: 'Redis is emptied',
      async strike() {
        await server.command('FLUSHALL');
        return { lostSince: EVERYTHING, breaksLogins: true };
      },
    },
    {
      name: 'Redis is stopped for a while',
      async strike(random) {
        const blind = await blindly(
          () => server.pause(),
          () => sleep(random.between(100, 2500)),
        );
        server.resume();
        return { blind };
      },
    },
    {
      name: 'Redis drops its clients',
      async strike(random) {
        for (let times = random.between(1, 8); times > 0; times--) {
          await server.command('CLIENT', 'KILL', 'TYPE', 'normal');
          await sleep(random.between(5, 100));
        }
        return {};
      },
    },
    {
      name: 'the memory of Redis is full',
      async strike(random) {
        await server.command('CONFIG', 'SET', 'maxmemory', 1);
        await sleep(random.between(100, 900));
        await server.command('CONFIG', 'SET', 'maxmemory', 0);
        return {};
      },
    },
    {
      name: 'the disk of Redis is full',
      async strike(random) {
        const [, folder] = (await server.command('CONFIG', 'GET', 'dir')) as [string, string];
        const obstacle = join(folder, 'dump.rdb');
        // A snapshot cannot be put where a folder is, not even by root; the server refuses writes then (MISCONF).
        rmSync(obstacle, { recursive: true, force: true });
        mkdirSync(obstacle);
        await server.command('CONFIG', 'SET', 'save', '3600 1');
        await snapshot(server, 'err');
        await sleep(random.between(100, 900));
        rmSync(obstacle, { recursive: true });
        await snapshot(server, 'ok');
        await server.command('CONFIG', 'SET', 'save', '');
        rmSync(obstacle);
        return {};
      },
    },
    proxied('replies are swallowed', 'swallow'),
    proxied('replies are cut off', 'cut'),
  ];
}

/** Has the server write a snapshot, and waits until it has found out that it can, or cannot. */
async function snapshot(server: RedisServer, status: 'ok' | 'err'): Promise<void> {
  await server.command('BGSAVE');
  await until('the snapshot has ended', async () => {
    const info = String(await server.command('INFO', 'persistence'));
    return info.includes('rdb_bgsave_in_progress:0') && info.includes(`rdb_last_bgsave_status:${status}`);
  });
}
