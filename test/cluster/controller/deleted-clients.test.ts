// What remains of a client that is deleted during its first reconcile: nothing.

import { it } from 'vitest';
import { verifierSecretName } from '../../../src/admission/client-secrets/client-verifier.ts';
import type { ControllerSources } from '../../../src/processes/controller/controller-sources.ts';
import { until } from '../../until.ts';
import { ClientInstall, type Write } from '../setup/client-controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const cluster = sharedCluster();

it.each([
  ['verifier', ({ name }: Write) => name.startsWith('grantry-client-')],
  ['Secret', ({ name }: Write) => name.endsWith('-oauth')],
])(
  'a client that is deleted while its first %s is on its way → the verifier Secret is removed within a minute',
  async (_, isMeant) => {
    const install = await ClientInstall.make(cluster);
    const team = await cluster.namespace();
    let sources: ControllerSources | undefined;
    let uid: string | undefined;
    const onItsWay = async (write: Write) => {
      if (uid !== undefined || write.verb !== 'create' || !isMeant(write)) return;
      ({ uid } = (await install.client(team, 'brief')).metadata);
      await cluster.call('DELETE', `/apis/grantry.dev/v1alpha1/namespaces/${team}/oauthclients/brief`);
      await until('the deletion is observed', () => sources?.clients.get(`${team}/brief`) === undefined);
    };
    const controller = await install.start({
      onItsWay,
      beforeLeading: async (known) => {
        sources = known;
      },
    });
    await install.apply(team, 'brief');
    const verifier = () => verifierSecretName(uid ?? '');
    const removals = () => controller.writes.filter(({ verb, name }) => verb === 'delete' && name === verifier());
    const isGone = async () => removals().length > 0 && (await install.verifiers(uid ?? '')) === undefined;
    await until('the verifier Secret is removed', isGone, 60_000);
  },
);
