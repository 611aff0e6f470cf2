// A controller beside GitOps tools that apply the same objects, and beside a newer grantry, which may have put fields into
// them that this one does not know.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ApiServer } from '../setup/api-server.ts';
import { Cluster } from '../setup/cluster.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { type TokenServerProcess, TokenServers } from '../setup/token-servers.ts';

describeRedis('a controller', () => {
  const { assets } = sharedCluster().address;
  let apiServer: ApiServer;
  let cluster: Cluster;
  let servers: TokenServers;
  let server: TokenServerProcess;
  let controller: ControllerProcess;
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
    controller = await startController(servers, { replicas: [server] });
    await Promise.all([server.ready(), controller.ready()]);
  });

  afterAll(async () => {
    await controller?.process.end('SIGKILL');
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

  async function ready(name: string): Promise<void> {
    const holds = async () => {
      const { metadata, status } = await get(name);
      const conditions: { type: string; status: string; observedGeneration: number }[] = status?.conditions ?? [];
      return conditions.some(
        (each) => each.type === 'Ready' && each.status === 'True' && each.observedGeneration === metadata.generation,
      );
    };
    await until(`${name} is Ready`, holds);
  }

  async function expectToken(name: string): Promise<void> {
    const { body } = await cluster.call('GET', `/api/v1/namespaces/${namespace}/secrets/${name}-oauth`);
    const secret = Buffer.from(body.data['client-secret'], 'base64').toString();
    const { status } = await server.token({ clientId: `${namespace}.${name}`, secret });
    expect([name, status]).toEqual([name, 200]);
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
});
