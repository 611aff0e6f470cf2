// `grantry controller` as a Deployment runs it: a process of its own, with the token of its ServiceAccount. With the token
// servers of token-servers.ts it makes a whole install:
//
//   const servers = await TokenServers.install(cluster, { complete: false });   // key and pepper are the controller's
//   const server = await servers.start();
//   const controller = await startController(servers, { replicas: [server] });
//   await Promise.all([controller.ready(), server.ready()]);
//   await controller.process.end(); await servers.stop();

import type { TestContext } from 'vitest';
import { freePort } from '../../free-port.ts';
import { GrantryProcess } from '../../processes/grantry-process.ts';
import { succeeds, until } from '../../until.ts';
import { STARTS, TAKES_OVER } from './limits.ts';
import type { TokenServerProcess, TokenServers } from './token-servers.ts';

/** One running controller. */
export interface ControllerProcess {
  readonly process: GrantryProcess;
  /** `http://127.0.0.1:<admin port>` */
  readonly admin: string;
  /** Waits until `/readyz` is green. */
  ready(limit?: number): Promise<void>;
  metric(name: string): Promise<number | undefined>;
}

export interface ControllerOptions {
  /** The token servers that it asks what they serve. */
  readonly replicas?: readonly Pick<TokenServerProcess, 'admin'>[];
  /** Another way to the API server, such as a fault proxy. */
  readonly url?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

/** Starts one for this install. */
export async function startController(
  { cluster, installation }: Pick<TokenServers, 'cluster' | 'installation'>,
  { replicas = [], url, environment }: ControllerOptions = {},
): Promise<ControllerProcess> {
  const port = await freePort();
  const admin = `http://127.0.0.1:${port}`;
  const token = installation.controllerToken;
  const urls = replicas.map((replica) => replica.admin).join(',');
  const process = new GrantryProcess(['controller'], {
    environment: {
      KUBECONFIG: cluster.kubeconfig({ token, ...(url !== undefined && { url }) }),
      GRANTRY_NAMESPACE: installation.namespace,
      GRANTRY_CLASS: installation.className,
      GRANTRY_ISSUER: 'https://id.example',
      GRANTRY_HOST: '127.0.0.1',
      GRANTRY_ADMIN_PORT: String(port),
      ...(urls !== '' && { GRANTRY_SERVER_ADMIN_URLS: urls }),
      ...environment,
    },
  });
  const ask = async (path: string) => {
    try {
      const response = await fetch(`${admin}${path}`, { signal: AbortSignal.timeout(5000) });
      return { status: response.status, text: await response.text() };
    } catch {
      return { status: 0, text: '' };
    }
  };
  return {
    process,
    admin,
    async ready(limit = STARTS) {
      const isReady = async () => (await ask('/readyz')).status === 200;
      await until('the controller is ready', isReady, limit).catch(async (error: Error) => {
        throw new Error(`${error.message}\n${(await ask('/readyz')).text}\n${process.output}\n${process.errors}`);
      });
    },
    async metric(name) {
      const value = (await ask('/metrics')).text.match(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm'))?.[1];
      return value === undefined ? undefined : Number(value);
    },
  };
}

/** How many of concurrent tests start at the same time: processes that start take each other's time. */
const STARTING_AT_ONCE = 2;
const starting = Array.from({ length: STARTING_AT_ONCE }, () => Promise.resolve());
let started = 0;

/** Starts one that ends with a test, which may be concurrent with others; it answers, or has ended already. */
export async function startWith(
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
  install: Pick<TokenServers, 'cluster' | 'installation'>,
  options: ControllerOptions = {},
): Promise<ControllerProcess> {
  const place = started++ % STARTING_AT_ONCE;
  const start = async () => {
    const controller = await startController(install, options);
    onTestFinished(async () => void (await controller.process.end('SIGKILL')));
    let hasEnded = false;
    void controller.process.ended().then(() => {
      hasEnded = true;
    });
    const answers = () => succeeds(fetch(`${controller.admin}/livez`));
    await until('the controller answers', async () => hasEnded || (await answers()), STARTS);
    return controller;
  };
  const controller = starting[place]?.then(start) ?? start();
  starting[place] = controller.then(
    () => {},
    () => {},
  );
  return await controller;
}

/** Whether it holds the lease. */
export async function leads(controller: ControllerProcess): Promise<boolean> {
  return (await controller.metric('grantry_lease_held')) === 1;
}

/** Waits until one of them leads. */
export async function leaderOf(controllers: readonly ControllerProcess[]): Promise<ControllerProcess> {
  let leader: ControllerProcess | undefined;
  await until(
    'one leads',
    async () => {
      for (const each of controllers) if (await leads(each)) leader = each;
      return leader !== undefined;
    },
    TAKES_OVER,
  );
  return leader as ControllerProcess;
}
