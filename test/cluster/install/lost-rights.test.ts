// A right that is taken from running processes: what they serve on with, what they say, and that they go on by themselves.

import { afterEach, expect, it } from 'vitest';
import { endProcesses } from '../../processes/grantry-process.ts';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { startController } from '../setup/controllers.ts';
import { FaultProxy, watchOf } from '../setup/fault-proxy.ts';
import { narrow } from '../setup/installation.ts';
import { ASKS_AGAIN } from '../setup/limits.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { TokenServers } from '../setup/token-servers.ts';

describeRedis('a right that is taken away while all is running', () => {
  const cluster = sharedCluster();
  const made: { stop(): Promise<void> }[] = [];
  afterEach(async () => {
    await endProcesses();
    for (const each of made.splice(0)) await each.stop();
  });

  it('is named, stops nothing that is served, and once it is granted again no process has to be restarted', async () => {
    const install = await TokenServers.install(cluster, { complete: false });
    const proxy = await FaultProxy.start(cluster.address);
    made.push(install, proxy);
    const team = await cluster.namespace();
    await narrow(cluster, install.installation, [team]);
    const environment = { GRANTRY_WATCH_NAMESPACES: team };
    const server = await install.start({ url: proxy.url, environment });
    const controller = await startController(install, { replicas: [server], url: proxy.url, environment });
    await Promise.all([controller.ready(), server.ready()]);
    const clients = ClientInstall.of(cluster, install.installation);
    await clients.apply(team, 'steady', { defaultScopes: [`${team}/read`] });
    const { metadata } = await clients.whenReady(team, 'steady');
    const { data } = (await clients.secret(team, 'steady-oauth')) ?? { data: {} as Record<string, string> };
    const secret = data['client-secret'] ?? '';
    const steady = { clientId: `${team}.steady`, uid: metadata.uid, secret, namespace: team, name: 'steady' };
    expect((await server.token(steady)).status).toBe(200);

    const bindings = `/apis/rbac.authorization.k8s.io/v1/namespaces/${team}/rolebindings`;
    const taken = (await cluster.call('GET', bindings)).body.items as { metadata: { name: string } }[];
    expect(taken).toHaveLength(2);
    for (const { metadata: each } of taken) await cluster.call('DELETE', `${bindings}/${each.name}`);
    const list = `/apis/grantry.dev/v1alpha1/namespaces/${team}/oauthclients`;
    const { serverToken, controllerToken } = install.installation;
    for (const token of [serverToken, controllerToken]) {
      await until('it is taken', async () => (await cluster.call('GET', list, { token })).status === 403);
    }
    // The API server checks rights when a watch begins.
    expect(proxy.cut(watchOf('oauthclients'))).toBe(2);

    const said = async (admin: string) => {
      const response = await fetch(`${admin}/readyz`);
      return `${response.status} ${await response.text()}`;
    };
    const lineOf = (account: string) =>
      new RegExp(
        `kubernetes: .*watch oauthclients\\.grantry\\.dev in namespace ${team} as ` +
          `system:serviceaccount:${install.namespace}:${account}: 403 Forbidden`,
      );
    for (const [{ admin, process }, account] of [
      [server, 'grantry-server'],
      [controller, 'grantry-controller'],
    ] as const) {
      await until('it is named', async () => lineOf(account).test(await said(admin)), ASKS_AGAIN);
      expect(await said(admin)).toMatch(/^200 /);
      await process.printed(/watch oauthclients\.grantry\.dev .*403 Forbidden/);
      const metrics = await (await fetch(`${admin}/metrics`)).text();
      expect(metrics).toMatch(
        /^grantry_watch_restarts_total\{resource="oauthclients\.grantry\.dev",reason="forbidden"\} [1-9]/m,
      );
    }
    const staleness = async () => (await server.metric('grantry_registry_staleness_seconds')) ?? 0;
    const before = await staleness();
    await clients.apply(team, 'meanwhile', { defaultScopes: [`${team}/read`] });
    await cluster.apply(clients.manifest(team, 'steady', { defaultScopes: [`${team}/read`], suspended: true }));
    await until('it grows', async () => (await staleness()) > before + 1);
    expect((await server.token(steady)).status).toBe(200);

    await cluster.apply(...taken.map((binding) => givenBack(binding)));
    await until('the suspension is in effect', async () => (await server.token(steady)).status === 401, ASKS_AGAIN);
    await clients.whenReady(team, 'meanwhile');
    for (const { admin } of [server, controller]) {
      await until('it is well again', async () => /^200 [\s\S]*^kubernetes: ok$/m.test(await said(admin)), ASKS_AGAIN);
    }
  }, 180_000);
});

it('a right to write that a controller lost is named in status, and what waited for it is done once it is granted again', async () => {
  const cluster = sharedCluster();
  const clients = await ClientInstall.make(cluster);
  const team = await cluster.namespace();
  const controller = await clients.start();
  await clients.apply(team, 'before');
  await clients.whenReady(team, 'before');
  const { namespace: release, controllerToken: token } = clients.installation;
  const role = `/apis/rbac.authorization.k8s.io/v1/clusterroles/${release}-grantry-controller-tenants`;
  const { rules } = (await cluster.call('GET', role)).body as { rules: { resources: string[]; verbs: string[] }[] };
  const readOnly = rules.map((rule) =>
    rule.resources.includes('secrets') ? { ...rule, verbs: ['get', 'list', 'watch'] } : rule,
  );
  await clients.patch(role, { rules: readOnly });
  const dryRun = `/api/v1/namespaces/${team}/secrets?dryRun=All`;
  const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'tried' } };
  const mayWrite = async () => (await cluster.call('POST', dryRun, { token, body })).status === 201;
  await until('it is taken', async () => !(await mayWrite()));

  await clients.apply(team, 'waiting');
  const { status } = await clients.whenCondition(team, 'waiting', 'CredentialsReady', 'SecretWriteForbidden');
  const conditions = status.conditions as { type: string; message: string }[];
  expect(conditions.find(({ type }) => type === 'CredentialsReady')?.message).toContain('403');
  await until('it is reported', () => controller.eventsOf('waiting').includes('SecretWriteForbidden'));
  expect(await clients.secret(team, 'waiting-oauth')).toBeUndefined();
  await clients.apply(team, 'before', { displayName: 'Who has a secret has no need of the right' });
  await clients.whenReady(team, 'before');

  await clients.patch(role, { rules });
  await until('it is granted again', mayWrite);
  // By itself it is tried again every minute.
  await clients.poke(team, 'waiting');
  const { metadata } = await clients.whenReady(team, 'waiting');
  const secret = (await clients.secret(team, 'waiting-oauth'))?.data['client-secret'];
  expect(await clients.accepts(metadata.uid, secret)).toBe(true);
});

/** An object as it was, without what the API server put into it. */
// biome-ignore lint/suspicious/noExplicitAny: an object of the API server
function givenBack({ metadata: { name, namespace }, ...binding }: any) {
  const shared = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding' };
  return { ...shared, metadata: { name, namespace }, roleRef: binding.roleRef, subjects: binding.subjects };
}
