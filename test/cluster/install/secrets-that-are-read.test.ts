// Which Secrets the processes of an install ask for, and in which form, seen by their requests: of the tenants' the controller
// follows names and labels only and reads those that a client names, and a token server none at all.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { FaultProxy, listOf, type SeenRequest, watchOf } from '../setup/fault-proxy.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { TokenServers } from '../setup/token-servers.ts';

const PARTS = 'grantry.dev/part in (verifier,signing-key,pepper,webhook,controller,redis)';
const KEYS = 'grantry.dev/part=signing-key';
/** Of identity providers, and with users; only these are selected by a field. */
const [PROVIDERS, USERS] = ['type=grantry.dev/identity-provider', 'type=grantry.dev/users'];
const METADATA = 'g=meta.k8s.io;v=v1';

describeRedis('the Secrets that are read', () => {
  const cluster = sharedCluster();
  let install: TokenServers;
  let controller: ControllerProcess;
  let ways: { readonly server: FaultProxy; readonly controller: FaultProxy };
  let team: string;

  beforeAll(async () => {
    install = await TokenServers.install(cluster, { complete: false });
    ways = { server: await FaultProxy.start(cluster.address), controller: await FaultProxy.start(cluster.address) };
    team = await cluster.namespace();
    await cluster.apply(secret('there-before', team));
    const server = await install.start({ url: ways.server.url });
    controller = await startController(install, { replicas: [server], url: ways.controller.url });
    await Promise.all([controller.ready(), server.ready()]);
    const clients = ClientInstall.of(cluster, install.installation);
    await cluster.apply(secret('unrelated', team), secret('mine', team), secret('unrelated', install.namespace));
    const existing = { clientSecret: { source: 'Existing', secretName: 'mine' } };
    await clients.apply(team, 'own', { auth: existing });
    await clients.apply(team, 'made', { defaultScopes: [`${team}/read`] });
    // Both go through what follows Secrets, and a client is reconciled again.
    await cluster.apply(secret('unrelated', team, 'another'), secret('there-before', team, 'another'));
    await clients.whenReady(team, 'made');
    const { metadata } = await clients.whenReady(team, 'own');
    const changed = secret('mine', team, 'another');
    await cluster.apply(changed);
    const text = changed.stringData['client-secret'];
    await until('the change of a Secret is followed', () => clients.accepts(metadata.uid, text));
  });

  afterAll(async () => {
    await controller?.process.end('SIGKILL');
    await install?.stop();
    await Promise.all(Object.values(ways ?? {}).map((way) => way.stop()));
  });

  function secret(name: string, namespace: string, value = 'one') {
    const stringData = { 'client-secret': `${value}-${'x'.repeat(40)}` };
    return { apiVersion: 'v1', kind: 'Secret', metadata: { namespace, name }, stringData };
  }

  /** A Secret read by its name. */
  function isGet({ method, path }: SeenRequest): boolean {
    return method === 'GET' && /\/secrets\/[^/]+$/.test(path);
  }

  /** Every form in which several were asked for there, as `<list or watch> <selector> <form of the answer>`. */
  function selections({ requests }: FaultProxy, isThere: (path: string) => boolean): readonly string[] {
    const asked = requests.flatMap((seen) => {
      const verb = listOf('secrets')(seen) ? 'list' : watchOf('secrets')(seen) ? 'watch' : undefined;
      if (verb === undefined || !isThere(seen.path)) return [];
      return `${verb} ${seen.query.get('labelSelector') ?? seen.query.get('fieldSelector') ?? 'all'} ${seen.accept}`;
    });
    return [...new Set(asked)].sort();
  }

  const ofRelease = (path: string) => path === `/api/v1/namespaces/${install.namespace}/secrets`;
  const ofOthers = (path: string) => !ofRelease(path);

  it('by a token server are those of the release namespace with a label of ours, of identity providers, or with users', () => {
    expect(selections(ways.server, ofRelease)).toEqual([
      `list ${PARTS} application/json`,
      `list ${PROVIDERS} application/json`,
      `list ${USERS} application/json`,
      `watch ${PARTS} application/json`,
      `watch ${PROVIDERS} application/json`,
      `watch ${USERS} application/json`,
    ]);
    expect(selections(ways.server, ofOthers)).toEqual([]);
    expect(ways.server.requests.filter(isGet)).toEqual([]);
  });

  it('by a controller are, of the release namespace, those with a label of ours, or of identity providers', () => {
    expect(selections(ways.controller, ofRelease)).toEqual([
      `list ${PARTS} application/json`,
      // Before a key is made.
      `list ${KEYS} application/json`,
      `list ${PROVIDERS} application/json`,
      `watch ${PARTS} application/json`,
      `watch ${PROVIDERS} application/json`,
    ]);
    const names = ways.controller.requests.filter(isGet).map(({ path }) => path);
    expect(names).not.toContain(`/api/v1/namespaces/${install.namespace}/secrets/unrelated`);
  });

  it('by a controller are, of all other owners, those that a client names; of all others it sees no content', () => {
    expect(selections(ways.controller, ofOthers)).toEqual([
      `list all application/json;as=PartialObjectMetadataList;${METADATA}`,
      `watch all application/json;as=PartialObjectMetadata;${METADATA}`,
    ]);
    const read = ways.controller.requests.filter((seen) => isGet(seen) && seen.path.includes(`/${team}/`));
    const names = new Set(read.map(({ path }) => path.split('/').at(-1)));
    // What it made itself it need not read.
    names.delete('made-oauth');
    expect(names).toEqual(new Set(['mine']));
  });
});
