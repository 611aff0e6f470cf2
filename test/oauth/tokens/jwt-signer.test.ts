// Where the signatures of JWTs are made.

import { describe, expect, it } from 'vitest';
import { generateSigningKeyPem, importSigningKey } from '../../../src/oauth/registry/keys.ts';
import { JwtSigner } from '../../../src/oauth/tokens/jwt-signer.ts';

const COUNT = 60;

describe('a signature', () => {
  it.each(['RS256', 'PS256', 'ES384'] as const)(
    'of %s → leaves the event loop free: most of its CPU is that of other threads',
    async (algorithm) => {
      const key = await importSigningKey(await generateSigningKeyPem(algorithm, 2048), algorithm, 'Active');
      const signer = new JwtSigner({ type: 'JWT', endOfTick: setImmediate });
      await signer.sign({}, key);
      const [all, own] = [process.cpuUsage(), process.threadCpuUsage()];
      await Promise.all(Array.from({ length: COUNT }, (_, made) => signer.sign({ made }, key)));
      const [allSpent, ownSpent] = [process.cpuUsage(all), process.threadCpuUsage(own)];
      expect(ownSpent.user + ownSpent.system).toBeLessThan((allSpent.user + allSpent.system) / 2);
    },
  );
});
