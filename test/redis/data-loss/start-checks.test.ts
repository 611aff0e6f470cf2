import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { judgeInfo, type RedisExpectation, StartChecks } from '../../../src/redis/data-loss/start-checks.ts';
import { parseRedisUrl } from '../../../src/redis/link/redis-url.ts';
import { connectTo } from '../setup/connect.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const expecting = (url: string, acknowledgement?: RedisExpectation['acknowledgement']): RedisExpectation => ({
  target: parseRedisUrl(url),
  acknowledgement,
});

describeRedis('the check of a Redis at the start', () => {
  let server: RedisServer;
  const findings = async (found: RedisServer) => {
    const connection = await connectTo(found);
    try {
      return await new StartChecks(connection, expecting(found.url)).check();
    } finally {
      await connection.close();
    }
  };
  beforeAll(async () => {
    server = await startRedis({ persistent: true });
  });
  afterAll(async () => await server.stop());

  it('has nothing to say about one that keeps what it is given', async () => {
    expect(await findings(server)).toEqual([]);
  });

  it('names an eviction policy and a missing append-only file, with what to set', async () => {
    const cache = await startRedis({ settings: { 'maxmemory-policy': 'allkeys-lru' } });
    const found = await findings(cache);
    await cache.stop();
    expect(found.map(({ reason }) => reason)).toEqual(['eviction_policy', 'no_append_only_file']);
    expect(found[0]?.message).toContain('allkeys-lru');
    expect(found[0]?.message).toContain('noeviction');
    expect(found[1]?.message).toContain('appendonly');
    for (const { server: where, message, isFatal } of found) {
      expect(where).toBe(`127.0.0.1:${cache.port}`);
      expect(message).toContain('GRANTRY_REDIS_URL');
      expect(isFatal).toBe(false);
    }
  });

  it('needs no right to CONFIG', async () => {
    const managed = await startRedis({ persistent: true, settings: { 'rename-command': 'CONFIG ""' } });
    const found = await findings(managed);
    await managed.stop();
    expect(found).toEqual([]);
  });

  describe('reads from INFO', () => {
    let text: string;
    beforeAll(async () => {
      text = String(await server.command('INFO'));
    });
    const reasons = (changed: string, expected = expecting('redis://redis')) =>
      judgeInfo({ server: 'redis:6379', text: changed }, expected).map(({ reason }) => reason);

    it('a version before 7', () => {
      const old = text.replace(/redis_version:\S+/, 'redis_version:6.2.14');
      expect(judgeInfo({ server: 'redis:6379', text: old }, expecting('redis://redis'))).toEqual([
        expect.objectContaining({
          reason: 'old_version',
          message: expect.stringMatching(/redis:6379 has version 6\.2\.14: .* 7 and later; .* GRANTRY_REDIS_URL/),
        }),
      ]);
      expect(reasons(text.replace(/redis_version:\S+/, 'redis_version:10.0.0'))).toEqual([]);
    });

    it('a member of a Cluster that was addressed as one server, which cannot work', () => {
      const member = text.replace('redis_mode:standalone', 'redis_mode:cluster');
      expect(judgeInfo({ server: 'redis:6379', text: member }, expecting('redis://redis'))).toMatchObject([
        { reason: 'wrong_mode', isFatal: true },
      ]);
      expect(reasons(member, expecting('redis+cluster://redis'))).toEqual([]);
    });

    it('a Sentinel that was addressed as a server, which has no data', () => {
      const sentinel = text.replace('redis_mode:standalone', 'redis_mode:sentinel');
      expect(judgeInfo({ server: 'redis:26379', text: sentinel }, expecting('redis://redis'))).toMatchObject([
        { reason: 'wrong_mode', isFatal: true, message: expect.stringMatching(/redis\+sentinel:\/\//) },
      ]);
    });

    it('replicas that need not acknowledge anything', () => {
      const replicated = text.replace('connected_slaves:0', 'connected_slaves:2');
      expect(reasons(replicated)).toEqual(['no_acknowledgement']);
      expect(reasons(text, expecting('redis+sentinel://redis/main'))).toEqual(['no_acknowledgement']);
      expect(reasons(replicated, expecting('redis://redis', { replicas: 1, timeout: 100 }))).toEqual([]);
    });

    it('fewer replicas than have to acknowledge', () => {
      expect(reasons(text, expecting('redis://redis', { replicas: 1, timeout: 100 }))).toEqual(['too_few_replicas']);
    });
  });
});
