// A party that may write to Redis and knows no pepper: whatever it changes, copies or makes up, no record counts for
// another person, client, scope or address than the one that grantry made. It can still delete and lift revocations.

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import type { StoredAccessToken } from '../../../src/oauth/ports/token-stores.ts';
import { sealedStores } from '../../../src/oauth/sealed-stores/sealed-stores.ts';
import { RecordMacs } from '../../../src/oauth/tokens/record-macs.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import {
  accessRequest,
  DAY,
  digest,
  issued,
  MINUTE,
  redeemed,
  redeemRequest,
  rotateRequest,
  sampleGrant,
  signedIn,
  uniqueId,
} from '../../contracts/sample-grants.ts';
import { connectPatiently } from '../setup/patience.ts';
import { describeRedis, type RedisServer, startRedis } from '../setup/servers.ts';

const ISSUER = 'https://id.example';
const [OLD, NEW, OTHER] = [randomBytes(32), randomBytes(32), randomBytes(32)];
const keys = new RedisKeys('grantry:');

describeRedis('state that another party has written', () => {
  let server: RedisServer;
  let connection: ManagedConnection;
  let stores: Stores;
  const forged: string[] = [];
  /** The stores of a replica with these peppers. */
  const storesWith = (...peppers: readonly Uint8Array[]) =>
    sealedStores(redisStores({ connection, keys }), {
      macs: new RecordMacs({ issuer: ISSUER, peppers }),
      onForged: (kind) => forged.push(kind),
    });
  beforeAll(async () => {
    server = await startRedis();
    connection = await connectPatiently(server);
  });
  afterAll(async () => {
    await connection.close();
    await server.stop();
  });
  beforeEach(async () => {
    await server.command('FLUSHALL');
    stores = storesWith(NEW, OLD);
    forged.length = 0;
  });

  const hashOf = async (key: string) => {
    const flat = (await server.command('HGETALL', key)) as readonly string[];
    return Object.fromEntries(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? '']] : [])));
  };
  const nowSeconds = () => Math.floor(Date.now() / 1000);

  /** Texts that stand in place of a part of a record, one after the other. */
  function changesOf(text: string): readonly string[] {
    const swapped = [
      ['usr_alice', 'usr_mallory'],
      ['uid-of-shop', 'uid-of-evil'],
      ['default.shop', 'default.evil'],
      ['https://', 'https://evil.'],
      ['read', 'admin'],
      ['Alice', 'Mallory'],
      [':1', ':2'],
    ].flatMap(([from = '', to = '']) => (text.includes(from) ? [text.replace(from, to)] : []));
    const number = Number(text);
    return [...swapped, `${text}x`, text.slice(1), '', Number.isNaN(number) ? '7' : `${number - 1000}`];
  }

  describe('a grant', () => {
    const GOOD = ['rotated', 'benign_retry', 'healed', 'redeemed'];
    /** What the MAC covers. */
    const COVERED = ['u', 'c', 's', 'i', 't', 'A', 'o', 'd', 'r', 'h', 'p'];
    const noted = { upstreamAuthTime: 1_700_000_000_000 };

    it.each(COVERED)('with another field %s gives nothing by code, refresh token or introspection', async (field) => {
      const made = await redeemed(stores.grants, noted);
      const unredeemed = await issued(stores.grants, noted);
      for (const { grantId } of [made, unredeemed]) {
        const key = keys.grant(grantId);
        const before = await hashOf(key);
        expect(before[field], field).toBeDefined();
        for (const change of changesOf(before[field] ?? '')) {
          await server.command('HSET', key, field, change);
          const outcomes = await Promise.all([
            stores.grants.rotate(rotateRequest(made, 0)).then(
              ({ outcome }) => outcome,
              () => 'failed',
            ),
            stores.grants.redeem(redeemRequest(unredeemed)).then(
              ({ outcome }) => outcome,
              () => 'failed',
            ),
          ]);
          expect(GOOD, `${field} = ${change}`).not.toContain(outcomes[grantId === made.grantId ? 0 : 1]);
          expect(await stores.grants.read(grantId).catch(() => undefined), `${field} = ${change}`).toBeUndefined();
          forged.length = 0;
          const status = await stores.grants.status(grantId, made).catch(() => 'failed');
          expect([status, ...forged], `${field} = ${change}`).toSatisfy(
            ([answer, kind]) => answer === 'failed' || (answer === undefined && kind === 'grant'),
          );
          await server.command('DEL', key);
          await server.command('HSET', key, ...Object.entries(before).flat());
        }
      }
    });

    it('copied to the key of another grant gives nothing', async () => {
      const ofAlice = await redeemed(stores.grants);
      const own = sampleGrant();
      await server.command('COPY', keys.grant(ofAlice.grantId), keys.grant(own.grantId));
      expect(await stores.grants.rotate(rotateRequest(own, 0))).toEqual({ outcome: 'gone' });
      expect(await stores.grants.read(own.grantId)).toBeUndefined();
      expect(await stores.grants.status(own.grantId, ofAlice)).toBeUndefined();
      expect(forged).toEqual(['grant', 'grant', 'grant']);
    });

    it('of any pepper of the roll-over counts, and of another pepper or another issuer does not', async () => {
      for (const [pepper, isRight] of [
        [OLD, true],
        [NEW, true],
        [OTHER, false],
      ] as const) {
        const grant = await redeemed(storesWith(pepper).grants);
        expect((await stores.grants.read(grant.grantId)) !== undefined).toBe(isRight);
      }
    });
  });

  describe('an opaque access token', () => {
    const token = () => ({
      tokenId: `007.${digest(uniqueId())}`,
      issuedAtSeconds: nowSeconds(),
      expiresAtSeconds: nowSeconds() + 600,
    });
    const machine = () => ({
      ...token(),
      clientUid: 'uid-of-shop',
      clientId: 'default.shop',
      subject: 'default.shop',
      scope: ['read'],
      audience: 'https://api.example',
      grantId: undefined,
      authTime: undefined,
    });

    it('of a client is refused with any other member, and under another name', async () => {
      const written = machine();
      await stores.accessTokens.write(written);
      expect(await stores.accessTokens.read(written.tokenId)).toMatchObject(written);
      const key = keys.accessToken(written.tokenId);
      const json = JSON.parse(String(await server.command('GET', key))) as Record<string, unknown>;
      const changed = {
        clientUid: 'x',
        clientId: 'x',
        subject: 'usr_alice',
        scope: ['admin'],
        audience: 'x',
        mac: 'x',
      };
      const later = {
        expiresAtSeconds: nowSeconds() + 9999,
        grantId: '007.x',
        authTime: 1,
        tokenId: `007.${digest('x')}`,
      };
      for (const [name, value] of Object.entries({ ...changed, ...later })) {
        await server.command('SET', key, JSON.stringify({ ...json, [name]: value }));
        expect(await stores.accessTokens.read(written.tokenId), name).toBeUndefined();
      }
      const other = machine();
      await server.command('SET', keys.accessToken(other.tokenId), JSON.stringify(json));
      expect(await stores.accessTokens.read(other.tokenId)).toBeUndefined();
    });

    it('made up for a grant of another person is refused', async () => {
      const grant = await redeemed(stores.grants);
      const madeUp = { ...machine(), grantId: grant.grantId, subject: grant.subject, authTime: grant.authTime };
      for (const mac of [undefined, grant.mac, digest('x').slice(0, 22)]) {
        await server.command('SET', keys.accessToken(madeUp.tokenId), JSON.stringify({ ...madeUp, mac }));
        expect(await stores.accessTokens.read(madeUp.tokenId)).toBeUndefined();
      }
    });

    it('of a grant, without the person or with something else than a text, is refused', async () => {
      const grant = await issued(stores.grants);
      const accessToken = { ...token(), tokenId: `${grant.grantId.slice(0, 3)}.${digest(uniqueId())}` };
      await stores.grants.redeem(redeemRequest(grant, { accessToken }));
      const { subject, ...rest } = (await stores.accessTokens.read(accessToken.tokenId)) as StoredAccessToken;
      for (const [changed, expected] of [
        [{ ...rest, subject }, subject],
        [rest, undefined],
        [{ ...rest, subject: 7 }, undefined],
      ] as const) {
        await server.command('SET', keys.accessToken(accessToken.tokenId), JSON.stringify(changed));
        expect((await stores.accessTokens.read(accessToken.tokenId))?.subject).toBe(expected);
      }
    });

    it('of a grant counts, for that grant only', async () => {
      const grant = await issued(stores.grants);
      const accessToken = { ...token(), tokenId: `${grant.grantId.slice(0, 3)}.${digest(uniqueId())}` };
      await stores.grants.redeem(redeemRequest(grant, { accessToken }));
      const read = await stores.accessTokens.read(accessToken.tokenId);
      expect(read).toMatchObject({ grantId: grant.grantId, subject: grant.subject });
      const other = await redeemed(stores.grants);
      await server.command(
        'SET',
        keys.accessToken(accessToken.tokenId),
        JSON.stringify({ ...read, grantId: other.grantId }),
      );
      expect(await stores.accessTokens.read(accessToken.tokenId)).toBeUndefined();
    });

    it('that its audience ends earlier counts until then, and is refused with the lifetime of its client', async () => {
      const audience = 'https://api.example';
      const at = { [audience]: { scopes: ['read'], maxLifetimeSeconds: 60 } };
      const grant = await issued(stores.grants);
      const accessToken = { ...token(), tokenId: `${grant.grantId.slice(0, 3)}.${digest(uniqueId())}` };
      const { tokenId, issuedAtSeconds, expiresAtSeconds } = accessToken;
      await stores.grants.redeem(redeemRequest(grant, { accessToken, access: accessRequest({ at }) }));
      const read = await stores.accessTokens.read(tokenId);
      expect(read).toMatchObject({ audience, scope: ['read'], expiresAtSeconds: issuedAtSeconds + 60 });
      await server.command('SET', keys.accessToken(tokenId), JSON.stringify({ ...read, expiresAtSeconds }));
      expect(await stores.accessTokens.read(tokenId)).toBeUndefined();
    });

    it.each([
      ['without rules', undefined],
      ['with a longer cap', { 'https://api.example': { scopes: ['read'], maxLifetimeSeconds: 6000 } }],
      ['beside one with a cap', { 'https://files.example': { scopes: ['read'], maxLifetimeSeconds: 60 } }],
    ])('of an audience %s counts as long as its client says', async (_, at) => {
      const grant = await issued(stores.grants);
      const accessToken = { ...token(), tokenId: `${grant.grantId.slice(0, 3)}.${digest(uniqueId())}` };
      await stores.grants.redeem(redeemRequest(grant, { accessToken, access: accessRequest({ at }) }));
      expect(await stores.accessTokens.read(accessToken.tokenId)).toMatchObject(accessToken);
    });
  });

  const OF_BROWSER = { address: '192.0.2.1', browser: 'Firefox' };
  const OF_PROVIDER = Object.assign({ provider: 'corp', upstreamAuthTime: 1_700_000_000_000 }, OF_BROWSER);
  it.each<[string, Record<string, unknown>, Record<string, unknown>[]]>([
    [
      'address or browser',
      OF_BROWSER,
      [
        { address: '192.0.2.2' },
        { browser: 'Opera' },
        { browser: undefined },
        { address: undefined },
        { address: undefined, browser: undefined },
        { provider: 'corp' },
      ],
    ],
    [
      'provider or time there',
      OF_PROVIDER,
      [
        { provider: 'partner' },
        { upstreamAuthTime: 1_700_000_001_000 },
        { upstreamAuthTime: undefined },
        { provider: undefined },
        { provider: undefined, upstreamAuthTime: undefined },
        { address: undefined, browser: undefined },
      ],
    ],
  ])('a session with another %s, or with none in place of one, is over', async (_case, noted, changes) => {
    const session = await signedIn(stores.sessions, noted);
    const key = keys.session(session.sessionId);
    expect(await stores.sessions.use(session.sessionId)).toMatchObject(noted);
    const { v = '' } = await hashOf(key);
    for (const change of changes) {
      await server.command('HSET', key, 'v', JSON.stringify(Object.assign(JSON.parse(v), change)));
      expect(await stores.sessions.use(session.sessionId), JSON.stringify(change)).toBeUndefined();
    }
    await server.command('HSET', key, 'v', v);
    expect(await stores.sessions.use(session.sessionId)).toBeDefined();
  });

  it('a session with another field, without a MAC or copied is over', async () => {
    const session = await signedIn(stores.sessions);
    const key = keys.session(session.sessionId);
    expect(await stores.sessions.use(session.sessionId)).toMatchObject({ subject: 'usr_alice' });
    const before = await hashOf(key);
    for (const field of ['v', 'b', 'c']) {
      for (const change of changesOf(before[field] ?? '')) {
        await server.command('HSET', key, field, change);
        expect(
          await stores.sessions.use(session.sessionId).catch(() => undefined),
          `${field} = ${change}`,
        ).toBeUndefined();
        await server.command('HSET', key, field, before[field] ?? '');
      }
    }
    const own = await signedIn(stores.sessions);
    await server.command('DEL', keys.session(own.sessionId));
    await server.command('COPY', key, keys.session(own.sessionId));
    expect(await stores.sessions.use(own.sessionId)).toBeUndefined();
    expect(await stores.sessions.use(session.sessionId)).toBeDefined();
  });

  it('an interaction with another member, another decision or another name is gone', async () => {
    const { clientUid, clientId, redirectUri, scope, audiences, subject, codeChallenge = '' } = sampleGrant();
    const request = { clientUid, clientId, redirectUri, scope, audiences, codeChallenge, state: 'x' };
    const opened = { interactionId: digest(uniqueId()), sessionId: 'of-alice', subject, authTime: 1, request };
    const { interactionId, sessionId } = opened;
    await stores.interactions.create(opened, 10 * MINUTE);
    const key = keys.interactionsOfSession(sessionId);
    const by = () => ({ attemptId: uniqueId(), after: [] });
    const text = (await hashOf(key))[interactionId] ?? '';
    await server.command('HSET', key, interactionId, text.replace(' - ', ' allow '));
    expect(await stores.interactions.take(interactionId, sessionId, by())).toBeUndefined();
    await server.command('HSET', key, interactionId, text);
    await stores.interactions.decide(interactionId, sessionId, 'deny');
    const denied = (await hashOf(key))[interactionId] ?? '';
    await server.command('HSET', key, interactionId, denied.replace(' deny.', ' allow.'));
    expect(await stores.interactions.take(interactionId, sessionId, by())).toBeUndefined();
    for (const change of changesOf(text.slice(text.indexOf('{')))) {
      await server.command('HSET', key, interactionId, text.slice(0, text.indexOf('{')) + change);
      const read = await stores.interactions.read(interactionId, sessionId).catch(() => undefined);
      expect(read, change).toBeUndefined();
    }
    await server.command('HSET', key, 'another-id', text);
    expect(await stores.interactions.read('another-id', sessionId)).toBeUndefined();
    await server.command('COPY', key, keys.interactionsOfSession('of-mallory'));
    expect(await stores.interactions.read('another-id', 'of-mallory')).toBeUndefined();
    await server.command('HSET', key, interactionId, text);
    expect(await stores.interactions.read(interactionId, sessionId)).toMatchObject(opened);
  });

  it('an interaction whose parameters of OpenID Connect are others, or stand in another place, is gone', async () => {
    const { clientUid, clientId, redirectUri, scope, audiences, subject, codeChallenge = '' } = sampleGrant();
    const confirmation = `jkt.${digest('key')}` as const;
    const openid = { nonce: 'n', prompt: ['consent'] as const, maxAge: 60, loginHint: 'alice', subject };
    const plain = { clientUid, clientId, redirectUri, scope, audiences, codeChallenge, state: 'x' };
    const request = { ...plain, confirmation, uiLocales: ['de', 'en'], openid };
    const opened = { interactionId: digest(uniqueId()), sessionId: 'of-alice', subject, authTime: 1, request };
    const { interactionId, sessionId } = opened;
    await stores.interactions.create(opened, 10 * MINUTE);
    expect(await stores.interactions.read(interactionId, sessionId)).toMatchObject(opened);
    const key = keys.interactionsOfSession(sessionId);
    const text = (await hashOf(key))[interactionId] ?? '';
    const json = text.slice(text.indexOf('{'));
    const stored = JSON.parse(json) as object;
    for (const changed of [
      { ...plain, confirmation },
      { ...plain, openid },
      { ...request, uiLocales: undefined },
      { ...request, uiLocales: ['de'] },
      { ...plain, confirmation: openid.nonce, openid: { ...openid, nonce: confirmation } },
      ...Object.keys(openid).map((name) => ({ ...request, openid: { ...openid, [name]: undefined } })),
      { ...request, openid: { ...openid, nonce: 'm' } },
      { ...request, openid: { ...openid, prompt: [] } },
      { ...request, openid: { ...openid, maxAge: 61 } },
    ]) {
      const forgedText = text.replace(json, JSON.stringify({ ...stored, request: changed }));
      await server.command('HSET', key, interactionId, forgedText);
      expect(await stores.interactions.read(interactionId, sessionId), JSON.stringify(changed)).toBeUndefined();
    }
    await server.command('HSET', key, interactionId, text);
    expect(await stores.interactions.read(interactionId, sessionId)).toMatchObject(opened);
  });

  it('a consent that the person did not give is none: another scope, audience, client or person', async () => {
    const { consents } = stores;
    await consents.give('usr_alice', 'uid', new Map([['https://api.example', ['read']]]), DAY);
    const given = new Map([['https://api.example', ['read']]]);
    expect(await consents.read('usr_alice', 'uid')).toEqual(given);
    const key = keys.consentsOfUser('usr_alice');
    const json = String(await server.command('HGET', key, 'uid'));
    await server.command('HSET', key, 'uid-of-evil', json);
    await server.command('COPY', key, keys.consentsOfUser('usr_bob'));
    expect(await consents.read('usr_alice', 'uid-of-evil')).toEqual(new Map());
    expect(await consents.read('usr_bob', 'uid')).toEqual(new Map());
    for (const [from, to] of [
      ['read', 'admin'],
      ['api.example', 'evil.example'],
      ['read', 'admin read'],
    ] as const) {
      await server.command('HSET', key, 'uid', json.replace(from, to));
      const read = await consents.read('usr_alice', 'uid');
      expect([...(read ?? new Map()).values()].flat()).not.toContain('admin');
      expect([...(read ?? new Map()).keys()]).not.toContain('https://evil.example');
    }
  });
});
