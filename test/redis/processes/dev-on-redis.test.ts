// `grantry dev` on a Redis: several on one folder are replicas of one server; and every start that cannot be is explained.
// Each test starts several processes and waits for those that give up, so it may take long.

import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { folderOf, machineClient, removeFolder } from '../../manifests/a-folder.ts';
import { endProcesses, grantry, post, startDev } from '../../processes/grantry-process.ts';
import { startLoneSentinel } from '../setup/replicated-redis.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const JOB = machineClient('job', '  scopes: [default/read]\n  defaultScopes: [default/read]\n');
vi.setConfig({ testTimeout: 60_000 });

const CLIENT_CREDENTIALS = { grant_type: 'client_credentials' };

describeRedis('grantry dev on Redis', () => {
  let redis: RedisServer;
  let folder: string;
  beforeAll(async () => {
    redis = await startRedis({ persistent: true });
  });
  beforeEach(async () => {
    await redis.command('FLUSHALL');
    folder = await folderOf({ 'job.yaml': JOB });
  });
  afterEach(async () => {
    await endProcesses();
    await removeFolder(folder);
  });
  afterAll(() => redis.stop());

  const basic = async () =>
    `default.job:${(await readFile(join(folder, '.grantry/secrets/default.job.secret'), 'utf8')).trim()}`;
  const start = (...args: string[]) => startDev(folder, ['--redis', redis.url, ...args]);
  const refused = (...args: string[]) => grantry(['dev', folder, '--port', '0', ...args]);

  describe('with several replicas', () => {
    it('all have the issuer of the first, whatever their ports; a token of one is good at the others', async () => {
      const first = await start();
      const second = await start();
      expect(second.issuer).toBe(first.issuer);
      expect(second.address).not.toBe(first.address);
      const metadata = await fetch(`${second.address}/.well-known/oauth-authorization-server`);
      expect(await metadata.json()).toMatchObject({ issuer: first.issuer });
      const { body } = await post(`${second.address}/token`, CLIENT_CREDENTIALS, await basic());
      const form = { token: String(body.access_token) };
      const seen = await post(`${first.address}/introspect`, form, await basic());
      expect(seen.body).toMatchObject({ active: true, iss: first.issuer });
    });

    it('what one revokes the other refuses, and a restart forgets nothing', async () => {
      const first = await start();
      const second = await start();
      const { body } = await post(`${first.address}/token`, CLIENT_CREDENTIALS, await basic());
      const token = { token: String(body.access_token) };
      await fetch(`${first.address}/revoke`, {
        method: 'POST',
        body: new URLSearchParams(token),
        headers: { authorization: `Basic ${Buffer.from(await basic()).toString('base64')}` },
      });
      expect((await post(`${second.address}/introspect`, token, await basic())).body).toEqual({ active: false });
      await Promise.all([first, second].map((replica) => replica.grantry.end()));
      const third = await start();
      expect(third.issuer).toBe(first.issuer);
      expect((await post(`${third.address}/introspect`, token, await basic())).body).toEqual({ active: false });
    });

    it('one with another explicit issuer is refused, and both are named', async () => {
      const first = await start();
      const { code, errors } = await refused('--redis', redis.url, '--issuer', 'https://other.example');
      expect(code).toBe(2);
      for (const part of [first.issuer, 'https://other.example', 'GRANTRY_ISSUER']) expect(errors).toContain(part);
    });

    it('another prefix is another deployment', async () => {
      const first = await start();
      const environment = { GRANTRY_REDIS_URL: redis.url, GRANTRY_REDIS_PREFIX: 'other:' };
      const second = await startDev(folder, [], { environment });
      expect(second.issuer).not.toBe(first.issuer);
    });
  });

  describe('at its start', () => {
    it('says what is wrong with the Redis and serves all the same; strictly it refuses', async () => {
      await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
      try {
        const lax = await start();
        await lax.grantry.printed(/maxmemory-policy/);
        const metrics = await (await fetch(`${lax.admin}/metrics`)).text();
        expect(metrics).toContain('grantry_store_warnings{check="eviction_policy"} 1');
        const { code, errors } = await refused('--redis', redis.url, '--strict-redis');
        expect(code).toBe(1);
        expect(errors).toMatch(/^grantry dev: .*maxmemory-policy.*noeviction.*GRANTRY_REDIS_URL.*\n$/);
      } finally {
        await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
      }
    });

    it('needs nothing more than a Redis with an append-only file and no eviction', async () => {
      const { grantry: process } = await start('--strict-redis');
      expect(process.output).not.toContain('warn');
    });

    it('says in one line which variable to correct when Redis cannot be reached', async () => {
      const cases = [
        ['redis://127.0.0.1:1', 1, 'ECONNREFUSED'],
        ['redis://nowhere.invalid', 1, 'nowhere.invalid'],
        ['http://127.0.0.1', 2, 'redis+cluster://'],
        ['redis+sentinel://127.0.0.1:1/primary', 1, '127.0.0.1:1'],
        ['redis+cluster://127.0.0.1:1', 1, '127.0.0.1:1'],
        [redis.url.replace('redis:', 'rediss:'), 1, 'one without TLS needs redis for rediss'],
        [`${redis.url}/99`, 1, 'has no such database'],
      ] as const;
      const ends = await Promise.all(
        cases.map(async ([url, ...expected]) => ({ expected, ...(await refused('--redis', url)) })),
      );
      for (const { expected, code, output, errors } of ends) {
        expect([code, output]).toEqual([expected[0], '']);
        // A fault of the address itself names the flag it was given by.
        expect(errors).toMatch(/^grantry dev: (?:GRANTRY_REDIS_URL|--redis).*\n$/);
        expect(errors).toContain(expected[1]);
      }
    });

    it('says which file to correct when the password is missing or wrong', async () => {
      const locked = await startRedis({ settings: { requirepass: 'right' }, client: { password: 'right' } });
      try {
        const missing = await refused('--redis', locked.url);
        expect([missing.code, missing.errors]).toEqual([1, expect.stringContaining('GRANTRY_REDIS_PASSWORD_FILE')]);
        const file = join(folder, 'password.txt');
        await writeFile(file, 'wrong\n');
        const environment = { GRANTRY_REDIS_URL: locked.url, GRANTRY_REDIS_PASSWORD_FILE: file };
        const wrong = await grantry(['dev', folder, '--port', '0'], { environment });
        expect([wrong.code, wrong.errors]).toEqual([1, expect.stringContaining('GRANTRY_REDIS_PASSWORD_FILE')]);
        expect(wrong.errors).not.toContain('wrong');
        await writeFile(file, '\n');
        const empty = await grantry(['dev', folder, '--port', '0'], { environment });
        expect([empty.code, empty.errors]).toEqual([1, expect.stringMatching(/_PASSWORD_FILE: .* empty/)]);
        await writeFile(file, 'right\n');
        expect((await startDev(folder, [], { environment })).issuer).not.toBe('');
      } finally {
        await locked.stop();
      }
    });

    it.each<readonly [what: string, prepare: () => Promise<unknown>, told: RegExp]>([
      [
        'has no room',
        () => redis.command('CONFIG', 'SET', 'maxmemory', 1),
        /^grantry dev: GRANTRY_REDIS_URL: Redis at \S+ answers and refuses what grantry asks for \(OOM .*\): .*\n$/,
      ],
      [
        'has something else by the name of a key of ours',
        () => redis.command('LPUSH', 'grantry:{s000}:issuer', 'x'),
        /^grantry dev: GRANTRY_REDIS_URL: Redis at \S+ answers and refuses what grantry asks for \(WRONGTYPE .*\): .*\n$/,
      ],
    ])('says what Redis says when it %s', async (_what, prepare, told) => {
      await prepare();
      const { code, errors } = await refused('--redis', redis.url);
      await redis.command('CONFIG', 'SET', 'maxmemory', 0);
      expect([code, errors]).toEqual([1, expect.stringMatching(told)]);
    });

    it('says how the Sentinels are named when one of them was named as the server', async () => {
      const sentinel = await startLoneSentinel(redis);
      const { code, errors } = await refused('--redis', sentinel.url);
      await sentinel.stop();
      expect([code, errors]).toEqual([
        1,
        expect.stringMatching(/is a Sentinel: write GRANTRY_REDIS_URL as redis\+sentinel:/),
      ]);
    });

    it('refuses a pepper that would end with the process, where the folder cannot be written', async () => {
      await chmod(folder, 0o555);
      const user = process.getuid?.() === 0 ? { uid: 65_534 } : {};
      const { code, errors } = await grantry(['dev', folder, '--port', '0', '--redis', redis.url], user);
      await chmod(folder, 0o755);
      expect([code, errors]).toEqual([1, expect.stringMatching(/^grantry dev: .*GRANTRY_PEPPER_FILE\n$/)]);
    });

    it.each([
      ['is not there', undefined],
      ['is too short to be secret', 'short'],
    ])('says so when the secret of the webhook %s', async (_, secret) => {
      const file = join(folder, 'secret.txt');
      if (secret !== undefined) await writeFile(file, secret);
      const { code, errors } = await grantry(['dev', folder, '--port', '0', '--redis', redis.url], {
        environment: { GRANTRY_ALERT_WEBHOOK_URL: 'https://siem.example', GRANTRY_ALERT_WEBHOOK_SECRET_FILE: file },
      });
      expect(code).toBe(2);
      expect(errors).toMatch(/^grantry dev: GRANTRY_ALERT_WEBHOOK_SECRET_FILE: .*\n$/);
    });
  });
});
