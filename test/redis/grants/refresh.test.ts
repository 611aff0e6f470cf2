// A refresh and a redemption over Redis: how many scripts they take, and that a kill switch thrown in the middle counts.

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Grant } from '../../../src/oauth/ports/grant-store.ts';
import type { Stores } from '../../../src/oauth/ports/ports.ts';
import { shardOfPerson } from '../../../src/oauth/values/shard.ts';
import type { ManagedConnection, RedisConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import type { PlainRead, Script } from '../../../src/redis/scripts/script.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import {
  digest,
  issued,
  redeemed,
  redeemRequest,
  rotateRequest,
  SHARD,
  sampleGrant,
  uniqueId,
} from '../../contracts/sample-grants.ts';
import { PERSON, type ProtocolWorld, protocolWorld, redirectUriOf } from '../../oauth/model/protocol-world.ts';
import { connectPatiently } from '../setup/patience.ts';
import { startCluster } from '../setup/redis-cluster.ts';
import { describeRedis, startRedis } from '../setup/servers.ts';

/** Where the slots of keys do not matter. */
const ONE_SCRIPT = { refresh: ['grantRotate'], redemption: ['grantRedeem'], look: ['watermarkReadAll'] };
const IN_A_CLUSTER = {
  refresh: ['watermarkReadClient', 'grantRotateApart', 'watermarkReadClient'],
  redemption: ['grantRedeemApart', 'watermarkReadClient'],
  look: ['watermarkReadPerson'],
};

const DEPLOYMENTS = [
  ['one Redis server', startRedis, ONE_SCRIPT],
  ['a Redis Cluster', startCluster, IN_A_CLUSTER],
] as const;

