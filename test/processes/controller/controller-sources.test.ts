// That a controller waits for the first list of everything it follows. The API server is played: each list is held back once.

import { afterEach, expect, it } from 'vitest';
import type { KubernetesApi } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { ControllerSources } from '../../../src/processes/controller/controller-sources.ts';
import { systemClock, systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { until } from '../../until.ts';

const RELEASE = 'grantry-system';

/** Lists are empty and watches silent; one list waits until it is let go. */
function heldBack(listHeld: string) {
  const release = Promise.withResolvers<void>();
  const listed: string[] = [];
  const api: Pick<KubernetesApi, 'list' | 'watch'> = {
    list: async ({ plural }, { namespace = '', fieldSelector = '' } = {}) => {
      const list = `${plural} ${namespace} ${fieldSelector}`.trim();
      if (list === listHeld) await release.promise;
      listed.push(list);
      return { items: [], resourceVersion: '1', continue: undefined, bytes: 0 };
    },
    watch: (_, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('ended')))),
  };
  return { api, listed, release: () => release.resolve() };
}

let sources: ControllerSources | undefined;
afterEach(() => sources?.stop());

it.each([
  ...['protectedresources team-a', 'protectedresources team-b'],
  ...['oauthclients team-a', 'oauthclients team-b', 'clientpolicies', 'namespaces', 'secrets team-a', 'secrets team-b'],
  ...['configmaps team-a', 'configmaps team-b', 'serviceaccounts team-a', 'serviceaccounts team-b'],
  ...[`identityproviders ${RELEASE}`, `secrets ${RELEASE} type=grantry.dev/identity-provider`],
  ...[
    `secrets ${RELEASE} type=grantry.dev/users`,
    `secrets ${RELEASE}`,
    `signingkeys ${RELEASE}`,
    `endpointslices ${RELEASE}`,
  ],
])('nothing is known to be all there is before the list of %s has come', async (list) => {
  const { api, listed, release } = heldBack(list);
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  sources = new ControllerSources({
    api,
    clock: systemClock,
    random: systemRandom,
    log,
    className: 'default',
    releaseNamespace: RELEASE,
    watchNamespaces: ['team-a', 'team-b'],
    serverService: 'grantry-server-admin',
    needsUsers: true,
    metrics: { watchEvent: () => {}, watchRestarted: () => {}, changeRefused: () => {} },
  });
  let isSynced = false;
  void sources.whenSynced().then(() => {
    isSynced = true;
  });
  sources.start();
  await until('the others have come', () => listed.length === 17);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect([isSynced, sources.startFault]).toEqual([false, expect.stringContaining(list.split(' ')[0] ?? '')]);
  release();
  await until('all is known', () => isSynced);
  expect(sources.startFault).toBeUndefined();
});
