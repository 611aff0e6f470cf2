// Names of keys: their page, their slots, and that no two things share one.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { SHARDS, shardOfPerson } from '../../../src/oauth/values/shard.ts';
import { KEY_PATTERNS, RedisKeys } from '../../../src/redis/connection/keys.ts';

const keys = new RedisKeys('grantry:');
const DIGEST = 'x'.repeat(43);

const MADE: Readonly<Record<keyof typeof KEY_PATTERNS, string>> = {
  grant: keys.grant(`007.${DIGEST}`),
  grantsOfPerson: keys.grantsOfPerson('uid', 'usr_alice'),
  accessToken: keys.accessToken(`007.${DIGEST}`),
  raisedAlerts: keys.raisedAlerts('007'),
  webhookAlerts: keys.webhookAlerts('007'),
  controllerAlerts: keys.controllerAlerts('007'),
  globalWatermark: keys.globalWatermark('007'),
  clientWatermark: keys.clientWatermark('uid'),
  peopleWatermark: keys.peopleWatermark('007'),
  userWatermark: keys.userWatermark('usr_alice'),
  consentWatermark: keys.consentWatermark('uid', 'usr_alice'),
  revokedToken: keys.revokedToken('jti'),
  users: keys.users('007'),
  person: keys.person('usr_alice'),
  session: keys.session(`007.${DIGEST}`),
  sessionsOfUser: keys.sessionsOfUser('usr_alice'),
  loginsOfUser: keys.loginsOfUser('usr_alice'),
  logouts: keys.logouts('007'),
  consentsOfUser: keys.consentsOfUser('usr_alice'),
  usesOfUser: keys.usesOfUser('usr_alice'),
  interactionsOfSession: keys.interactionsOfSession('id'),
  replay: keys.replay('purpose', 'value'),
  rateLimit: keys.rateLimit('key'),
  marker: keys.marker('007'),
  issuer: keys.issuer(),
};

describe('the page of keys', () => {
  const page = readFileSync(new URL('../../../docs/reference/redis-keys.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `(\{sNNN\}[^`]*)` \|(.*)\|$/gm)];

  it('lists every key there is and no other', () => {
    expect(rows.map((row) => row[1]).sort()).toEqual(Object.values(KEY_PATTERNS).sort());
  });

  it('says of each its type, lifetime, content and writer', () => {
    for (const row of rows) {
      const cells = `${row[2]}`.split('|').map((cell) => cell.trim());
      expect(cells).toHaveLength(4);
      expect(cells).not.toContain('');
    }
  });
});

describe('a key', () => {
  for (const [name, key] of Object.entries(MADE)) {
    it(`is made as its pattern says: ${name}`, () => {
      const pattern = KEY_PATTERNS[name as keyof typeof KEY_PATTERNS];
      const [fixed = ''] = pattern.split('<');
      expect(
        key
          .replace(/\{s\d{3}\}/, '{sNNN}')
          .slice('grantry:'.length)
          .startsWith(fixed),
      ).toBe(true);
      if (pattern.includes('<SHA-256')) expect(key).toMatch(/:[\w-]{43}$/);
    });
  }

  it('is in the shard its id says', () => {
    expect(MADE.grant).toBe(`grantry:{s007}:g:${DIGEST}`);
    expect(MADE.accessToken).toBe(`grantry:{s007}:token:${DIGEST}`);
  });

  it('is refused for an id without shard, or with one there is not', () => {
    for (const id of [DIGEST, '', `256.${DIGEST}`, `-01.${DIGEST}`, `07.${DIGEST}`]) {
      expect(() => keys.grant(id), id).toThrow(TypeError);
    }
  });

  it('is spread over the shards when its name decides', () => {
    const shards = Array.from({ length: 4000 }, (_, index) => keys.userWatermark(`user ${index}`).slice(8, 14));
    expect(new Set(shards).size).toBe(SHARDS.length);
  });

  it('differs for whatever differs: kinds, letters, and every split of a pair', () => {
    const all = [
      ...Object.values(MADE),
      keys.userWatermark('uid'),
      keys.clientWatermark('usr_alice'),
      keys.consentWatermark('usr_alice', 'uid'),
      keys.consentWatermark('a","b', 'c'),
      keys.consentWatermark('a', 'b","c'),
      keys.replay('a:b', 'c'),
      keys.replay('a', 'b:c'),
      keys.interactionsOfSession('ID'),
    ];
    expect(new Set(all).size).toBe(all.length);
  });

  it('has the watermarks read together in one slot', () => {
    const slot = (key: string) => /\{(.*?)\}/.exec(key)?.[1];
    expect(slot(keys.consentWatermark('uid', 'usr_alice'))).toBe(slot(keys.userWatermark('usr_alice')));
    const shard = shardOfPerson('usr_alice');
    expect(slot(keys.peopleWatermark(shard))).toBe(slot(keys.userWatermark('usr_alice')));
    expect(slot(keys.peopleWatermark(shard))).toBe(slot(keys.grant(`${shard}.${DIGEST}`)));
    expect(slot(keys.globalWatermark(keys.shardOfClient('uid')))).toBe(slot(keys.clientWatermark('uid')));
  });

  it('has a prefix without braces', () => {
    expect(() => new RedisKeys('{a}:')).toThrow(TypeError);
  });
});
