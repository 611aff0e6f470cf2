// Tests on a real API server. How a suite uses it:
//
//   const cluster = sharedCluster();                 // of shared-cluster.ts: one API server per run, CRDs applied
//   const namespace = await cluster.namespace();     // one of the test's own; nothing needs to be cleaned up
//   await cluster.apply({ apiVersion, kind, metadata: { namespace, name }, spec });           // as cluster admin
//   const { status, body } = await cluster.call('GET', `/api/v1/namespaces/${namespace}`, { token });
//   const { code, output, errors } = await cluster.kubectl(['get', 'oac'], { kubeconfig });
//   const token = await cluster.token({ namespace, name: 'tenant' });                         // of a ServiceAccount
//   const kubeconfig = cluster.kubeconfig({ token, url: proxy.url });                         // a file, for KUBECONFIG
//
// A suite that stops or freezes its API server starts its own: `const server = await
// ApiServer.start(cluster.address.assets)`, `const own = new Cluster(server.address)`, `await own.applyCrds()`, and in the
// end `await server.stop()`. Faults of the network come from fault-proxy.ts. What such a cluster has not, api-server.ts says.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { until } from '../../until.ts';
import type { ApiServerAddress } from './api-server.ts';

const CRDS = join(import.meta.dirname, '../../../crds');

/** The identity of a user in a namespace. */
export interface AccountPlace {
  readonly namespace: string;
  readonly name: string;
}

/** An answer of the API server, whatever its status. */
export interface ApiAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they know the object to hold
  readonly body: any;
}

/** An object as a manifest has it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

export interface CallOptions {
  /** The user of the call; default: the cluster's admin. */
  readonly token?: string;
  readonly body?: unknown;
  /** A body that is no JSON. */
  readonly text?: string;
  /** Default `application/json`; for PATCH `application/merge-patch+json`. */
  readonly contentType?: string;
}

export interface KubectlOptions {
  /** The user of the call; default: the cluster's admin. */
  readonly kubeconfig?: string;
  readonly input?: string;
}

/** What tests do with an API server. */
export class Cluster {
  readonly address: ApiServerAddress;
  /** PEM: what the API server's certificate is checked against. */
  readonly ca: string;
  /** A kubeconfig of a user who may do everything. */
  readonly adminKubeconfig: string;
  readonly #agent: Agent;

  constructor(address: ApiServerAddress) {
    this.address = address;
    this.ca = readFileSync(address.certificateFile, 'utf8');
    this.#agent = new Agent({ ca: this.ca, keepAlive: true });
    this.adminKubeconfig = this.kubeconfig({ token: address.adminToken });
  }

  /** A new namespace; its name. */
  async namespace(labels: Readonly<Record<string, string>> = {}): Promise<string> {
    const name = uniqueName('test');
    await this.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
    return name;
  }

  /** One request. @throws only when there is no answer */
  async call(
    method: string,
    path: string,
    { token, body, text: given, contentType }: CallOptions = {},
  ): Promise<ApiAnswer> {
    const type = contentType ?? (method === 'PATCH' ? 'application/merge-patch+json' : 'application/json');
    const sent = given ?? (body === undefined ? undefined : JSON.stringify(body));
    const headers = {
      authorization: `Bearer ${token ?? this.address.adminToken}`,
      ...(sent !== undefined && { 'content-type': type }),
    };
    return await new Promise((resolve, reject) => {
      const asked = request(`${this.address.url}${path}`, { method, headers, agent: this.#agent }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: parsed(text) })).on('error', reject);
      });
      asked.on('error', reject).end(sent);
    });
  }

  /** Server-side apply as admin, in the order given; the objects as they are afterwards. @throws when one is refused */
  async apply(...manifests: readonly Manifest[]): Promise<readonly Manifest[]> {
    const applied: Manifest[] = [];
    for (const manifest of manifests) {
      const path = `${await this.pathOf(manifest)}?fieldManager=test&force=true`;
      const options = { body: manifest, contentType: 'application/apply-patch+yaml' };
      const { status, body } = await this.call('PATCH', path, options);
      if (status >= 300) throw new Error(`${manifest.kind} ${manifest.metadata.name}: ${status} ${body.message}`);
      applied.push(body);
    }
    return applied;
  }

