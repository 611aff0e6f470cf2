// A controller is not alone with its objects: another one waits to take over, GitOps tools apply the same objects, and a
// newer grantry may have put fields into them that this one does not know.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ApiServer } from '../setup/api-server.ts';
import { Cluster, type Manifest } from '../setup/cluster.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { TAKES_OVER } from '../setup/limits.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

const ROTATE = 'grantry.dev/rotate-requested-at';
/** Of the Secret with a client's verifiers. */
const ROTATED_AT = 'grantry.dev/rotated-at';

describeRedis('a controller', () => {
  const { assets } = sharedCluster().address;
  let apiServer: ApiServer;
  let cluster: Cluster;
  let servers: TokenServers;
  let server: TokenServerProcess;
  let controllers: readonly ControllerProcess[];
  let namespace: string;

  beforeAll(async () => {
    // The CRD of a newer grantry is for this suite alone.
    apiServer = await ApiServer.start(assets);
    cluster = new Cluster(apiServer.address);
    await cluster.applyCrds();
    await addField('oauthclients.grantry.dev', 'settingOfTomorrow');
    servers = await TokenServers.install(cluster, { complete: false });
    namespace = await cluster.namespace();
    server = await servers.start();
    const start = () => startController(servers, { replicas: [server] });
    controllers = await Promise.all([start(), start()]);
    await Promise.all([server, ...controllers].map((each) => each.ready()));
  });

  afterAll(async () => {
    await Promise.all((controllers ?? []).map(({ process }) => process.end('SIGKILL')));
    await servers?.stop();
    await apiServer?.stop();
  });

  async function addField(crd: string, field: string): Promise<void> {
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd}`;
    const properties = '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties';
    const { status } = await cluster.call('PATCH', path, {
      contentType: 'application/json-patch+json',
      body: [{ op: 'add', path: `${properties}/${field}`, value: { type: 'string', maxLength: 63 } }],
    });
    expect(status).toBe(200);
  }

  const client = (name: string, spec: object = {}) => servers.manifest(namespace, name, spec);

  const pathOf = (name: string) => `/apis/grantry.dev/v1alpha1/namespaces/${namespace}/oauthclients/${name}`;

  // biome-ignore lint/suspicious/noExplicitAny: tests read what they know the object to hold
  async function get(name: string): Promise<any> {
    return (await cluster.call('GET', pathOf(name))).body;
  }

  async function ready(name: string, limit?: number): Promise<void> {
    const holds = async () => {
      const { metadata, status } = await get(name);
      const conditions: { type: string; status: string; observedGeneration: number }[] = status?.conditions ?? [];
      return conditions.some(
        (each) => each.type === 'Ready' && each.status === 'True' && each.observedGeneration === metadata.generation,
      );
    };
    await until(`${name} is Ready`, holds, limit);
  }

  async function secretOf(name: string): Promise<{ readonly value: string; readonly revision: number }> {
    const { body } = await cluster.call('GET', `/api/v1/namespaces/${namespace}/secrets/${name}-oauth`);
    const value = Buffer.from(body.data['client-secret'], 'base64').toString();
    return { value, revision: (await get(name)).status.secret.revision };
  }

  async function tokenStatus(name: string, secret: string): Promise<number> {
    const { uid } = (await get(name)).metadata;
    return (await server.token({ clientId: `${namespace}.${name}`, uid, secret, namespace, name })).status;
  }

  async function expectToken(name: string): Promise<void> {
    expect([name, await tokenStatus(name, (await secretOf(name)).value)]).toEqual([name, 200]);
  }

  it('does not fight another manager that applies the spec', async () => {
    const apply = async (scopes: readonly string[]) => {
      const options = { contentType: 'application/apply-patch+yaml', body: client('shared', { scopes }) };
      return await cluster.call('PATCH', `${pathOf('shared')}?fieldManager=gitops`, options);
    };
    expect((await apply([`${namespace}/read`])).status).toBe(201);
    await ready('shared');
    const { metadata } = await get('shared');
    const again = await apply([`${namespace}/read`]);
    // Nothing to do for either of them: the object stays the very same.
    expect([again.status, again.body.metadata.resourceVersion]).toEqual([200, metadata.resourceVersion]);
    expect((await apply([`${namespace}/read`, `${namespace}/write`])).status).toBe(200);
    await ready('shared');
    const { metadata: settled } = await get('shared');
    const owners = settled.managedFields as { manager: string; operation: string; subresource?: string }[];
    expect(owners.map(({ manager, operation, subresource }) => [manager, operation, subresource])).toEqual([
      ['gitops', 'Apply', undefined],
      ['grantry-controller', 'Apply', 'status'],
    ]);
  });

  it('leaves a field of a newer version as it is', async () => {
    await cluster.apply(client('newer', { settingOfTomorrow: 'kept' }));
    await ready('newer');
    await cluster.call('PATCH', pathOf('newer'), { body: { spec: { displayName: 'Changed' } } });
    await ready('newer');
    expect((await get('newer')).spec).toMatchObject({ settingOfTomorrow: 'kept', displayName: 'Changed' });
    await expectToken('newer');
  });

  it('that is killed is replaced: each client has one secret, and no rotation is missed or done twice', async () => {
    const before = ['first', 'second', 'third', 'daily'];
    const daily = { auth: { clientSecret: { rotation: { interval: '24h' } } } };
    for (const name of before) await cluster.apply(client(name, name === 'daily' ? daily : {}));
    for (const name of before) await ready(name);
    const [first, second, old] = [await secretOf('first'), await secretOf('second'), await secretOf('daily')];

    const leader = await leading();
    leader.process.signal('SIGKILL');
    // Its day is over while no controller leads.
    const { uid } = (await get('daily')).metadata;
    const verifier = `/api/v1/namespaces/${servers.namespace}/secrets/grantry-client-${uid}`;
    const yesterday = new Date(Date.now() - 25 * 3_600_000).toISOString();
    await cluster.call('PATCH', verifier, { body: { metadata: { annotations: { [ROTATED_AT]: yesterday } } } });
    await cluster.call('PATCH', pathOf('second'), { body: { metadata: { annotations: { [ROTATE]: 'once' } } } });
    await cluster.apply(client('late'));

    await ready('late', TAKES_OVER);
    await until('the rotation was done', async () => (await secretOf('second')).revision > second.revision);
    await until('that by interval, too', async () => (await secretOf('daily')).revision > old.revision);
    expect(await leading()).not.toBe(leader);
    expect(await secretOf('first')).toEqual(first);
    expect((await secretOf('second')).revision).toBe(second.revision + 1);
    expect((await secretOf('daily')).revision).toBe(old.revision + 1);
    // The one before works during its grace.
    expect(await tokenStatus('second', second.value)).toBe(200);
    expect(await tokenStatus('daily', old.value)).toBe(200);
    for (const name of [...before, 'late']) await expectToken(name);

    const { body } = await cluster.call('GET', `/api/v1/namespaces/${namespace}/secrets`);
    const names = (body.items as Manifest[]).map(({ metadata }) => metadata.name);
    const clients = (await cluster.call('GET', pathOf(''))).body.items as Manifest[];
    expect(names.sort()).toEqual(clients.map(({ metadata }) => `${metadata.name}-oauth`).sort());
  });

  /** The controller that says it holds the lease. */
  async function leading(): Promise<ControllerProcess> {
    let leader: ControllerProcess | undefined;
    await until(
      'one controller leads',
      async () => {
        const held = await Promise.all(controllers.map((each) => each.metric('grantry_lease_held')));
        leader = controllers[held.indexOf(1)];
        return leader !== undefined;
      },
      TAKES_OVER,
    );
    if (leader === undefined) throw new Error('no controller leads');
    return leader;
  }
});
