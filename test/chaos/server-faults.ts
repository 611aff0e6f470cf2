// What can happen to a Redis server that stands alone, and to what it answers.

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisServer } from '../redis/setup/servers.ts';
import { until } from '../until.ts';
import { blindly, EVERYTHING, type FaultKind, filled } from './faults.ts';
import type { ProxyMode, TcpProxy } from './tcp-proxy.ts';

/** A server that stands alone and keeps its file, and the proxy it is reached through. */
interface ProxiedServer {
  readonly server: RedisServer;
  readonly proxy: TcpProxy;
}

function proxied(name: string, mode: ProxyMode): FaultKind<ProxiedServer> {
  return {
    name,
    async strike({ proxy }, random) {
      proxy.setMode(mode);
      await sleep(random.between(100, 900));
      proxy.setMode('pass');
      return {};
    },
  };
}

/** What happens to one of those. */
export const SERVER_FAULTS: readonly FaultKind<ProxiedServer>[] = [
  {
    name: 'Redis is killed and comes back with its file',
    async strike({ server }, random) {
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
    async strike({ server }, random) {
      const blind = await blindly(
        () => server.kill(),
        () => sleep(random.between(0, 500)),
      );
      rmSync(join(server.folder, 'appendonlydir'), { recursive: true });
      await server.start();
      return { lostSince: EVERYTHING, breaksLogins: true, blind };
    },
  },
  {
    name: 'Redis is emptied',
    async strike({ server }) {
      await server.command('FLUSHALL');
      return { lostSince: EVERYTHING, breaksLogins: true };
    },
  },
  {
    name: 'Redis is stopped for a while',
    async strike({ server }, random) {
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
    async strike({ server }, random) {
      for (let times = random.between(1, 8); times > 0; times--) {
        await server.command('CLIENT', 'KILL', 'TYPE', 'normal');
        await sleep(random.between(5, 100));
      }
      return {};
    },
  },
  {
    name: 'the memory of Redis is full',
    strike: ({ server }, random) => filled([server], random),
  },
  {
    name: 'the disk of Redis is full',
    async strike({ server }, random) {
      const obstacle = server.snapshot;
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

/** Has the server write a snapshot, and waits until it has found out that it can, or cannot. */
async function snapshot(server: RedisServer, status: 'ok' | 'err'): Promise<void> {
  await server.command('BGSAVE');
  await until('the snapshot has ended', async () => {
    const info = String(await server.command('INFO', 'persistence'));
    return info.includes('rdb_bgsave_in_progress:0') && info.includes(`rdb_last_bgsave_status:${status}`);
  });
}
