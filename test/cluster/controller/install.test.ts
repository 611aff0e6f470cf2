// What an install has without being asked, and what its policies say of themselves, against a real API server.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PEPPER_SECRET, WEBHOOK_SECRET } from '../../../src/admission/references/secret-parts.ts';
import { InstallSecrets } from '../../../src/controller/install/install-secrets.ts';
import { LostSecrets } from '../../../src/controller/install/lost-secrets.ts';
import { PolicyController } from '../../../src/controller/policies/policy-controller.ts';
import type { EventFacts } from '../../../src/controller/reconciling/events.ts';
import { ApiClient } from '../../../src/kubernetes/api/api-client.ts';
import { kubeconfigAccess } from '../../../src/kubernetes/api/kubeconfig.ts';
import {
  CLIENT_POLICIES,
  NAMESPACES,
  OAUTH_CLIENTS,
  type Resource,
  SECRETS,
} from '../../../src/kubernetes/objects/resources.ts';
import { SharedReflector, type SharedReflectorOptions } from '../../../src/kubernetes/watch/shared-reflector.ts';
import { systemClock, systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { parsePeppers } from '../../../src/processes/lifecycle/pepper.ts';
import { leaderOver, UNPLAYED } from '../../controller/leader.ts';
import { until } from '../../until.ts';
import { type Installation, install } from '../setup/installation.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const cluster = sharedCluster();
const metrics = { watchEvent: () => {}, watchRestarted: () => {}, changeRefused: () => {}, reconciled: () => {} };

describe('an install', () => {
  let installation: Installation;
  let client: ApiClient;
  let errors: string[];
  const events: EventFacts[] = [];
  const ends: (() => Promise<void>)[] = [];

  beforeEach(async () => {
    installation = await install(cluster);
    const kubeconfig = cluster.kubeconfig({ token: installation.controllerToken });
    client = new ApiClient({
      access: kubeconfigAccess({ files: [kubeconfig], clock: systemClock }),
      userAgent: 'grantry/test',
    });
    errors = [];
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
    client.close();
  });

  const log = {
    error: (line: { err?: Error; fault?: string }) => void errors.push(line.err?.message ?? line.fault ?? ''),
  };

  async function watch(resource: Resource, more: Partial<SharedReflectorOptions> = {}): Promise<SharedReflector> {
    const quiet = { info: () => {}, warn: () => {}, error: () => {} };
    const watched = new SharedReflector({
      api: client,
      resource,
      clock: systemClock,
      random: systemRandom,
      log: quiet,
      metrics,
      ...more,
    });
    watched.start();
    await watched.whenSynced();
    ends.push(() => watched.stop());
    return watched;
  }

  /** What a controller watches, leading or not. */
  async function watchSecrets() {
    const labelSelector = 'grantry.dev/part';
    const releaseSecrets = await watch(SECRETS, { namespaces: [installation.namespace], labelSelector });
    return { releaseSecrets, lost: new LostSecrets(releaseSecrets) };
  }

  async function startSecrets(
    wanted = [PEPPER_SECRET, WEBHOOK_SECRET],
    watched?: Awaited<ReturnType<typeof watchSecrets>>,
    api = leaderOver(client),
  ): Promise<void> {
    const { releaseSecrets, lost } = watched ?? (await watchSecrets());
    const secrets = new InstallSecrets({
      api,
      releaseNamespace: installation.namespace,
      wanted,
      random: systemRandom,
      log,
      metrics,
      lost,
      record: (event: EventFacts) => events.push(event),
      sources: { releaseSecrets },
    });
    secrets.start();
    ends.unshift(() => secrets.stop());
  }

  const secret = async (name: string) =>
    (await cluster.call('GET', `/api/v1/namespaces/${installation.namespace}/secrets/${name}`)).body;

  it('has a pepper and a webhook secret of its own, which the next leader leaves as they are', async () => {
    await startSecrets();
    await until(
      'they are made',
      async () => (await secret('grantry-webhook')).data && (await secret('grantry-pepper')).data,
    );
    const [pepper, webhook] = [await secret('grantry-pepper'), await secret('grantry-webhook')];
    expect(pepper.metadata.labels).toEqual({ 'grantry.dev/part': 'pepper' });
    expect(pepper.metadata.ownerReferences).toBeUndefined();
    expect(parsePeppers(Buffer.from(pepper.data.pepper, 'base64').toString())).toHaveLength(1);
    expect(Buffer.from(webhook.data.secret, 'base64').length).toBeGreaterThanOrEqual(32);
    for (const end of ends.splice(0)) await end();
    await startSecrets();
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await secret('grantry-pepper')).metadata.resourceVersion).toBe(pepper.metadata.resourceVersion);
    expect(errors).toEqual([]);
  });

  it('has what is deleted of them back with the value it had', async () => {
    await startSecrets();
    for (const { name } of [PEPPER_SECRET, WEBHOOK_SECRET]) {
      await until('it is made', async () => (await secret(name)).data !== undefined);
      const values = {
        [name === PEPPER_SECRET.name ? 'pepper' : 'secret']: 'a value of the owner, of 32 bytes and more',
      };
      const path = `/api/v1/namespaces/${installation.namespace}/secrets/${name}`;
      const { body: before } = await cluster.call('PATCH', path, { body: { stringData: values } });
      await cluster.call('DELETE', path);
      await until('it is restored', async () => (await secret(name)).data !== undefined);
      const after = await secret(name);
      expect(after.metadata.uid).not.toBe(before.metadata.uid);
      expect([after.data, after.metadata.labels]).toEqual([before.data, before.metadata.labels]);
    }
    expect(errors).toEqual([]);
  });

  const path = (name: string) => `/api/v1/namespaces/${installation.namespace}/secrets/${name}`;
  const losses = () =>
    events.filter(({ reason }) => reason === 'InstallSecretLost').map(({ regarding }) => regarding.metadata.name);

  it('has what was deleted while no controller led back with the value it had, from any controller that was there', async () => {
    await startSecrets();
    await until(
      'they are made',
      async () => (await secret('grantry-webhook')).data && (await secret('grantry-pepper')).data,
    );
    const before = (await secret('grantry-pepper')).data;
    const [leading = async () => {}, ...others] = ends.splice(0);
    const standby = await watchSecrets();
    await leading();
    await cluster.call('DELETE', path('grantry-pepper'));
    await until('it is seen', () => standby.lost.get('grantry-pepper') !== undefined);
    expect((await secret('grantry-pepper')).code).toBe(404);
    events.length = 0;
    await startSecrets(undefined, standby);
    await until('it is restored', async () => (await secret('grantry-pepper')).data !== undefined);
    expect((await secret('grantry-pepper')).data).toEqual(before);
    expect([losses(), errors]).toEqual([[], []]);
    for (const end of others) await end();
  });

  it('reports when no controller knows the value of what is gone, and reports nothing at the very beginning', async () => {
    events.length = 0;
    await startSecrets();
    await until(
      'they are made',
      async () => (await secret('grantry-webhook')).data && (await secret('grantry-pepper')).data,
    );
    expect([losses(), errors]).toEqual([[], []]);
    const before = (await secret('grantry-pepper')).data;
    for (const end of ends.splice(0)) await end();
    const metadata = {
      name: 'a-key',
      namespace: installation.namespace,
      labels: { 'grantry.dev/part': 'signing-key' },
    };
    await cluster.apply({ apiVersion: 'v1', kind: 'Secret', metadata });
    for (const name of ['grantry-pepper', 'grantry-webhook']) await cluster.call('DELETE', path(name));
    await startSecrets();
    await until(
      'they are made',
      async () => (await secret('grantry-webhook')).data && (await secret('grantry-pepper')).data,
    );
    expect((await secret('grantry-pepper')).data).not.toEqual(before);
    await until('it is said', () => losses().length === 2);
    expect(losses().sort()).toEqual(['grantry-pepper', 'grantry-webhook']);
    expect(errors).toHaveLength(2);
  });

  it('loses none that is deleted before the answer to its making has come', async () => {
    events.length = 0;
    const watched = await watchSecrets();
    let deleted: string | undefined;
    const create: typeof client.create = async (...object) => {
      const made = await client.create(...object);
      if (deleted === undefined) {
        deleted = made.metadata.uid;
        await cluster.call('DELETE', path('grantry-pepper'));
        await until('it is seen', () => watched.lost.get('grantry-pepper') !== undefined);
      }
      return made;
    };
    await startSecrets([PEPPER_SECRET], watched, leaderOver({ ...UNPLAYED, create }));
    const uid = async () => (await secret('grantry-pepper')).metadata?.uid;
    await until('it is restored', async () => deleted !== undefined && ![undefined, deleted].includes(await uid()));
    expect([losses(), errors]).toEqual([[], []]);
  });

  it('makes none that is provided otherwise, and says whose it cannot use', async () => {
    const metadata = { name: 'grantry-webhook', namespace: installation.namespace };
    await cluster.apply({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { secret: 'theirs' } });
    await startSecrets([WEBHOOK_SECRET]);
    await until('the error is logged', () =>
      errors.some((line) => line.includes('has no label grantry.dev/part: webhook')),
    );
    expect((await secret('grantry-pepper')).code).toBe(404);
    expect(Buffer.from((await secret('grantry-webhook')).data.secret, 'base64').toString()).toBe('theirs');
  });

  it('says of its policies what they select, as that changes, and of others nothing', async () => {
    const { className } = installation;
    const team = className;
    const sources = {
      policies: await watch(CLIENT_POLICIES),
      namespaces: await watch(NAMESPACES),
      clients: await watch(OAUTH_CLIENTS),
    };
    const record = (event: EventFacts) => void events.push(event);
    const controller = new PolicyController({
      api: leaderOver(client),
      sources,
      className,
      record,
      clock: systemClock,
      log,
      metrics,
    });
    controller.start();
    ends.unshift(() => controller.stop());
    const api = { apiVersion: 'grantry.dev/v1alpha1' };
    const policy = (name: string, spec: object) => ({ ...api, kind: 'ClientPolicy', metadata: { name }, spec });
    const namespaceSelector = { matchLabels: { team } };
    await cluster.apply(
      policy(`${team}-ours`, { className, namespaceSelector }),
      policy(`${team}-theirs`, { className: `${team}-other`, namespaceSelector }),
    );
    const status = async (name: string) =>
      (await cluster.call('GET', `/apis/grantry.dev/v1alpha1/clientpolicies/${team}-${name}`)).body.status;
    const counts = async () => {
      const { matchedNamespaces, matchedClients } = await status('ours');
      return `${matchedNamespaces} ${matchedClients}`;
    };
    await until('none is selected', async () => (await counts()) === '0 0');
    const namespaces = [await cluster.namespace({ team }), await cluster.namespace({ team })];
    await cluster.namespace();
    const oauthClient = (namespace: string | undefined, name: string, other = className) => ({
      ...api,
      kind: 'OAuthClient',
      metadata: { name, namespace: namespace ?? '' },
      spec: { className: other },
    });
    await cluster.apply(oauthClient(namespaces[0], 'a'), oauthClient(namespaces[1], 'b'));
    await cluster.apply(oauthClient(namespaces[1], 'c'), oauthClient(namespaces[1], 'd', `${team}-other`));
    await until('all are counted', async () => (await counts()) === '2 3');
    await cluster.call('DELETE', `/apis/grantry.dev/v1alpha1/namespaces/${namespaces[0]}/oauthclients/a`);
    await until('what is gone is not counted', async () => (await counts()) === '2 2');
    const { conditions, observedGeneration } = await status('ours');
    expect(observedGeneration).toBe(1);
    expect(conditions.map(({ type, status: value }: Record<string, string>) => `${type}=${value}`)).toEqual([
      'Accepted=True',
      'Ready=True',
    ]);
    expect((await status('theirs')).conditions[0].reason).toBe('Pending');
    expect(errors).toEqual([]);
  });
});
