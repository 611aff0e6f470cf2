// What a replica remembers of grants, and that nothing but the round trip is saved by it.

import { expect, it } from 'vitest';
import type { Grant } from '../../src/oauth/grant-store.ts';
import { RedisKeys } from '../../src/redis/keys.ts';
import { KnownSubjects } from '../../src/redis/known-subjects.ts';
import { redisStores } from '../../src/redis/stores.ts';
import { redeemed, rotateRequest } from '../contracts/sample-grants.ts';
import { connectTo } from './connect.ts';
import { describeRedis, startRedis } from './servers.ts';

it('the subjects of 10 000 grants are known, the first goes for the next', () => {
  const subjects = new KnownSubjects();
  for (let grant = 0; grant <= 10_000; grant++) subjects.learn(`grant-${grant}`, `usr_${grant}`);
  subjects.learn('grant-10000', 'usr_10000');
  expect([0, 1, 10_000].map((grant) => subjects.of(`grant-${grant}`))).toEqual([undefined, 'usr_1', 'usr_10000']);
});

it('the subject of a grant that is used stays known, however many others come', () => {
  const subjects = new KnownSubjects();
  subjects.learn('used', 'usr_alice');
  subjects.learn('learned again', 'usr_bob');
  for (let grant = 0; grant < 20_000; grant++) {
    subjects.learn(`grant-${grant}`, `usr_${grant}`);
    if (grant % 5000 !== 0) continue;
    expect(subjects.of('used')).toBe('usr_alice');
    subjects.learn('learned again', 'usr_bob');
  }
  const known = ['used', 'learned again', 'grant-0'].map((grant) => subjects.of(grant));
  expect(known).toEqual(['usr_alice', 'usr_bob', undefined]);
});

describeRedis('a grant whose subject is known', () => {
  it('is gone all the same once Redis has it no more, or it was revoked by another replica', async () => {
    const server = await startRedis();
    const connection = await connectTo(server);
    try {
      const keys = new RedisKeys('grantry:');
      const { grants } = redisStores({ connection, keys });
      const [revoked, lost] = [await redeemed(grants), await redeemed(grants)];
      const refreshed = (grant: Grant) => grants.rotate(rotateRequest(grant, 0, { revokedBefore: 0 }));
      await redisStores({ connection, keys }).grants.revoke(revoked.grantId);
      expect(await refreshed(revoked)).toEqual({ outcome: 'gone' });
      await server.command('FLUSHALL');
      expect(await grants.subjectOf(lost.grantId)).toBe(lost.subject);
      expect(await refreshed(lost)).toEqual({ outcome: 'gone' });
    } finally {
      await connection.close();
      await server.stop();
    }
  });
});
