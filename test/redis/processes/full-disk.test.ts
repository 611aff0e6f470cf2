// What the guide says of a full disk, on a real server: its append-only file may not grow any more, for which the kernel
// answers each write with an error, as where no block is left.

import { execFileSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';
import { type ClientAnswer, type Replicas, redemption, refreshing, startReplicas } from './replicas.ts';

describeRedis('a client of grantry, while the disk of Redis is full', () => {
  let redis: RedisServer;
  let grantry: Replicas;
  /** The newest that the client has. */
  let token: string;
  let accessToken: string;

  afterEach(async () => {
    await grantry?.stop();
    await redis?.stop();
  });

  async function signedIn(appendfsync: 'everysec' | 'always'): Promise<void> {
    redis = await startRedis({ persistent: true, settings: { appendfsync } });
    grantry = await startReplicas(1, { GRANTRY_REDIS_URL: redis.url });
    const { status, body } = await ask('/token', redemption((await grantry.all[0]?.issueCode('jwt')) ?? ''));
    expect(status).toBe(200);
    [token, accessToken] = [String(body.refresh_token), String(body.access_token)];
  }

  async function ask(path: string, form: Readonly<Record<string, string>>): Promise<ClientAnswer> {
    const [only] = grantry.all;
    if (only === undefined) throw new Error('no replica is there');
    return await only.post('jwt', path, form);
  }

  async function refresh(): Promise<ClientAnswer> {
    const answer = await ask('/token', refreshing(token));
    if (answer.status === 200) token = String(answer.body.refresh_token);
    return answer;
  }

  const generation = () => Number(token.split('.')[3]);

  /** What of the disk the server may use; everything, where nothing is said. */
  function allow(size: number | 'unlimited'): void {
    execFileSync('prlimit', ['--pid', `${redis.pid()}`, `--fsize=${size}:unlimited`]);
  }

  function fill(): void {
    const files = join(redis.folder, 'appendonlydir');
    const [file = ''] = readdirSync(files).filter((name) => name.endsWith('.incr.aof'));
    allow(statSync(join(files, file)).size);
  }

  /** Refreshes until it is refused; the first write that does not fit is answered, or was made elsewhere. */
  async function refused(): Promise<ClientAnswer> {
    let answer = await refresh();
    await until('a refresh is refused', async () => {
      if (answer.status === 200) answer = await refresh();
      return answer.status !== 200;
    });
    return answer;
  }

  const served = () => until('a refresh is answered', async () => (await refresh()).status === 200);

  it('is refused what writes and nothing else, and is served again when there is room (everysec)', async () => {
    await signedIn('everysec');
    fill();
    expect(await refused()).toMatchObject({ status: 503, retryAfter: expect.stringMatching(/^\d+$/) });
    expect(String(await redis.command('INFO', 'persistence'))).toContain('aof_last_write_status:err');
    expect((await ask('/revoke', { token })).status).toBe(503);
    expect(await grantry.all[0]?.issueCode('jwt')).toBeUndefined();
    expect(await ask('/introspect', { token: accessToken })).toMatchObject({ status: 200, body: { active: true } });
    const before = generation();
    allow('unlimited');
    await served();
    expect(generation()).toBe(before + 1);
    expect(await ask('/introspect', { token: accessToken })).toMatchObject({ body: { active: true } });
  });

  it('keeps through a crash what was written while there was room, and can use what was not (everysec)', async () => {
    await signedIn('everysec');
    fill();
    await refused();
    await redis.kill();
    await redis.start();
    await served();
    expect(await ask('/introspect', { token: accessToken })).toMatchObject({ body: { active: true } });
  });

  it('is refused as by an unavailable server, until it is started where there is room; nothing is lost (always)', async () => {
    await signedIn('always');
    fill();
    const pid = redis.pid();
    const before = generation();
    expect((await refused()).status).toBe(503);
    await until('it has ended itself', () => !isRunning(pid));
    expect(generation()).toBe(before);
    expect((await ask('/introspect', { token: accessToken })).status).toBe(503);
    await redis.kill();
    await redis.start();
    await served();
    expect(generation()).toBe(before + 1);
    expect(await ask('/introspect', { token: accessToken })).toMatchObject({ body: { active: true } });
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
