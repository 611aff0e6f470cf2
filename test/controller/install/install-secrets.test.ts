// The Secrets of which an install has one, where a Secret that is not watched comes in between. What a real API server
// has of them is tested in test/cluster/controller/install.test.ts.

import { expect, it } from 'vitest';
import { PEPPER_SECRET } from '../../../src/admission/references/secret-parts.ts';
import { InstallSecrets } from '../../../src/controller/install/install-secrets.ts';
import { LostSecrets } from '../../../src/controller/install/lost-secrets.ts';
import { KubernetesError } from '../../../src/kubernetes/api/kubernetes-api.ts';
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
  await until('it is there', () => releaseSecrets.get(`auth/${PEPPER_SECRET.name}`) !== undefined, 2000);
  await secrets.stop();
});