for (const [name, start, { refresh: scripts, redemption, look }] of DEPLOYMENTS) {
  describeRedis(`over ${name} a refresh`, () => {
    let server: { readonly url: string; stop(): Promise<void> };
    let connection: ManagedConnection;
    let stores: Stores;
    let world: ProtocolWorld;
    let keys: RedisKeys;
    let tests = 0;
    let ran: string[];
    /** Called before each script. */
    let before: (script: Script | PlainRead) => Promise<void>;
    beforeAll(async () => {
      server = await start();
      connection = await connectPatiently(server);
    });
    // Keys of its own for each test: what one shuts out, the others must not find shut out.
    beforeEach(async () => {
      ran = [];
      before = async () => {};
      const watched: RedisConnection = {
        allowsCrossSlot: connection.allowsCrossSlot,
        async run(action, deadline) {
          ran.push(action.script.name);
          await before(action.script);
          return await connection.run(action, deadline);
        },
        async runDurably(action, deadline) {
          ran.push(action.script.name);
          await before(action.script);
          return await connection.runDurably(action, deadline);
        },
        recordForReplay: (action) => connection.recordForReplay(action),
      };
      keys = new RedisKeys(`test-${++tests}:`);
      stores = redisStores({ connection: watched, keys });
      const clock = { now: () => Date.now() };
      world = await protocolWorld({ stores, clock, pepper: randomBytes(32), events: [] });
    });
    afterAll(async () => {
      await connection.close();
      await server.stop();
    });

    async function refreshToken(): Promise<string> {
      const verifier = 'a-verifier-of-a-client-that-is-long-enough-for-pkce';
      const code = await world.authorize('web', { scope: ['read'], verifier });
      const form = {
        grant_type: 'authorization_code',
        code,
        redirect_uri: redirectUriOf('web'),
        code_verifier: verifier,
      };
      const answer = await world.token('web', form);
      return 'refresh_token' in answer ? `${answer.refresh_token}` : '';
    }

    it('takes no more scripts than the guide says', async () => {
      const token = await refreshToken();
      ran = [];
      expect(await world.token('web', { grant_type: 'refresh_token', refresh_token: token })).toHaveProperty(
        'access_token',
      );
      expect(ran).toEqual(scripts);
    });

    it('takes a plain read more on a replica that had nothing to do with the family', async () => {
      const { grants } = stores;
      const grant = await redeemed(redisStores({ connection, keys }).grants);
      const request = async () => {
        const subject = (await grants.subjectOf(grant.grantId)) ?? '';
        return rotateRequest(grant, 0, { subject });
      };
      ran = [];
      expect(await grants.rotate(await request())).toMatchObject({ outcome: 'rotated' });
      expect(ran).toEqual(['grantPeek', ...scripts]);
      ran = [];
      expect(await grants.rotate(await request())).toMatchObject({ outcome: 'benign_retry' });
      expect(ran).toEqual(scripts);
    });

    describe('is refused where a kill switch is thrown before its', () => {
      // What the rotation itself has read is not read again.
      const rotation = scripts.findIndex((script) => script.startsWith('grantRotate'));
      const person = scripts.slice(0, rotation + 1).map((script, index) => ({ kind: 'user', index, script }) as const);
      const client = scripts.map((script, index) => ({ kind: 'client', index, script }) as const);
      it.each([...person, ...client])('script $index, $script: $kind', async ({ kind, index }) => {
        const token = await refreshToken();
        const { watermarks } = redisStores({ connection, keys });
        const clientUid = 'uid-web';
        ran = [];
        let thrown = false;
        before = async () => {
          if (ran.length !== index + 1) return;
          thrown = true;
          const subject = kind === 'user' ? { kind, subject: PERSON } : { kind, clientUid };
          await watermarks.raise(subject, Date.now() + 1000);
        };
        const answer = await world.token('web', { grant_type: 'refresh_token', refresh_token: token });
        expect(thrown).toBe(true);
        expect(answer).toEqual({ error: 'invalid_grant', reason: 'grant_before_watermark' });
      });
    });

    describe('or a redemption', () => {
      const request = (grant: Grant) => redeemRequest(grant);
      const createdAt = async ({ grantId }: Grant) => (await stores.grants.read(grantId))?.grant.createdAt ?? 0;
      const neighbour = ['usr_bob', ...Array.from({ length: 5000 }, (_, index) => `usr_${index}`)].find(
        (subject) => subject !== sampleGrant().subject && shardOfPerson(subject) === SHARD,
      );

      it('takes no more scripts than the guide says, on whichever replica', async () => {
        const grant = await issued(redisStores({ connection, keys }).grants);
        expect(await stores.grants.redeem(request(grant))).toMatchObject({ outcome: 'redeemed' });
        expect(ran).toEqual(redemption);
      });

      it('takes one more after something was ended for any person of the shard, and is good', async () => {
        const grant = await issued(redisStores({ connection, keys }).grants);
        const { watermarks } = redisStores({ connection, keys });
        await watermarks.raise({ kind: 'user', subject: `${neighbour}` }, await createdAt(grant));
        ran = [];
        expect(await stores.grants.redeem(request(grant))).toMatchObject({ outcome: 'redeemed' });
        expect(ran).toEqual([...redemption, ...look]);
      });

      it('is of a grant beside its person: another is not issued', async () => {
        const elsewhere = SHARD === '000' ? '001' : '000';
        const issuing = issued(stores.grants, { grantId: `${elsewhere}.${digest(uniqueId())}` });
        await expect(issuing).rejects.toThrow(TypeError);
        expect(ran).toEqual([]);
      });

      const everyLook = [...redemption, ...look];
      const person = everyLook.map((script, index) => ({ kind: 'consent', index, script }) as const);
      const client = redemption.map((script, index) => ({ kind: 'client', index, script }) as const);
      it.each([...person, ...client])('is ended by one thrown before $script: $kind', async ({ kind, index }) => {
        const grant = await issued(stores.grants);
        const { watermarks } = redisStores({ connection, keys });
        const made = await createdAt(grant);
        await watermarks.raise({ kind: 'user', subject: `${neighbour}` }, made);
        ran = [];
        let thrown = false;
        before = async () => {
          if (ran.length !== index + 1) return;
          thrown = true;
          const { clientUid, subject } = grant;
          await watermarks.raise(kind === 'consent' ? { kind, clientUid, subject } : { kind, clientUid }, made);
        };
        expect(await stores.grants.redeem(request(grant))).toEqual({ outcome: 'ended' });
        expect(thrown).toBe(true);
      });
    });
  });
}
