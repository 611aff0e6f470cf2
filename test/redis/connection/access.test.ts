// How grantry authenticates to Redis: TLS on both sides, passwords that change, and the rights that the guide asks for.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/oauth/ports/error.ts';
import { readSettings } from '../../../src/processes/config/config.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import { createLog } from '../../../src/processes/log/log.ts';
import { openRedisState, type RedisState } from '../../../src/processes/redis/redis-state.ts';
import { connectRedis } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { claimIssuer } from '../../../src/redis/data-loss/issuer-claim.ts';
import { ShardWatch } from '../../../src/redis/data-loss/shard-watch.ts';
import { StartChecks } from '../../../src/redis/data-loss/start-checks.ts';
import { parseRedisUrl } from '../../../src/redis/link/redis-url.ts';
import type { Script } from '../../../src/redis/scripts/script.ts';
import type { RedisCredentials } from '../../../src/redis/topology/connection-maker.ts';
import { unhandledErrorsDuring } from '../../unhandled-errors.ts';
import { succeeds, until } from '../../until.ts';
import { makeCertificates, tlsOf } from '../setup/certificates.ts';
import { connectTo, WRITE } from '../setup/connect.ts';
import { expecting } from '../setup/expectation.ts';
import { guideRights } from '../setup/guide-rights.ts';
import { type ReplicatedRedis, startReplicated } from '../setup/replicated-redis.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const PING: Script = { name: 'testPing', keys: 1, lua: "return redis.call('EXISTS', KEYS[1])" };

/** What the last try to connect failed with. */
async function failure(server: RedisServer, credentials: RedisCredentials): Promise<string> {
  const error = await connectTo(server, { credentials: () => credentials }, 400).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(StoreUnavailableError);
  return String((error as StoreUnavailableError).cause);
}

describeRedis('a Redis with TLS and a password', () => {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-tls-'));
  let server: RedisServer;
  let tls: ReturnType<typeof makeCertificates>;
  beforeAll(async () => {
    tls = makeCertificates(folder);
    const password = 'first';
    const { settings, client } = tlsOf(folder, tls);
    server = await startRedis({ settings: { ...settings, requirepass: password }, client: { ...client, password } });
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  it('is used with our certificate, its authority and the password', async () => {
    const connection = await connectTo(server, { credentials: () => ({ ...tls, password: 'first' }) });
    expect(await connection.run({ script: PING, keys: ['{s000}:x'] })).toBe(0);
    await connection.close();
  });

  it('says what is wrong: no password, the wrong one, an unknown authority, no certificate', async () => {
    expect(await failure(server, tls)).toContain('NOAUTH');
    expect(await failure(server, { ...tls, password: 'wrong' })).toContain('WRONGPASS');
    expect(await failure(server, { ...tls, ca: undefined, password: 'first' })).toContain('certificate');
    expect(await failure(server, { ca: tls.ca, password: 'first' })).toMatch(/certificate|closed|reset|disconnected/i);
  });

  it('may be left at any moment of the handshake, trusted or not, and no error goes unheard', async () => {
    const target = parseRedisUrl(server.url);
    const strangers = [{ ca: tls.ca }, { ...tls, ca: undefined }, tls];
    const unheard = await unhandledErrorsDuring(async () => {
      for (let delay = 0; delay < 40; delay += 0.5) {
        const left = strangers.map(async (stranger) => {
          const connection = connectRedis({ target, credentials: () => ({ ...stranger, password: 'first' }) });
          await sleep(delay);
          await connection.close();
        });
        await Promise.all(left);
      }
    });
    expect(unheard).toEqual([]);
  });

  it('is reached again after a certificate and a key that were no pair', async () => {
    const stranger = mkdtempSync(join(tmpdir(), 'grantry-pair-'));
    const { key } = makeCertificates(stranger);
    rmSync(stranger, { recursive: true });
    let current = tls;
    let asked = 0;
    const credentials = () => {
      asked += 1;
      return { ...current, password: 'first' };
    };
    const connection = await connectTo(server, { credentials });
    try {
      current = { ...tls, key };
      await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      const before = asked;
      await until('it has tried with them', () => asked > before + 2 && !connection.isUp);
      current = tls;
      await until('it is up', () => connection.isUp);
      expect(await connection.run({ script: PING, keys: ['{s000}:x'] })).toBe(0);
    } finally {
      await connection.close();
    }
  });

  it('is still reached when the password was changed on both sides', async () => {
    let password = 'first';
    const connection = await connectTo(server, { credentials: () => ({ ...tls, password }) });
    await server.command('CONFIG', 'SET', 'requirepass', 'second');
    password = 'second';
    await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until('it answers', () => succeeds(connection.run({ script: PING, keys: ['{s000}:x'] })), 2000);
    await connection.close();
    await server.command('CONFIG', 'SET', 'requirepass', 'first');
  });
});

describeRedis('the database that is named', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
    await server.command('ACL', 'SETUSER', 'confined', 'on', '>word', '~*', '+@all', '-select');
  });
  afterAll(() => server.stop());

  const of = (database: number) => ({ url: `${server.url}/${database}` });

  it('is written to, and no other', async () => {
    const connection = await connectTo(of(7));
    await connection.run({ script: WRITE, keys: ['{s000}:x'] });
    expect(await server.command('INFO', 'keyspace')).toMatch(/^# Keyspace\s+db7:keys=1,\S+\s*$/);
    await connection.close();
    await server.command('FLUSHALL');
  });

  it.each([
    ['does not exist', 99, {}, 'DB index is out of range'],
    ['is not the user’s to select', 3, { username: 'confined', password: 'word' }, 'NOPERM'],
  ])('is no other one, not for a moment, where it %s', async (_, database, credentials, fault) => {
    const connection = connectRedis({ target: parseRedisUrl(of(database).url), credentials: () => credentials });
    const tries: unknown[] = [];
    for (const end = Date.now() + 500; Date.now() < end; await sleep(1)) {
      tries.push(await connection.run({ script: WRITE, keys: ['{s000}:x'] }).catch((error: unknown) => error));
    }
    expect(tries.filter((answer) => !(answer instanceof StoreUnavailableError)).length).toBe(0);
    const refusal = await connection.ready(100).catch((error: unknown) => error);
    expect(String((refusal as StoreUnavailableError).cause)).toContain(fault);
    await connection.close();
    expect(await server.command('DBSIZE')).toBe(0);
  });
});

