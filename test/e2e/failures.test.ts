// Failures in a cluster: pods are terminated, pods are killed, Redis hangs and dies. Programs ask for tokens meanwhile.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { figure } from './setup/diagnosis.ts';
import { apply, deleteNamespaces, eventually, get, kubectl, list, outcomeOf, waitReady } from './setup/kubectl.ts';
import { createWebApplication, letPeopleSignIn, refresh, signIn, type WebApplication } from './setup/people.ts';
import { PortForward } from './setup/port-forward.ts';
import { sharedInstall } from './setup/shared-install.ts';
import { createMachineClient, type MachineClient, machineSpec, oauthClient } from './setup/tenants.ts';
import { Traffic } from './setup/traffic.ts';

const TENANT = 'e2e-failures';
const PEOPLES_TENANT = 'e2e-failures-people';
const REQUESTS_PER_SECOND = 50;
const HANGS_MILLISECONDS = 10_000;
const { namespace, tokenUrl } = sharedInstall;

let client: MachineClient;

beforeAll(async () => {
  client = await createMachineClient(TENANT);
});

afterAll(() => deleteNamespaces(TENANT, PEOPLES_TENANT));

async function startTraffic(): Promise<Traffic> {
  return await Traffic.start({ ...client, tokenUrl, requestsPerSecond: REQUESTS_PER_SECOND });
}

it('a token server that is terminated finishes its requests, and none fails', async () => {
  const traffic = await startTraffic();
  const [pod] = await sharedInstall.pods('server');
  await kubectl('delete', 'pod', '-n', namespace, String(pod?.metadata.name));
  await sharedInstall.ready('server', 2);
  await traffic.goesOn(REQUESTS_PER_SECOND);
  const { failures, answered } = await traffic.stop();
  expect(failures).toEqual([]);
  figure(`drain of a token server under ${REQUESTS_PER_SECOND} requests/s: 0 of ${answered} requests failed`);
});

it('a node that is drained keeps a token server until there is another one, and no request fails', async () => {
  const traffic = await startTraffic();
  const [pod] = await sharedInstall.pods('server');
  const node = String(pod?.spec.nodeName);
  try {
    const which = ['--pod-selector', sharedInstall.selector('server'), '--delete-emptydir-data'];
    const drain = await outcomeOf('kubectl', ['drain', node, ...which, '--timeout=20s']);
    expect(drain.output).toContain(`evicting pod ${namespace}/`);
    // Where it is the only node, the next pod has no place, and the budget lets no other go.
    const nodes = await list('node', '');
    if (nodes.length === 1)
      expect(drain).toMatchObject({ code: 1, errors: expect.stringContaining('disruption budget') });
    await traffic.goesOn(REQUESTS_PER_SECOND);
  } finally {
    await kubectl('uncordon', node);
  }
  await sharedInstall.ready('server', 2);
  await traffic.goesOn(REQUESTS_PER_SECOND);
  const { failures, answered } = await traffic.stop();
  expect(failures).toEqual([]);
  figure(`kubectl drain under ${REQUESTS_PER_SECOND} requests/s: 0 of ${answered} requests failed`);
});

it('a token server that is killed is replaced, and the other one answers', async () => {
  const traffic = await startTraffic();
  const [pod] = await sharedInstall.pods('server');
  await kubectl('delete', 'pod', '-n', namespace, String(pod?.metadata.name), '--grace-period=0', '--force');
  await sharedInstall.ready('server', 2);
  const { failed } = await traffic.totals();
  await traffic.goesOn(4 * REQUESTS_PER_SECOND);
  const totals = await traffic.stop();
  expect(totals.failed).toBe(failed);
  figure(
    `kill of a token server under ${REQUESTS_PER_SECOND} requests/s: ${failed} of ${totals.answered} requests failed`,
  );
});

it('the other controller takes over from a leader that is killed', async () => {
  const leader = async () => {
    const { spec } = await get('lease', 'grantry-controller', namespace);
    return String(spec.holderIdentity ?? '').split('_')[0] ?? '';
  };
  const killed = await leader();
  const began = performance.now();
  await kubectl('delete', 'pod', '-n', namespace, killed, '--grace-period=0', '--force');
  await eventually('another controller leads', async () => ![killed, ''].includes(await leader()));
  figure(`takeover after the leading controller was killed: ${((performance.now() - began) / 1000).toFixed(1)} s`);
  await apply(oauthClient(TENANT, 'later', machineSpec(TENANT)));
  await waitReady(TENANT, 'oauthclient/later');
});

it('while Redis hangs, machines get tokens and people are asked to retry later, which then succeeds', async () => {
  const { application, refreshToken } = await somebodySignedIn();
  const traffic = await startTraffic();
  const forward = await PortForward.open(namespace, sharedInstall.service, { port: 80 });
  try {
    const began = performance.now();
    await redisCli('CLIENT', 'PAUSE', String(HANGS_MILLISECONDS), 'ALL');
    const refused = await refresh(forward.url, application, refreshToken);
    expect(performance.now() - began).toBeLessThan(HANGS_MILLISECONDS);
    expect(refused.status).toBe(503);
    await eventually('refresh tokens are good again', async () => {
      return (await refresh(forward.url, application, refreshToken)).status === 200;
    });
  } finally {
    await forward.close();
  }
  expect((await traffic.stop()).failures).toEqual([]);
});

it('while Redis is unavailable, machines get tokens, and people sign in again when another one is there', async () => {
  const { application, refreshToken } = await somebodySignedIn();
  const traffic = await startTraffic();
  const forward = await PortForward.open(namespace, sharedInstall.service, { port: 80 });
  try {
    await scaleRedis(0);
    await eventually('refreshing answers 503', async () => {
      return (await refresh(forward.url, application, refreshToken)).status === 503;
    });
    await traffic.goesOn(2 * REQUESTS_PER_SECOND);
    await sharedInstall.ready('server', 2);
    await scaleRedis(1);
    await sharedInstall.ready('redis', 1);
    // This Redis forgot everything with its pod.
    await eventually('refreshing is answered again', async () => {
      return (await refresh(forward.url, application, refreshToken)).status === 400;
    });
    await signIn(forward.url, application);
  } finally {
    await scaleRedis(1);
    await forward.close();
  }
  expect((await traffic.stop()).failures).toEqual([]);
});

async function somebodySignedIn(): Promise<{ application: WebApplication; refreshToken: string }> {
  await letPeopleSignIn();
  const application = await createWebApplication(PEOPLES_TENANT, 'http://localhost:9999/callback');
  const forward = await PortForward.open(namespace, sharedInstall.service, { port: 80 });
  try {
    const { refreshToken } = await signIn(forward.url, application);
    return { application, refreshToken };
  } finally {
    await forward.close();
  }
}

async function redisCli(...command: readonly string[]): Promise<void> {
  const deployment = `deployment/${sharedInstall.nameOf('redis')}`;
  await kubectl('exec', '-n', namespace, deployment, '--', 'redis-cli', ...command);
}

async function scaleRedis(replicas: number): Promise<void> {
  await kubectl('scale', '-n', namespace, `deployment/${sharedInstall.nameOf('redis')}`, `--replicas=${replicas}`);
}
