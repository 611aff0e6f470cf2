// `grantry dev` on a Redis: several on one folder are replicas of one server; and every start that cannot be is explained.
// Each test starts several processes and waits for those that give up, so it may take long.

import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, vi } from 'vitest';
import { folderOf, machineClient, removeFolder } from '../../manifests/a-folder.ts';
import { endProcesses, type GrantryProcess, grantry, post, startDev } from '../../processes/grantry-process.ts';
import { concurrentTests } from '../setup/redis-suite.ts';
import { startLoneSentinel } from '../setup/replicated-redis.ts';
import { describeRedis, startRedis } from '../setup/servers.ts';

const JOB = machineClient('job', '  scopes: [default/read]\n  defaultScopes: [default/read]\n');
vi.setConfig({ testTimeout: 60_000 });

const CLIENT_CREDENTIALS = { grant_type: 'client_credentials' };

/** A Redis, a folder with one client, and the replicas that are started on both. */
async function redisWithFolder() {
  const server = await startRedis({ persistent: true });
  const folder = await folderOf({ 'job.yaml': JOB });
  const replicas: GrantryProcess[] = [];
  async function startWith(environment: Readonly<Record<string, string>>, ...args: readonly string[]) {
    const replica = await startDev(folder, args, { environment });
    replicas.push(replica.grantry);
    return replica;
  }
  return {
    server,
    folder,
    startWith,
    start: (...args: readonly string[]) => startWith({}, '--redis', server.url, ...args),
    refused: (...args: readonly string[]) => grantry(['dev', folder, '--port', '0', ...args]),
    basic: async () =>
      `default.job:${(await readFile(join(folder, '.grantry/secrets/default.job.secret'), 'utf8')).trim()}`,
    async stop() {
      await Promise.all(replicas.map((replica) => replica.end('SIGKILL')));
      await removeFolder(folder);
      await server.stop();
    },
  };
}

