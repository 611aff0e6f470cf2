import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisExpectation, StartChecks, validateServer } from '../../../src/redis/data-loss/start-checks.ts';
import type { RedisCredentials } from '../../../src/redis/topology/connection-maker.ts';
import { makeCertificates, tlsOf } from '../setup/certificates.ts';
import { connectTo } from '../setup/connect.ts';
import { expecting } from '../setup/expectation.ts';
import { guideUser } from '../setup/guide-rights.ts';
import { startCluster } from '../setup/redis-cluster.ts';
import { describeRedis, type RedisServer, type RedisServerOptions, startRedis } from '../setup/servers.ts';

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
    const reasons = (changed: string, expected = expecting('rediss://redis')) =>
      validateServer({ server: 'redis:6379', text: changed, isOpen: false }, expected).map(({ reason }) => reason);

    it('a version before 7', () => {
      const old = text.replace(/redis_version:\S+/, 'redis_version:6.2.14');
      expect(validateServer({ server: 'redis:6379', text: old, isOpen: false }, expecting('rediss://redis'))).toEqual([
        expect.objectContaining({
          reason: 'old_version',
          message: expect.stringMatching(/redis:6379 has version 6\.2\.14: .* 7 and later; .* GRANTRY_REDIS_URL/),
        }),
      ]);
      expect(reasons(text.replace(/redis_version:\S+/, 'redis_version:10.0.0'))).toEqual([]);
    });

    it('a member of a Cluster that was addressed as one server, which cannot work', () => {
      const member = text.replace('redis_mode:standalone', 'redis_mode:cluster');
      expect(
        validateServer({ server: 'redis:6379', text: member, isOpen: false }, expecting('rediss://redis')),
      ).toMatchObject([{ reason: 'wrong_mode', isFatal: true }]);
      expect(reasons(member, expecting('rediss+cluster://redis'))).toEqual([]);
    });

    it('a Sentinel that was addressed as a server, which has no data', () => {
      const sentinel = text.replace('redis_mode:standalone', 'redis_mode:sentinel');
      expect(
        validateServer({ server: 'redis:26379', text: sentinel, isOpen: false }, expecting('rediss://redis')),
      ).toMatchObject([
        { reason: 'wrong_mode', isFatal: true, message: expect.stringMatching(/redis\+sentinel:\/\//) },
      ]);
    });

    it('replicas that need not acknowledge anything', () => {
      const replicated = text.replace('connected_slaves:0', 'connected_slaves:2');
      expect(reasons(replicated)).toEqual(['no_acknowledgement']);
      expect(reasons(text, expecting('rediss+sentinel://redis/main'))).toEqual(['no_acknowledgement']);
      expect(
        reasons(replicated, expecting('rediss://redis', { acknowledgement: { replicas: 1, timeout: 100 } })),
      ).toEqual([]);
    });

    it('fewer replicas than have to acknowledge', () => {
      expect(reasons(text, expecting('rediss://redis', { acknowledgement: { replicas: 1, timeout: 100 } }))).toEqual([
        'too_few_replicas',
      ]);
    });
  });

  describe('on another machine', () => {
    const folder = mkdtempSync(join(tmpdir(), 'grantry-start-checks-'));
    const certificates = makeCertificates(folder);
    const started: RedisServer[] = [];
    afterAll(async () => {
      for (const each of started) await each.stop();
      rmSync(folder, { recursive: true });
    });
    const start = async (options: RedisServerOptions) => {
      const made = await startRedis({ persistent: true, ...options });
      started.push(made);
      return made;
    };
    /** The reasons, for a server that is addressed by another name than that of the loopback interface. */
    const reasonsAt = async (
      found: RedisServer,
      credentials: RedisCredentials,
      different: Partial<RedisExpectation>,
    ): Promise<readonly string[]> => {
      const connection = await connectTo(found, { credentials: () => credentials });
      const expected = expecting(found.url.replace('127.0.0.1', 'redis.example'), different);
      try {
        return (await new StartChecks(connection, expected).check()).map(({ reason }) => reason);
      } finally {
        await connection.close();
      }
    };
    const withPassword = { passwordFile: '/password' };

    it('without a password and TLS: both are named, with what to set', async () => {
      const connection = await connectTo(server);
      const found = await new StartChecks(connection, expecting('redis://redis.example')).check();
      await connection.close();
      expect(found).toEqual([
        expect.objectContaining({ reason: 'no_password', isFatal: false }),
        expect.objectContaining({ reason: 'no_tls', isFatal: false }),
      ]);
      expect(found[0]?.message).toMatch(/requirepass.*GRANTRY_REDIS_PASSWORD_FILE/);
      expect(found[1]?.message).toMatch(/GRANTRY_REDIS_URL with rediss/);
    });

    it('with a user for grantry beside an open default user: it has no password', async () => {
      const open = await start({});
      const user = await guideUser([open]);
      expect(await reasonsAt(open, user, withPassword)).toEqual(['no_password', 'no_tls']);
      await open.command('ACL', 'SETUSER', 'default', 'resetkeys', '~other:*');
      expect(await reasonsAt(open, user, withPassword)).toEqual(['no_tls']);
      await open.command('ACL', 'SETUSER', 'default', 'off');
      expect(await reasonsAt(open, user, withPassword)).toEqual(['no_tls']);
    });

    it('in a Cluster whose nodes have an open default user beside its own: each of them is named', async () => {
      const cluster = await startCluster();
      started.push(...cluster.primaries);
      const user = await guideUser(cluster.primaries);
      const connection = await connectTo(cluster, { credentials: () => user });
      const expected = expecting('rediss+cluster://redis.example', withPassword);
      const found = await new StartChecks(connection, expected).check();
      await connection.close();
      const named = found.filter(({ reason }) => reason === 'no_password').map(({ server: where }) => where);
      expect(named.sort()).toEqual(cluster.primaries.map(({ port }) => `127.0.0.1:${port}`).sort());
    });

    it('with a password and TLS: nothing is named', async () => {
      const { settings, client } = tlsOf(folder, certificates);
      const password = 'secret';
      const closed = await start({
        settings: { ...settings, requirepass: password, 'tls-auth-clients': 'no' },
        client: { ...client, password },
      });
      expect(await reasonsAt(closed, { ca: certificates.ca, password }, withPassword)).toEqual([]);
    });

    it('with TLS that asks for a certificate and no password: nothing is named', async () => {
      const closed = await start(tlsOf(folder, certificates));
      expect(await reasonsAt(closed, certificates, { certificateFile: '/certificate' })).toEqual([]);
    });
  });
});
