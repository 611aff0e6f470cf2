// `grantry controller` as a Deployment runs it: a process of its own, with the token of its ServiceAccount. With the token
// servers of token-servers.ts it makes a whole install:
//
//   const servers = await TokenServers.install(cluster, { complete: false });   // key and pepper are the controller's
//   const server = await servers.start();
//   const controller = await startController(servers, { replicas: [server] });
//   await Promise.all([controller.ready(), server.ready()]);
//   await controller.process.end(); await servers.stop();

import { freePort } from '../../free-port.ts';
import { GrantryProcess } from '../../processes/grantry-process.ts';
import { until } from '../../until.ts';
import { STARTS } from './limits.ts';
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
  readonly replicas?: readonly TokenServerProcess[];
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
