// The Secrets of which an install has one, where a Secret that no watch tells of comes in between. What a real API server has
// of them is tested in test/cluster/install.test.ts.

import { expect, it } from 'vitest';
import { PEPPER_SECRET } from '../../src/admission/secret-parts.ts';
import { KubernetesError } from '../../src/kubernetes/client.ts';
import { InstallSecrets } from '../../src/kubernetes/install-secrets.ts';
import { LostSecrets } from '../../src/kubernetes/lost-secrets.ts';
import { SECRETS } from '../../src/kubernetes/resources.ts';
import { systemRandom } from '../../src/processes/machine.ts';
import { until } from '../until.ts';
import { leaderOver, UNPLAYED } from './leader.ts';
import { PlayedObjects } from './played-objects.ts';

it('a Secret that stood in the way of the pepper, and went before it was looked at, is made', async () => {
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
    ...{ sources: { releaseSecrets }, releaseNamespace: 'auth', wanted: [PEPPER_SECRET] },
    ...{ lost: new LostSecrets(releaseSecrets), record: () => {}, random: systemRandom },
    log: { error: (line: object) => expect.fail(JSON.stringify(line)) },
    metrics: { reconciled: () => {} },
  });
  secrets.start();
  await until('it is there', () => releaseSecrets.get(`auth/${PEPPER_SECRET.name}`) !== undefined, 2000);
  await secrets.stop();
});
