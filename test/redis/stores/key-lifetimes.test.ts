// Every key of the page of keys, made the way the program makes it, with the type and the lifetime that the page says.
// What is extended by each use is checked after one, too.

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { claimIssuer } from '../../../src/redis/data-loss/issuer-claim.ts';
import { ShardMarkers } from '../../../src/redis/data-loss/shard-markers.ts';
import { AlertOutbox } from '../../../src/redis/grants/alert-outbox.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { assertedRecord } from '../../contracts/person-store.ts';
import {
  accessRequest,
  DAY,
  digest,
  issued,
  MINUTE,
  RETENTION,
  redeemRequest,
  rotateRequest,
  SECRET_HASH,
  SHARD,
  sampleGrant,
} from '../../contracts/sample-grants.ts';
import { connectPatiently } from '../setup/patience.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const HOUR = 60 * MINUTE;
const YEAR = 365 * DAY;

/** What a test may take on a busy machine; milliseconds. */
const SLACK = 20_000;

const PREFIX = 'grantry:';
const keys = new RedisKeys(PREFIX);
const PERSON = { subject: 'usr_alice', authTime: 1_700_000_000_000 };
const ACCESS = { scope: ['read'], audiences: ['https://api.example'] };
const CONSENT = new Map([['https://api.example', ['read']]]);