  /** Where an object of this kind, namespace and name is. */
  async pathOf({ apiVersion, kind, metadata }: Pick<Manifest, 'apiVersion' | 'kind' | 'metadata'>): Promise<string> {
    const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const { body } = await this.call('GET', root);
    const resources: { name: string; kind: string; namespaced: boolean }[] = body.resources ?? [];
    const found = resources.find((each) => each.kind === kind && !each.name.includes('/'));
    if (found === undefined) throw new Error(`the API server has no ${kind} in ${apiVersion}`);
    if (found.namespaced && metadata.namespace === undefined) throw new Error(`${kind} ${metadata.name}: no namespace`);
    const scope = found.namespaced ? `/namespaces/${metadata.namespace}` : '';
    return `${root}${scope}/${found.name}/${metadata.name}`;
  }

  /** Applies `crds/` and waits until its kinds are served. */
  async applyCrds(): Promise<void> {
    const files = globSync('*.yaml', { cwd: CRDS });
    if (files.length === 0) return;
    await this.#mustKubectl(['apply', '--server-side', ...files.flatMap((file) => ['-f', join(CRDS, file)])]);
    await this.#mustKubectl(['wait', '--for=condition=Established', '--timeout=60s', 'crd', '--all']);
    const { body } = await this.call('GET', '/apis/grantry.dev/v1alpha1');
    const kinds = (body.resources as { name: string }[]).filter(({ name }) => !name.includes('/'));
    // An established kind answers 429 until its cache is filled.
    for (const { name } of kinds) {
      await until(`${name} are served`, async () => {
        return (await this.call('GET', `/apis/grantry.dev/v1alpha1/${name}`)).status === 200;
      });
    }
  }

  /** kubectl run to its end. */
  async kubectl(
    args: readonly string[],
    { kubeconfig = this.adminKubeconfig, input = '' }: KubectlOptions = {},
  ): Promise<{ readonly code: number | null; readonly output: string; readonly errors: string }> {
    const child = spawn(join(this.address.assets, 'kubectl'), args, {
      // Its cache of what the API server offers would be another server's.
      env: { PATH: process.env.PATH, HOME: this.address.folder, KUBECONFIG: kubeconfig },
    });
    let [output, errors] = ['', ''];
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr.on('data', (chunk) => {
      errors += chunk;
    });
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    const code = await new Promise<number | null>((resolve, reject) => child.on('close', resolve).on('error', reject));
    return { code, output, errors };
  }

  async #mustKubectl(args: readonly string[]): Promise<void> {
    const { code, errors } = await this.kubectl(args);
    if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${errors}`);
  }

  /** A token of a ServiceAccount, as a pod would be given it; the account is created where it is missing. */
  async token(
    { namespace, name }: AccountPlace,
    { audiences = [], seconds = 3600 }: { readonly audiences?: readonly string[]; readonly seconds?: number } = {},
  ): Promise<string> {
    await this.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name } });
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const spec = { audiences, expirationSeconds: seconds };
    const { status, body } = await this.call('POST', path, {
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec },
    });
    if (status !== 201) throw new Error(`a token for ${namespace}/${name}: ${status} ${body.message}`);
    return body.status.token;
  }

  /** The path of a kubeconfig for this token. `url`: another way to the API server, such as a fault proxy. */
  kubeconfig({
    token,
    url = this.address.url,
    namespace,
  }: {
    readonly token: string;
    readonly url?: string;
    readonly namespace?: string;
  }): string {
    const cluster = { server: url, 'certificate-authority-data': Buffer.from(this.ca).toString('base64') };
    const file = join(this.address.folder, `${uniqueName('kubeconfig')}.json`);
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      clusters: [{ name: 'test', cluster }],
      users: [{ name: 'test', user: { token } }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test', ...(namespace && { namespace }) } }],
    };
    writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
    return file;
  }
}

/** A name that is unique in the run. */
function uniqueName(prefix: string): string {
  return `${prefix}-${randomBytes(5).toString('hex')}`;
}

/** Waits until an object that is created gets a later creationTimestamp, which has no fraction of a second. */
export async function nextSecond(): Promise<void> {
  const second = () => Math.floor(Date.now() / 1000);
  const created = second();
  await until('the second is over', () => second() > created);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