describeRedis('Sentinels with a password', () => {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-sentinels-'));
  const file = join(folder, 'password');
  let redis: ReplicatedRedis;
  beforeAll(async () => {
    redis = await startReplicated({ sentinelPassword: 'sentinels' });
  });
  afterAll(async () => {
    await redis?.stop();
    rmSync(folder, { recursive: true });
  });

  async function open(password: string | undefined) {
    writeFileSync(file, `${password}\n`);
    const named = password === undefined ? {} : { GRANTRY_REDIS_SENTINEL_PASSWORD_FILE: file };
    const { redis: settings } = readSettings({ environment: { GRANTRY_REDIS_URL: redis.url, ...named } });
    if (settings === undefined) throw new Error('no Redis is configured');
    const issuer = { explicit: 'https://id.example', fallback: 'https://id.example' };
    return await openRedisState({ redis: settings, log: createLog('silent', process.stdout), issuer });
  }

  it('name the primary to a client that has the password in a file, and to no other', async () => {
    const state = await open('sentinels');
    expect(await state.stores.replays.claim('test', 'value', Date.now() + 60_000)).toBe('fresh');
    await state.close();
    await expect(open('another one')).rejects.toThrow(/^GRANTRY_REDIS_SENTINEL_PASSWORD_FILE: .* refuses/);
    await expect(open(undefined)).rejects.toThrow(/^GRANTRY_REDIS_SENTINEL_PASSWORD_FILE is not set/);
  });
});

describeRedis('a user and a password in files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-user-'));
  const [userFile, passwordFile] = [join(folder, 'username'), join(folder, 'password')];
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
    for (const name of ['one', 'two']) {
      await server.command('ACL', 'SETUSER', name, 'on', `>${name}-password`, ...guideRights());
    }
    await server.command('ACL', 'SETUSER', 'default', 'resetpass');
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  function write(name: string, password = `${name}-password`): void {
    writeFileSync(userFile, `${name}\n`);
    writeFileSync(passwordFile, `${password}\n`);
  }
  async function open() {
    const { redis: settings } = readSettings({
      environment: {
        GRANTRY_REDIS_URL: server.url,
        GRANTRY_REDIS_USERNAME_FILE: userFile,
        GRANTRY_REDIS_PASSWORD_FILE: passwordFile,
      },
    });
    if (settings === undefined) throw new Error('no Redis is configured');
    const issuer = { explicit: 'https://id.example', fallback: 'https://id.example' };
    return await openRedisState({ redis: settings, log: createLog('silent', process.stdout), issuer });
  }
  let claims = 0;
  const isServed = ({ stores }: RedisState) =>
    succeeds(stores.replays.claim('test', `${++claims}`, Date.now() + 60_000));

  it('are who we are, and both may be replaced together', async () => {
    write('one');
    const state = await open();
    expect(await isServed(state)).toBe(true);
    write('two');
    await server.command('ACL', 'DELUSER', 'one');
    await until('the other user is taken', () => isServed(state));
    await state.close();
  });

  it('are of no other user while the file of the user is empty: a start reports it, and later the former one stays', async () => {
    write('two');
    const state = await open();
    try {
      write('', 'two-password');
      await expect(open()).rejects.toMatchObject({
        code: 2,
        message: expect.stringMatching(/^GRANTRY_REDIS_USERNAME_FILE: .* empty/),
      });
      await server.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await until('the former user is restored', () => isServed(state));
    } finally {
      await state.close();
    }
  });

  it('are both named where Redis refuses them', async () => {
    write('two', 'wrong');
    await expect(open()).rejects.toThrow(/^GRANTRY_REDIS_PASSWORD_FILE: .* refuses .* GRANTRY_REDIS_USERNAME_FILE$/);
  });
});

describeRedis('the rights that the guide asks for', () => {
  const keys = new RedisKeys('grantry:');
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(async () => await server.stop());
  const asUser = async (name: string, rights: readonly string[]) => {
    await server.command('ACL', 'SETUSER', name, 'on', '>secret', ...rights);
    return await connectTo(server, { credentials: () => ({ username: name, password: 'secret' }) });
  };

  it('are enough to start and to watch; what they are enough for beside that is in contracts.test.ts', async () => {
    const connection = await asUser('grantry', guideRights());
    const issuer = await claimIssuer({ connection, keys }, { explicit: undefined, fallback: 'https://id.example' });
    const watch = new ShardWatch({ connection, keys, issuer, clock: systemClock, observe: () => {} });
    await watch.start();
    watch.stop();
    expect(await new StartChecks(connection, expecting(server.url)).check()).toHaveLength(1);
    await connection.close();
  });

  it('are needed: without +info it is said which one is missing', async () => {
    const connection = await asUser('blind', [...guideRights(), '-info']);
    const refused = await claimIssuer({ connection, keys }, { explicit: undefined, fallback: '' })
      .then(() => new StartChecks(connection, expecting(server.url)).check())
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StoreUnavailableError);
    expect(String((refused as StoreUnavailableError).cause)).toContain("'info'");
    await connection.close();
  });
});