describeRedis('grantry dev on Redis', () => {
  const it = concurrentTests(redisWithFolder);
  afterAll(endProcesses);

  describe.concurrent('with several replicas', () => {
    it('all have the issuer of the first, whatever their ports; a token of one is good at the others', async ({
      redis: { start, basic },
    }) => {
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

    it('what one revokes the other refuses, and a restart forgets nothing', async ({ redis: { start, basic } }) => {
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

    it('one with another explicit issuer is refused, and both are named', async ({
      redis: { server, start, refused },
    }) => {
      const first = await start();
      const { code, errors } = await refused('--redis', server.url, '--issuer', 'https://other.example');
      expect(code).toBe(2);
      for (const part of [first.issuer, 'https://other.example', 'GRANTRY_ISSUER']) expect(errors).toContain(part);
    });

    it('another prefix is another deployment', async ({ redis: { server, startWith, start } }) => {
      const first = await start();
      const environment = { GRANTRY_REDIS_URL: server.url, GRANTRY_REDIS_PREFIX: 'other:' };
      const second = await startWith(environment);
      expect(second.issuer).not.toBe(first.issuer);
    });
  });

  describe.concurrent('at its start', () => {
    it('says what is wrong with the Redis and serves all the same; strictly it refuses', async ({
      redis: { server, start, refused },
    }) => {
      await server.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
      const lax = await start();
      await lax.grantry.printed(/maxmemory-policy/);
      const metrics = await (await fetch(`${lax.admin}/metrics`)).text();
      expect(metrics).toContain('grantry_store_warnings{check="eviction_policy"} 1');
      const { code, errors } = await refused('--redis', server.url, '--strict-redis');
      expect(code).toBe(1);
      expect(errors).toMatch(/^grantry dev: .*maxmemory-policy.*noeviction.*GRANTRY_REDIS_URL.*\n$/);
    });

    it('needs nothing more than a Redis with an append-only file and no eviction', async ({ redis: { start } }) => {
      const { grantry: process } = await start('--strict-redis');
      expect(process.output).not.toContain('warn');
    });

    it('says in one line which variable to correct when Redis cannot be reached', async ({
      redis: { server, refused },
    }) => {
      const cases = [
        ['redis://127.0.0.1:1', 1, 'ECONNREFUSED'],
        ['redis://nowhere.invalid', 1, 'nowhere.invalid'],
        ['http://127.0.0.1', 2, 'redis+cluster://'],
        ['redis+sentinel://127.0.0.1:1/primary', 1, '127.0.0.1:1'],
        ['redis+cluster://127.0.0.1:1', 1, '127.0.0.1:1'],
        [server.url.replace('redis:', 'rediss:'), 1, 'one without TLS needs redis for rediss'],
        [`${server.url}/99`, 1, 'has no such database'],
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

    it('says which file to correct when the password is missing or wrong', async ({
      redis: { folder, startWith, refused },
    }) => {
      const locked = await startRedis({ settings: { requirepass: 'right' }, client: { password: 'right' } });
      try {
        const environmentWith = async (name: string, password: string) => {
          const file = join(folder, name);
          await writeFile(file, password);
          return { GRANTRY_REDIS_URL: locked.url, GRANTRY_REDIS_PASSWORD_FILE: file };
        };
        const refusedWith = async (name: string, password: string) =>
          await grantry(['dev', folder, '--port', '0'], { environment: await environmentWith(name, password) });
        const [missing, wrong, empty] = await Promise.all([
          refused('--redis', locked.url),
          refusedWith('wrong.txt', 'wrong\n'),
          refusedWith('empty.txt', '\n'),
        ]);
        expect([missing.code, missing.errors]).toEqual([1, expect.stringContaining('GRANTRY_REDIS_PASSWORD_FILE')]);
        expect([wrong.code, wrong.errors]).toEqual([1, expect.stringContaining('GRANTRY_REDIS_PASSWORD_FILE')]);
        expect(wrong.errors.replaceAll('wrong.txt', '')).not.toContain('wrong');
        expect([empty.code, empty.errors]).toEqual([1, expect.stringMatching(/_PASSWORD_FILE: .* empty/)]);
        expect((await startWith(await environmentWith('right.txt', 'right\n'))).issuer).not.toBe('');
      } finally {
        await locked.stop();
      }
    });

    it.for([
      ['has no room', ['CONFIG', 'SET', 'maxmemory', 1], 'OOM'],
      ['has something else by the name of a key of ours', ['LPUSH', 'grantry:{s000}:issuer', 'x'], 'WRONGTYPE'],
    ] as const)('says what Redis says when it %s', async ([, prepare, said], { redis: { server, refused } }) => {
      await server.command(...prepare);
      const { code, errors } = await refused('--redis', server.url);
      const refusal =
        /^grantry dev: GRANTRY_REDIS_URL: Redis at \S+ answers and refuses what grantry asks for \((\w+) .*\): .*\n$/;
      expect([code, refusal.exec(errors)?.[1]]).toEqual([1, said]);
    });

    it('says how the Sentinels are named when one of them was named as the server', async ({
      redis: { server, refused },
    }) => {
      const sentinel = await startLoneSentinel(server);
      const { code, errors } = await refused('--redis', sentinel.url);
      await sentinel.stop();
      expect([code, errors]).toEqual([
        1,
        expect.stringMatching(/is a Sentinel: write GRANTRY_REDIS_URL as redis\+sentinel:/),
      ]);
    });

    it('refuses a pepper that would end with the process, where the folder cannot be written', async ({
      redis: { server, folder },
    }) => {
      await chmod(folder, 0o555);
      const user = process.getuid?.() === 0 ? { uid: 65_534 } : {};
      const { code, errors } = await grantry(['dev', folder, '--port', '0', '--redis', server.url], user);
      await chmod(folder, 0o755);
      expect([code, errors]).toEqual([1, expect.stringMatching(/^grantry dev: .*GRANTRY_PEPPER_FILE\n$/)]);
    });

    it.for([
      ['is not there', undefined],
      ['is too short to be secret', 'short'],
    ] as const)('says so when the secret of the webhook %s', async ([, secret], { redis: { server, folder } }) => {
      const file = join(folder, 'secret.txt');
      if (secret !== undefined) await writeFile(file, secret);
      const { code, errors } = await grantry(['dev', folder, '--port', '0', '--redis', server.url], {
        environment: { GRANTRY_ALERT_WEBHOOK_URL: 'https://siem.example', GRANTRY_ALERT_WEBHOOK_SECRET_FILE: file },
      });
      expect(code).toBe(2);
      expect(errors).toMatch(/^grantry dev: GRANTRY_ALERT_WEBHOOK_SECRET_FILE: .*\n$/);
    });
  });
});
