import { describe, expect, it } from 'vitest';
import { parseRedisUrl } from '../../../src/redis/link/redis-url.ts';

describe('the address of Redis', () => {
  it('names one server, with TLS and a database where it says so', () => {
    expect(parseRedisUrl('redis://redis.data:6380')).toEqual({
      form: 'standalone',
      address: { host: 'redis.data', port: 6380 },
      tls: false,
      database: 0,
    });
    expect(parseRedisUrl('rediss://[::1]/2')).toEqual({
      form: 'standalone',
      address: { host: '::1', port: 6379 },
      tls: true,
      database: 2,
    });
  });

  it('names Sentinels and the primary they watch', () => {
    expect(parseRedisUrl('redis+sentinel://a:1,b/main')).toEqual({
      form: 'sentinel',
      sentinels: [
        { host: 'a', port: 1 },
        { host: 'b', port: 26_379 },
      ],
      primary: 'main',
      tls: false,
      database: 0,
    });
    expect(parseRedisUrl('rediss+sentinel://a/main/3')).toMatchObject({ tls: true, database: 3 });
  });

  it('names the seeds of a Cluster', () => {
    expect(parseRedisUrl('redis+cluster://a,b:7000')).toEqual({
      form: 'cluster',
      seeds: [
        { host: 'a', port: 6379 },
        { host: 'b', port: 7000 },
      ],
      tls: false,
    });
  });

  it.each([
    ['http://redis:6379', 'redis://host:port'],
    ['redis:6379', 'redis://host:port'],
    ['redis+magic://a', 'redis://host:port'],
    ['', 'redis://host:port'],
    ['redis://', 'redis://host:port'],
    ['redis://host:0', 'host:port'],
    ['redis://host:66000', 'host:port'],
    ['redis://ho st', 'host:port'],
    ['redis://a,b', 'redis+sentinel://'],
    ['redis+sentinel://a,b', '/primary'],
    ['redis+sentinel://a/two words', '/primary'],
    ['redis+cluster://a/1', 'database'],
    ['redis://host/main', 'number'],
    ['redis://user:secret@host', 'GRANTRY_REDIS_PASSWORD_FILE'],
    ['redis://host?tls=1', 'GRANTRY_REDIS_'],
  ])('refuses %j and says how to put it right', (url, fix) => {
    expect(() => parseRedisUrl(url)).toThrow(fix);
  });

  it('never repeats a password', () => {
    expect(() => parseRedisUrl('redis://user:secret@host')).not.toThrow('secret');
  });
});