const page = readFileSync(new URL('../../../docs/reference/redis-keys.md', import.meta.url), 'utf8');
const rows = [...page.matchAll(/^\| `(\{sNNN\}[^`]*)` \| ([^|]*) \| ([^|]*) \|.*\|$/gm)].map(
  ([, pattern = '', type = '', lifetime = '']) => ({ pattern, type: type.split(/, (?!set)/)[0], lifetime }),
);

describeRedis('a key in Redis', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  let stores: Stores;
  let offset = 0;
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectPatiently(server, { clockOffset: () => offset });
    stores = redisStores({ connection, keys });
  });
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });

  const now = () => Date.now() + offset;
  const seconds = () => Math.floor(now() / 1000);

  /** @param lifetime in milliseconds; undefined: it stays for good */
  async function expectKept(key: string, lifetime: number | undefined): Promise<void> {
    const left = await server.command('PTTL', key);
    if (lifetime === undefined) return expect(left, key).toBe(-1);
    expect(left, key).toBeGreaterThan(lifetime - SLACK);
    expect(left, key).toBeLessThanOrEqual(lifetime);
  }

  /** A grant whose family has been reused, with the alert about it. */
  async function reused(): Promise<string> {
    const grant = await issued(stores.grants);
    await stores.grants.redeem(redeemRequest(grant));
    for (const generation of [0, 1, 0]) {
      await stores.grants.rotate(rotateRequest(grant, generation, { reuseGrace: 0 }));
    }
    return grant.grantId;
  }

  /** Hands the alerts of the shard to the webhook. */
  async function forwarded(): Promise<void> {
    const outbox = new AlertOutbox({ connection, keys });
    for (const { alert } of await outbox.raised.list(SHARD)) {
      if (alert !== undefined) await outbox.forward(alert, true);
    }
  }

  async function delivered(): Promise<void> {
    const key = keys.webhookAlerts(SHARD);
    const outbox = new AlertOutbox({ connection, keys });
    await reused();
    await forwarded();
    await expectKept(key, undefined);
    for (const queued of await outbox.webhook.list(SHARD)) await outbox.webhook.acknowledge(queued);
    expect(await server.command('EXISTS', key)).toBe(0);
    await reused();
    await forwarded();
    await reused();
  }

  const sessionId = (name: string) => `${SHARD}.${digest(name)}`;
  const session = (name: string) => ({
    sessionId: sessionId(name),
    sid: digest(`sid of ${name}`),
    ...PERSON,
    username: 'alice',
    displayName: 'Alice',
    idleLifetime: HOUR,
    absoluteLifetime: 12 * HOUR,
  });

  const raised = async (
    subject: Parameters<Stores['watermarks']['raise']>[0],
    ...names: readonly string[]
  ): Promise<void> => {
    await stores.watermarks.raise(subject, now());
    for (const name of names) await expectKept(name, undefined);
  };

  /** By what the page says of the lifetime: each makes the key and sees that it is so. */
  const LIFETIMES: Readonly<Record<string, Readonly<Record<string, () => Promise<void>>>>> = {
    '{sNNN}:g:<SHA-256 of the family>': {
      '60 s as a code; once redeemed as long as anything issued under the grant can live': async () => {
        const grant = await issued(stores.grants);
        const key = keys.grant(grant.grantId);
        await expectKept(key, MINUTE);
        await stores.grants.redeem(redeemRequest(grant, { retention: 90 * DAY }));
        await expectKept(key, 90 * DAY);
        // Used and revoked it is a tombstone, and stays as long.
        await stores.grants.rotate(rotateRequest(grant, 0, { retention: 180 * DAY }));
        await expectKept(key, 180 * DAY);
        await stores.grants.revoke(grant.grantId);
        await expectKept(key, 180 * DAY);
      },
    },
    '{sNNN}:grants:<SHA-256 of subject and client uid>': {
      'as long as a grant of the client can live, from the last code on': async () => {
        const { clientUid } = await issued(stores.grants);
        const index = keys.grantsOfPerson(clientUid, PERSON.subject);
        await expectKept(index, RETENTION);
        await server.command('PEXPIRE', index, 20 * DAY);
        await stores.grants.issue(sampleGrant(), SECRET_HASH, MINUTE, DAY);
        await expectKept(index, 20 * DAY);
        await issued(stores.grants);
        await expectKept(index, RETENTION);
      },
    },
    '{sNNN}:token:<SHA-256 of the token>': {
      'until `exp`': async () => {
        const grant = await issued(stores.grants);
        const token = () => ({
          tokenId: `${SHARD}.${digest(`token ${Math.random()}`)}`,
          issuedAtSeconds: seconds(),
          expiresAtSeconds: seconds() + 600,
        });
        const [redeemed, refreshed, own] = [token(), token(), token()];
        await stores.grants.redeem(redeemRequest(grant, { accessToken: redeemed }));
        await stores.grants.rotate(rotateRequest(grant, 0, { accessToken: refreshed }));
        const { clientUid, clientId } = grant;
        const machine = { clientUid, clientId, subject: clientId, scope: ['read'], audience: 'https://api.example' };
        await stores.accessTokens.write({ ...own, ...machine, grantId: undefined, authTime: undefined });
        for (const { tokenId } of [redeemed, refreshed, own]) await expectKept(keys.accessToken(tokenId), 10 * MINUTE);
        // The resource of a token may end it earlier.
        const capped = token();
        const at = { 'https://api.example': { scopes: ['read'], maxLifetimeSeconds: 60 } };
        const access = accessRequest({ at });
        await stores.grants.rotate(rotateRequest(grant, 1, { accessToken: capped, access }));
        await expectKept(keys.accessToken(capped.tokenId), MINUTE);
      },
    },
    '{sNNN}:outbox': {
      'none: entries go once logged': async () => {
        await reused();
        await expectKept(keys.raisedAlerts(SHARD), undefined);
        await forwarded();
        expect(await server.command('EXISTS', keys.raisedAlerts(SHARD))).toBe(0);
        await reused();
      },
    },
    '{sNNN}:outbox:webhook': {
      'none: entries go once delivered': delivered,
    },
    '{sNNN}:outbox:controller': {
      // Of an earlier version.
      'none: entries go at the next sweep': async () => {
        await server.command('HSET', keys.controllerAlerts(SHARD), 'name', '{}');
        await expectKept(keys.controllerAlerts(SHARD), undefined);
      },
    },
    '{sNNN}:nbf:global': { none: () => raised({ kind: 'global' }, keys.globalWatermark('000')) },
    '{sNNN}:nbf:client:<client uid>': {
      none: () => raised({ kind: 'client', clientUid: 'uid' }, keys.clientWatermark('uid')),
    },
    '{sNNN}:nbf:people': { none: () => raised({ kind: 'user', ...PERSON }, keys.peopleWatermark(SHARD)) },
    '{sNNN}:nbf:user:<SHA-256 of the subject>': {
      none: () => raised({ kind: 'user', ...PERSON }, keys.userWatermark(PERSON.subject)),
    },
    '{sNNN}:nbf:consent:<SHA-256 of subject and client uid>': {
      none: () =>
        raised({ kind: 'consent', clientUid: 'uid', ...PERSON }, keys.consentWatermark('uid', PERSON.subject)),
    },
    '{sNNN}:jti:<SHA-256 of the jti>': {
      '`exp` + 60 s': async () => {
        await stores.revokedTokens.mark('jti', seconds() + 600);
        await expectKept(keys.revokedToken('jti'), 11 * MINUTE);
        await stores.revokedTokens.mark('jti', seconds() + 300);
        await expectKept(keys.revokedToken('jti'), 11 * MINUTE);
      },
    },
    '{sNNN}:users': {
      none: async () => {
        await stores.users.record(PERSON.subject, 'digest-of-a-hash');
        await expectKept(keys.users(SHARD), undefined);
      },
    },
    '{sNNN}:session:<SHA-256 of the cookie>': {
      'idle lifetime, at most the absolute one': async () => {
        await stores.sessions.create(session('busy'), undefined);
        await expectKept(keys.session(sessionId('busy')), HOUR);
        for (let uses = 0; uses < 13; uses++) {
          offset += 50 * MINUTE;
          await stores.sessions.use(sessionId('busy'));
          await expectKept(keys.session(sessionId('busy')), HOUR);
        }
        offset += 50 * MINUTE;
        await stores.sessions.use(sessionId('busy'));
        await expectKept(keys.session(sessionId('busy')), 20 * MINUTE);
      },
    },
    '{sNNN}:person:<SHA-256 of the subject>': {
      '`verifyEvery` of the provider': async () => {
        const record = await stores.persons.remember(assertedRecord(), 90 * DAY);
        await stores.persons.seal(record, 'mac');
        const { subject } = record;
        await expectKept(keys.person(subject), 90 * DAY);
        const next = await stores.persons.remember(assertedRecord({ subject }), DAY);
        await expectKept(keys.person(subject), 90 * DAY);
        await stores.persons.seal(next, 'mac');
        await expectKept(keys.person(subject), DAY);
      },
    },
    '{sNNN}:sessions:<SHA-256 of the subject>': {
      'until the last of them ends': async () => {
        const index = keys.sessionsOfUser(PERSON.subject);
        await stores.sessions.create(session('long'), undefined);
        await expectKept(index, 12 * HOUR);
        await stores.sessions.create({ ...session('short'), absoluteLifetime: HOUR }, undefined);
        await expectKept(index, 12 * HOUR);
        offset += HOUR;
        await stores.sessions.create(session('later'), undefined);
        await expectKept(index, 12 * HOUR);
      },
    },
    '{sNNN}:logins:<SHA-256 of the subject>': {
      'until the last of the sessions ends': async () => {
        const logins = keys.loginsOfUser(PERSON.subject);
        const begun = { ...session('noting'), authTime: now() };
        await stores.sessions.create(begun, undefined);
        const issue = () =>
          stores.grants.issue(
            {
              ...sampleGrant(),
              login: { sessionId: begun.sessionId, sid: begun.sid, offline: false, namespace: 'shop' },
            },
            SECRET_HASH,
            MINUTE,
            DAY,
          );
        await issue();
        await expectKept(logins, 12 * HOUR);
        await server.command('PEXPIRE', logins, HOUR);
        await issue();
        await expectKept(logins, 12 * HOUR);
        await server.command('PEXPIRE', logins, HOUR);
        await stores.sessions.create(session('succeeding'), undefined, begun);
        await expectKept(logins, 12 * HOUR);
      },
    },
    '{sNNN}:logouts': {
      'none: entries go once acknowledged': async () => {
        const begun = session('ending');
        await stores.sessions.create(begun, undefined);
        const login = { sessionId: begun.sessionId, sid: begun.sid, offline: false, namespace: 'shop' };
        await stores.grants.issue({ ...sampleGrant(), login }, SECRET_HASH, MINUTE, DAY);
        await stores.sessions.end(begun);
        await expectKept(keys.logouts(SHARD), undefined);
      },
    },
    '{sNNN}:consents:<SHA-256 of the subject>': {
      'until the last of them ends': async () => {
        const all = keys.consentsOfUser(PERSON.subject);
        await stores.consents.give(PERSON.subject, 'uid', CONSENT, YEAR);
        await expectKept(all, YEAR);
        offset += 200 * DAY;
        await stores.consents.give(PERSON.subject, 'uid of another', CONSENT, DAY);
        await expectKept(all, YEAR - 200 * DAY);
        await stores.consents.give(PERSON.subject, 'uid', CONSENT, YEAR);
        await expectKept(all, YEAR);
        await stores.consents.withdraw(PERSON.subject, 'uid');
        await expectKept(all, YEAR);
      },
    },
    '{sNNN}:uses:<SHA-256 of the subject>': {
      'a year from the last use': async () => {
        const all = keys.usesOfUser(PERSON.subject);
        await stores.uses.note(PERSON.subject, 'uid');
        await expectKept(all, YEAR);
        offset += 200 * DAY;
        await stores.uses.note(PERSON.subject, 'uid');
        await expectKept(all, YEAR);
      },
    },
    '{sNNN}:interactions:<SHA-256 of the session id>': {
      'until the last of them ends, 10 min each': async () => {
        const { redirectUri, clientUid, clientId, codeChallenge = '' } = await issued(stores.grants);
        const request = { clientUid, clientId, redirectUri, state: undefined, codeChallenge, ...ACCESS };
        const open = (interactionId: string) =>
          stores.interactions.create({ interactionId, sessionId: 'of alice', ...PERSON, request }, 10 * MINUTE);
        const all = keys.interactionsOfSession('of alice');
        await open('first');
        await expectKept(all, 10 * MINUTE);
        offset += 4 * MINUTE;
        await open('second');
        await stores.interactions.decide('second', 'of alice', 'allow');
        await stores.interactions.take('second', 'of alice', { attemptId: 'try', after: [] });
        await expectKept(all, 10 * MINUTE);
      },
    },
    '{sNNN}:seen:<SHA-256 of purpose and value>': {
      'as long as the value could be used': async () => {
        const until = now() + 10 * MINUTE;
        expect(await stores.replays.claim('challenge', 'value', until)).toBe('fresh');
        await expectKept(keys.replay('challenge', 'value'), 10 * MINUTE);
        expect(await stores.replays.claim('challenge', 'value', until + HOUR)).toBe('seen');
        await expectKept(keys.replay('challenge', 'value'), 10 * MINUTE);
      },
    },
    '{sNNN}:rate:<SHA-256 of what is counted>': {
      'the window': async () => {
        await stores.rateLimits.hit('alice', 10, 5 * MINUTE);
        await expectKept(keys.rateLimit('alice'), 5 * MINUTE);
        offset += 3 * MINUTE;
        await stores.rateLimits.hit('alice', 10, 5 * MINUTE);
        await expectKept(keys.rateLimit('alice'), 2 * MINUTE);
        await stores.rateLimits.refund('alice');
        await expectKept(keys.rateLimit('alice'), 2 * MINUTE);
      },
    },
    '{sNNN}:marker': {
      none: async () => {
        const markers = new ShardMarkers({ connection, keys });
        for (const shards of markers.groups) {
          const group = await markers.inspect(shards);
          await markers.restore(group, { watermark: 0, least: 0 });
          await expectKept(keys.marker('000'), undefined);
          await markers.beat(group);
        }
        await expectKept(keys.marker('000'), undefined);
      },
    },
    '{sNNN}:issuer': {
      none: async () => {
        await claimIssuer({ connection, keys }, { explicit: undefined, fallback: 'https://auth.example' });
        await expectKept(keys.issuer(), undefined);
      },
    },
  };

  const TYPES: Readonly<Record<string, string>> = { string: 'string', hash: 'hash', 'sorted set': 'zset' };

  it.each(rows)('lives as the page says: $pattern $lifetime', async ({ pattern, lifetime }) => {
    const check = LIFETIMES[pattern]?.[lifetime];
    if (check === undefined) throw new Error(`${pattern} is not made here, or not for "${lifetime}"`);
    await check();
  });

  describe('of those made here', () => {
    /** The type of each that there is now, by its pattern. */
    async function typesFound(): Promise<Map<string, Set<unknown>>> {
      const found = new Map<string, Set<unknown>>();
      for (const key of (await server.command('KEYS', '*')) as string[]) {
        const pattern = rows.find((row) => matcher(row.pattern).test(key))?.pattern ?? key;
        const types = found.get(pattern) ?? new Set();
        found.set(pattern, types.add(await server.command('TYPE', key)));
      }
      return found;
    }

    it('has the type that the page says; each of the page is there, and no other', async () => {
      const found = await typesFound();
      const said = new Map(rows.map(({ pattern, type = '' }) => [pattern, new Set([TYPES[type]])]));
      expect(Object.fromEntries(found)).toEqual(Object.fromEntries(said));
    });
  });
});

/** The keys of a pattern of the page. */
function matcher(pattern: string): RegExp {
  const below = pattern.replace('{sNNN}', '\\{s\\d{3}\\}').replace(/<SHA-256 [^>]*>/, '[\\w-]{43}');
  return new RegExp(`^${PREFIX}${below.replace('<client uid>', '[^:]+')}$`);
}
