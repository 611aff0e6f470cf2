// The guide to passwords and TLS: its commands and configuration files run, and its users can do what they have to and no more.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readSettings } from '../../../src/processes/config/config.ts';
import { createLog } from '../../../src/processes/log/log.ts';
import { openRedisState, type RedisState } from '../../../src/processes/redis/redis-state.ts';
import { StartChecks } from '../../../src/redis/data-loss/start-checks.ts';
import { succeeds, until } from '../../until.ts';
import type { Tls } from '../setup/certificates.ts';
import { connectTo } from '../setup/connect.ts';
import { expecting } from '../setup/expectation.ts';
import { failOver } from '../setup/fail-over.ts';
import { startCluster } from '../setup/redis-cluster.ts';
import { PRIMARY_NAME, startReplicated } from '../setup/replicated-redis.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const guide = readFileSync(new URL('../../../docs/guides/redis-access.md', import.meta.url), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'grantry-access-'));

/** The lines of a file of the guide, by its first comment. */
function file(title: string): readonly (readonly [string, string])[] {
  const [, text] = new RegExp(`^\`\`\`conf\\n# ${title}\\n(.*?)^\`\`\``, 'ms').exec(guide) ?? [];
  if (text === undefined) throw new Error(`the guide has no file ${title}`);
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [, name = '', value = ''] = /^((?:user|sentinel) \S+|\S+) (.*)$/.exec(line) ?? [];
      return [name, value.replace('/etc/redis/tls', folder).replace(/^main /, `${PRIMARY_NAME} `)];
    });
}

/** Files of the guide as the settings of a server of a test, which has an address of its own. */
function tlsOfFiles(client: object, ...titles: readonly string[]): Tls {
  const lines = titles.flatMap(file).filter(([name]) => !['port', 'tls-port', 'sentinel monitor'].includes(name));
  const ca = readFileSync(join(folder, 'ca.crt'), 'utf8');
  return { settings: Object.fromEntries(lines), client: { ...client, tls: { ca } } };
}

const ADMIN = { username: 'admin', password: 'admin-password' };

function write(name: string, text: string): string {
  writeFileSync(join(folder, name), `${text}\n`);
  return join(folder, name);
}

/** A server of grantry with the variables of the guide. */
async function open(url: string, more: Readonly<Record<string, string>> = {}): Promise<RedisState> {
  const environment = {
    GRANTRY_REDIS_URL: url,
    GRANTRY_REDIS_USERNAME: 'grantry',
    GRANTRY_REDIS_PASSWORD_FILE: join(folder, 'password'),
    GRANTRY_REDIS_CA_FILE: join(folder, 'ca.crt'),
    ...more,
  };
  const { redis } = readSettings({ environment });
  if (redis === undefined) throw new Error('no Redis is configured');
  const issuer = { explicit: 'https://id.example', fallback: 'https://id.example' };
  return await openRedisState({ redis, issuer, log: createLog('silent', process.stdout) });
}

let claims = 0;
const claim = ({ stores }: RedisState) => stores.replays.claim('test', `${++claims}`, Date.now() + 60_000);

beforeAll(() => {
  const [, commands = ''] = /^## Certificates.*?```sh\n(.*?)```/ms.exec(guide) ?? [];
  execFileSync('sh', ['-ec', commands], { cwd: folder, stdio: 'pipe' });
  write('password', 'grantry-password');
});
afterAll(() => rmSync(folder, { recursive: true }));

