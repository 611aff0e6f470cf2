// What a replica remembers of grants, and that nothing but the round trip is saved by it.

import { expect, it } from 'vitest';
import type { Grant } from '../../../src/oauth/ports/grant-store.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { GrantCache } from '../../../src/redis/grants/grant-cache.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { redeemed, rotateRequest } from '../../contracts/sample-grants.ts';
import { connectPatiently } from '../setup/patience.ts';
import { describeRedis, startRedis } from '../setup/servers.ts';

const keys = new RedisKeys('grantry:');

const watermarks = { keysFor: (...owners: readonly string[]) => owners };

it('the subject of a grant that is used stays known, however many others come', () => {
  const known = new GrantCache({ watermarks });
  known.setSubject('used', 'usr_alice');
  known.setSubject('learned again', 'usr_bob');
  for (let grant = 0; grant < 20_000; grant++) {
    known.setSubject(`grant-${grant}`, `usr_${grant}`);
    if (grant % 4000 !== 0) continue;
    expect(known.subjectOf('used')).toBe('usr_alice');
    known.setSubject('learned again', 'usr_bob');
  }
  const subjects = ['used', 'learned again', 'grant-0'].map((grant) => known.subjectOf(grant));
  expect(subjects).toEqual(['usr_alice', 'usr_bob', undefined]);
});

it('the watermarks of a grant are those of the client that presents it, each time', () => {
  const known = new GrantCache({ watermarks });
  const own = { clientUid: 'uid-1', subject: 'usr_alice' };
  const others = { ...own, clientUid: 'uid-2' };
  const swapped = { ...own, subject: 'usr_bob' };
  for (const owners of [own, own, others, own, swapped, own]) {
    expect(known.watermarkKeysOf('000.grant', owners)).toEqual([owners.clientUid, owners.subject]);
  }
});

describeRedis('a grant whose subject is known', () => {
  it('is gone all the same once Redis has it no more, or it was revoked by another replica', async () => {
    const server = await startRedis();
    const connection = await connectPatiently(server);
    try {
      const { grants } = redisStores({ connection, keys });
      const [revoked, lost] = [await redeemed(grants), await redeemed(grants)];
      const refreshed = (grant: Grant) => grants.rotate(rotateRequest(grant, 0));
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
