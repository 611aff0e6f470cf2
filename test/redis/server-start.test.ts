// How a token server takes up its state: a Redis that is away is waited for while others are served, one that holds
// somebody else's state is not.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { readSettings } from '../../src/processes/config.ts';
import { createLog } from '../../src/processes/log.ts';
import { openRedisState, type RedisState } from '../../src/processes/redis-state.ts';
import { StartError } from '../../src/processes/start-error.ts';
import { RedisKeys } from '../../src/redis/keys.ts';
import { endProcesses, grantry } from '../processes/grantry-process.ts';
import { until } from '../until.ts';
import { describeRedis, type RedisServer, startRedis } from './servers.ts';

describeRedis('a server that serves others meanwhile', () => {
  let server: RedisServer;
  const opened: RedisState[] = [];
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => void lines.push(line) });

  beforeEach(async () => {
    lines.length = 0;
    server = await startRedis({ persistent: true });
  });
  afterEach(async () => {
    for (const state of opened.splice(0)) await state.close();
    await endProcesses();
    await server.stop();
  });

  async function open(issuer: string, onFatal: (error: StartError) => void): Promise<RedisState> {
    const { redis } = readSettings({ environment: { GRANTRY_REDIS_URL: server.url } });
    if (redis === undefined) throw new Error('no Redis is configured');
    const state = await openRedisState({ redis, log, issuer: { explicit: issuer, fallback: issuer }, onFatal });
    opened.push(state);
    return state;
  }
  const unexpected = (error: StartError) => {
    throw error;
  };

  it('does not wait for a Redis that is away, and uses it once it is there', async () => {
    await server.kill();
    const state = await open('https://id.example', unexpected);
    expect([state.probe.isUp, state.readiness.fault() === undefined]).toEqual([false, false]);
    expect(lines.join('')).toContain('GRANTRY_REDIS_URL');
    await server.start();
    await until('it has joined', () => lines.join('').includes('redis: reached'));
    expect(await state.stores.replays.claim('test', 'value', Date.now() + 60_000)).toBe('fresh');
  });

  it('ends when the Redis that came back holds the state of another issuer', async () => {
    await open('https://first.example', unexpected);
    await server.kill();
    const fatal = Promise.withResolvers<StartError>();
    await open('https://second.example', fatal.resolve);
    await server.start();
    const error = await fatal.promise;
    expect(error).toBeInstanceOf(StartError);
    expect(error.message).toContain('https://first.example');
  });

  it('ends at once when a Redis that is there does', async () => {
    await open('https://first.example', unexpected);
    await expect(open('https://second.example', unexpected)).rejects.toBeInstanceOf(StartError);
  });

  it('ends with 1, and says why, where something else stands in the place of the issuer', async () => {
    await server.command('RPUSH', new RedisKeys('grantry:').issuer(), 'something else');
    const environment = {
      ...{ GRANTRY_ISSUER: 'https://id.example', GRANTRY_NAMESPACE: 'grantry-system', GRANTRY_ADMIN_PORT: '0' },
      ...{ KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '1' },
      GRANTRY_REDIS_URL: server.url,
    };
    const { code, output } = await grantry(['server'], { environment });
    const fatal = output.split('\n').filter((line) => line.includes('"fatal"'));
    expect([code, fatal]).toEqual([1, [expect.stringContaining('ReplyError: WRONGTYPE')]]);
  });
});