describeRedis('one server as the guide has it', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis(tlsOfFiles(ADMIN, 'redis.conf'));
  });
  afterAll(() => server.stop());

  /** What Redis answers to a command of this user. */
  async function answer(user: object, ...[name = '', ...words]: readonly string[]): Promise<string> {
    const { client } = tlsOfFiles(user, 'redis.conf');
    const redis = new Redis({ ...client, host: '127.0.0.1', port: server.port, enableReadyCheck: false, protocol: 2 });
    redis.on('error', () => {});
    try {
      return String(await redis.call(name, ...words));
    } catch (error) {
      return String(error);
    } finally {
      redis.disconnect();
    }
  }

  it('serves grantry, and is no finding of a strict start', async () => {
    const state = await open(server.url, { GRANTRY_REDIS_STRICT: 'on' });
    expect(await claim(state)).toBe('fresh');
    await state.close();
    const credentials = () => ({
      username: 'grantry',
      password: 'grantry-password',
      ca: readFileSync(join(folder, 'ca.crt'), 'utf8'),
    });
    const connection = await connectTo(server, { credentials });
    const expected = expecting('rediss://redis.example.com', { passwordFile: join(folder, 'password') });
    expect(await new StartChecks(connection, expected).check()).toEqual([]);
    await connection.close();
  });

  it('refuses clients that do not authenticate, and those without TLS', async () => {
    expect(await answer({}, 'PING')).toContain('NOAUTH');
    await expect(connectTo({ url: server.url.replace('rediss', 'redis') }, {}, 500)).rejects.toThrow();
  });

  it('refuses the user of grantry other keys, the names of keys, and what changes the server', async () => {
    const grantry = { username: 'grantry', password: 'grantry-password' };
    expect(await answer(grantry, 'GET', 'grantry:{s000}:issuer')).toBe('https://id.example');
    for (const command of [
      ['GET', 'other:key'],
      ['SET', 'other:key', '1'],
      ['EVAL', "return redis.call('GET', 'other:key')", '0'],
      ['SCAN', '0'],
      ['RANDOMKEY'],
      ['KEYS', '*'],
      ['FLUSHALL'],
      ['CONFIG', 'GET', '*'],
      ['ACL', 'LIST'],
      ['PUBLISH', 'channel', 'text'],
    ]) {
      expect([command, await answer(grantry, ...command)]).toEqual([
        command,
        expect.stringMatching(/NOPERM|can't access/),
      ]);
    }
  });

  it('changes its password without a refusal, by the commands of the guide', async () => {
    const section = /^## Another password.*?^## /ms.exec(guide)?.[0] ?? '';
    const [add, remove] = [...section.matchAll(/^```\n(.*?)```/gms)].map(([, text = '']) => text.trim().split('\n'));
    const run = async (lines: readonly string[] = []) => {
      for (const line of lines) await server.command(...line.split(' '));
    };
    const state = await open(server.url);
    await run(add);
    write('password', 'another-password');
    expect(await claim(state)).toBe('fresh');
    await run(remove);
    await until('the new password is taken', () => succeeds(claim(state)));
    await state.close();
    expect(await answer({ username: 'grantry', password: 'grantry-password' }, 'PING')).toContain('WRONGPASS');
    expect(readFileSync(join(server.folder, 'redis.conf'), 'utf8')).toContain('user grantry on');
    write('password', 'grantry-password');
  });
});

describeRedis('Sentinel as the guide has it', () => {
  it('serves grantry, also after a fail-over', async () => {
    const redis = await startReplicated({
      sentinelPassword: 'sentinels-password',
      tls: tlsOfFiles(ADMIN, 'redis.conf', 'redis.conf, with Sentinel'),
      sentinelTls: tlsOfFiles({}, 'sentinel.conf'),
    });
    try {
      const sentinels = write('sentinel', 'sentinels-password');
      const state = await open(redis.url, { GRANTRY_REDIS_SENTINEL_PASSWORD_FILE: sentinels });
      expect(await claim(state)).toBe('fresh');
      await failOver(redis, []);
      await until('the other primary serves', () => succeeds(claim(state)));
      await state.close();
    } finally {
      await redis.stop();
    }
  });
});

describeRedis('a Cluster as the guide has it', () => {
  it('serves grantry, and its replicas follow', async () => {
    const cluster = await startCluster({
      replicated: true,
      tls: tlsOfFiles(ADMIN, 'redis.conf', 'redis.conf, in a Cluster'),
    });
    try {
      const state = await open(cluster.url, { GRANTRY_REDIS_WAIT: '1:500' });
      for (let count = 0; count < 20; count++) expect(await claim(state)).toBe('fresh');
      await state.close();
    } finally {
      await cluster.stop();
    }
  });
});
