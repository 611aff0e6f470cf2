// The Secrets of which an install has one, where a Secret that is not watched comes in between. What a real API server
// has of them is tested in test/cluster/controller/install.test.ts.

import { expect, it } from 'vitest';
import { PART_LABEL, PEPPER_SECRET, REDIS_SECRET } from '../../../src/admission/references/secret-parts.ts';
import { InstallSecrets } from '../../../src/controller/install/install-secrets.ts';
import { LostSecrets } from '../../../src/controller/install/lost-secrets.ts';
import { KubernetesError } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { textOfSingle } from '../../../src/kubernetes/objects/release-parts.ts';
import { SECRETS } from '../../../src/kubernetes/objects/resources.ts';
import { systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { PlayedObjects } from '../../kubernetes/played-objects.ts';
import { until } from '../../until.ts';
import { leaderOver, UNPLAYED } from '../leader.ts';

it('a Secret that stood in the way of the pepper, and went before it was read, is made', async () => {
  const releaseSecrets = new PlayedObjects(SECRETS);
  let isThere = true;
  const secrets = new InstallSecrets({
    api: leaderOver({
      ...UNPLAYED,
      create: async (resource, object) => {
        if (!isThere) return releaseSecrets.put(object);
        throw new KubernetesError({ status: 409, reason: 'AlreadyExists', verb: 'create', resource, user: 'grantry' });
      },
      get: async () => {
        isThere = false;
        return undefined;
      },
    }),
    sources: { releaseSecrets },
    releaseNamespace: 'auth',
    wanted: [PEPPER_SECRET],
    lost: new LostSecrets(releaseSecrets),
    record: () => {},
    random: systemRandom,
    log: { error: (line: object) => expect.fail(JSON.stringify(line)) },
    metrics: { reconciled: () => {} },
  });
  secrets.start();
  await until('it is there', () => releaseSecrets.get(`auth/${PEPPER_SECRET.name}`) !== undefined);
  await secrets.stop();
});

it('an install that is upgraded gets a password for redis.dev, keeps it through a deletion, and reports no loss', async () => {
  const releaseSecrets = new PlayedObjects(SECRETS);
  const labels = { [PART_LABEL]: 'signing-key' };
  releaseSecrets.put({ metadata: { name: 'a-key', namespace: 'auth', labels } });
  const reported: unknown[] = [];
  const secrets = new InstallSecrets({
    api: leaderOver({ ...UNPLAYED, create: async (_, object) => releaseSecrets.put(object) }),
    sources: { releaseSecrets },
    releaseNamespace: 'auth',
    wanted: [REDIS_SECRET],
    lost: new LostSecrets(releaseSecrets),
    record: (event) => void reported.push(event),
    random: systemRandom,
    log: { error: (line: object) => void reported.push(line) },
    metrics: { reconciled: () => {} },
  });
  const name = `auth/${REDIS_SECRET.name}`;
  const password = () => textOfSingle(releaseSecrets.get(name), REDIS_SECRET);
  secrets.start();
  await until('it is there', () => password() !== undefined);
  const before = password();
  expect(before).toMatch(/^[\w-]{43}$/);
  releaseSecrets.delete(name);
  await until('it is restored', () => password() !== undefined);
  expect([password(), reported]).toEqual([before, []]);
  await secrets.stop();
});
