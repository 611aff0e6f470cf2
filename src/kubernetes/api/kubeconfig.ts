// Access by kubeconfig: token, token file, client certificate or exec plugin. `@kubernetes/client-node` reads entries
// and runs plugins; only two of its modules are imported, because the whole package costs 90 MB and half a second.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { dirname, resolve } from 'node:path';
import {
  type Cluster,
  newClusters,
  newContexts,
  newUsers,
  type User,
} from '@kubernetes/client-node/dist/config_types.js';
import { ExecAuth } from '@kubernetes/client-node/dist/exec_auth.js';
import { parse } from 'yaml';
import type { Clock } from '../../oauth/ports/ports.ts';
import { type ClusterAccess, type Credentials, readBytes, readText, reread, subjectOf } from './cluster-access.ts';

const LOOPBACK = /^http:\/\/(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:\d+)?(\/|$)/;

/** An entry of `users:` in a kubeconfig; client-node does not read `tokenFile`. */
type KubeconfigUser = User & { readonly tokenFile: string | undefined };

/**
 * Access by the current context of these files, merged as kubectl does: the first file that defines an entry wins. They
 * are read once; the files that they name are read again each minute. Throws an Error that names the fault.
 */
export function kubeconfigAccess(options: { readonly files: readonly string[]; readonly clock: Clock }): ClusterAccess {
  const { cluster, user } = currentContext(options.files);
  if (!cluster.server.startsWith('https://') && !LOOPBACK.test(cluster.server)) {
    throw new Error(`cluster ${cluster.name} of the kubeconfig is not served over https`);
  }
  if (cluster.proxyUrl) throw new Error(`cluster ${cluster.name} of the kubeconfig has a proxy-url, which is not read`);
  if (user.authProvider)
    throw new Error(`user ${user.name} of the kubeconfig has an auth-provider; use an exec plugin`);
  let plugin = newPlugin();
  const cached = reread(options.clock, () => read(cluster, user, plugin));
  return {
    server: cluster.server,
    credentials: cached.credentials,
    renew: () => {
      // A plugin caches its credentials until they expire; after 401 they are invalid although they have not expired.
      plugin = newPlugin();
      cached.renew();
    },
  };
}

interface Kubeconfig {
  readonly clusters: readonly Cluster[];
  readonly contexts: ReturnType<typeof newContexts>;
  readonly users: readonly KubeconfigUser[];
  readonly current: string | undefined;
}

function currentContext(files: readonly string[]) {
  const configs = files.map(readKubeconfig);
  const current = configs.map((config) => config.current).find(Boolean);
  const context = find('context', current, (config) => config.contexts);
  return {
    cluster: find('cluster', context.cluster, (config) => config.clusters),
    user: find('user', context.user, (config) => config.users),
  };

  function find<Entry extends { readonly name: string }>(
    what: string,
    name: string | undefined,
    entries: (config: Kubeconfig) => readonly Entry[],
  ): Entry {
    const entry = configs.flatMap(entries).find((candidate) => candidate.name === name);
    if (entry === undefined) throw new Error(`the kubeconfig ${files.join(':')} has no ${what} ${name ?? 'chosen'}`);
    return entry;
  }
}

function readKubeconfig(file: string): Kubeconfig {
  try {
    const config = parse(readFileSync(file, 'utf8')) ?? {};
    const path = (name: unknown) =>
      typeof name === 'string' && name !== '' ? resolve(dirname(file), name) : undefined;
    const tokenFile = (name: string) =>
      path(config.users.find((entry: { name: string }) => entry.name === name)?.user?.tokenFile);
    return {
      clusters: newClusters(config.clusters).map((cluster) => withPaths(cluster, { caFile: path(cluster.caFile) })),
      contexts: newContexts(config.contexts),
      users: newUsers(config.users).map((user) => ({
        ...withPaths(user, { certFile: path(user.certFile), keyFile: path(user.keyFile) }),
        tokenFile: tokenFile(user.name),
      })),
      current: config['current-context'],
    };
  } catch (error) {
    throw new Error(`the kubeconfig ${file} cannot be read: ${(error as Error).message}`);
  }
}

function withPaths<Entry>(entry: Entry, paths: Readonly<Record<string, string | undefined>>): Entry {
  return Object.assign(entry as object, paths) as Entry;
}

async function read(cluster: Cluster, user: KubeconfigUser, plugin: ExecAuth): Promise<Credentials> {
  const [ca, cert, key] = await Promise.all([
    contents(cluster.caFile, cluster.caData),
    contents(user.certFile, user.certData),
    contents(user.keyFile, user.keyData),
  ]);
  const fromPlugin = user.exec ? await askPlugin(user, plugin) : {};
  const token = user.tokenFile ? await readText(user.tokenFile) : user.token;
  const authorization = token === undefined ? fromPlugin.authorization : `Bearer ${token}`;
  return {
    headers: {
      ...(authorization === undefined ? {} : { authorization }),
      ...(user.impersonateUser ? { 'impersonate-user': user.impersonateUser } : {}),
    },
    tls: {
      ca,
      cert: fromPlugin.cert ?? cert,
      key: fromPlugin.key ?? key,
      servername: cluster.tlsServerName,
      rejectUnauthorized: cluster.skipTLSVerify ? false : undefined,
    },
    user: (authorization && subjectOf(authorization)) ?? `user ${user.name} of the kubeconfig`,
  };
}

async function contents(file: string | undefined, data: string | undefined): Promise<Buffer | undefined> {
  if (file) return readBytes(file);
  return data ? Buffer.from(data, 'base64') : undefined;
}

interface FromPlugin {
  readonly authorization?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** client-node handles a child's errors only after it has its pipes: a child without pipes would end the process. */
function newPlugin(): ExecAuth {
  const start = (...[command, args, options]: Parameters<typeof spawn>) => {
    const child = spawn(command, args, options);
    child.on('error', () => {});
    if (child.stdout === undefined) throw new Error('too many files are open to start it');
    return child;
  };
  return Object.assign(new ExecAuth(), { execFn: start });
}

async function askPlugin(user: User, plugin: ExecAuth): Promise<FromPlugin> {
  // Many plugins require the API version in this variable.
  const info = { apiVersion: user.exec.apiVersion, kind: 'ExecCredential', spec: { interactive: false } };
  const env = [...(user.exec.env ?? []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }];
  const answer: RequestOptions & { headers: Record<string, string> } = { headers: {} };
  try {
    await plugin.applyAuthentication({ ...user, exec: { ...user.exec, env } }, answer);
  } catch (error) {
    const [line = ''] = (error as Error).message.trim().split('\n');
    throw new Error(`the plugin ${user.exec.command} of the kubeconfig failed: ${line.slice(0, 200)}`);
  }
  return {
    authorization: answer.headers.Authorization,
    cert: answer.cert as string | undefined,
    key: answer.key as string | undefined,
  };
}
