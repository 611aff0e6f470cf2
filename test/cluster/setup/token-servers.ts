// Token servers of one install, as processes of their own with the ServiceAccount of a token server, over one Redis. What the
// controller would write, the tests write: verifiers, a key, the pepper.

import { randomBytes } from 'node:crypto';
import {
  VERIFIER_SECRET_TYPE,
  verifierSecretData,
  verifierSecretName,
} from '../../../src/admission/client-secrets/client-verifier.ts';
import {
  KEY_SECRET_TYPE,
  keySecretData,
  keySecretMetadata,
  keySecretName,
  type StoredKeyState,
} from '../../../src/admission/keys/key-secret.ts';
import { controllerProof } from '../../../src/admission/references/controller-proof.ts';
import {
  CONTROLLER_SECRET,
  PART_LABEL,
  PEPPER_SECRET,
  type SingleSecret,
} from '../../../src/admission/references/secret-parts.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { generateSigningKeyPem, importSigningKey } from '../../../src/oauth/registry/keys.ts';
import { freePort } from '../../free-port.ts';
import { GrantryProcess } from '../../processes/grantry-process.ts';
import { type RedisServer, startRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import type { Cluster, Manifest } from './cluster.ts';
import { type Installation, install } from './installation.ts';
import { STARTS } from './limits.ts';

/** What an issuer that is never asked by its name is called. */
export const ISSUER = 'https://id.example';

/** One running token server. */
export interface TokenServerProcess {
  readonly process: GrantryProcess;
  readonly url: string;
  readonly admin: string;
  /** Status and lines of `/readyz`; status 0 while there is no answer. */
  readiness(): Promise<{ readonly status: number; readonly text: string }>;
  /** Waits until it is not ready and says so in a line like this. */
  saysUnready(line: RegExp): Promise<void>;
  /** Waits until it is ready. */
  ready(limit?: number): Promise<void>;
  /** A token request, with client_credentials unless the form has another grant. @returns its status, and the tokens */
  token(
    client: Pick<AClient, 'clientId' | 'secret'>,
    form?: Readonly<Record<string, string>>,
  ): Promise<{ status: number; body: TokenBody }>;
  /** The same with a ServiceAccount token. @returns its status */
  accountStatus(clientId: string, assertion: string): Promise<number>;
  metric(name: string): Promise<number | undefined>;
}

export interface TokenBody {
  readonly access_token?: string;
  readonly refresh_token?: string;
  readonly error?: string;
}

/** A client of a test, applied. */
export interface AClient {
  readonly clientId: string;
  readonly uid: string;
  readonly secret: string;
  readonly namespace: string;
  readonly name: string;
}

/** An install with its Redis, and what its token servers read. */
export class TokenServers {
  readonly cluster: Cluster;
  readonly installation: Installation;
  readonly #redis: RedisServer;
  readonly #processes: GrantryProcess[] = [];
  readonly #proofKey = randomBytes(32).toString('base64url');

  private constructor(cluster: Cluster, installation: Installation, redis: RedisServer) {
    this.cluster = cluster;
    this.installation = installation;
    this.#redis = redis;
  }

  /** With a pepper, a key that signs and one for proofs, unless a test wants to see what is waited for. */
  static async install(cluster: Cluster, { complete = true } = {}): Promise<TokenServers> {
    const servers = new TokenServers(cluster, await install(cluster), await startRedis());
    if (complete) {
      await servers.writePepper();
      await servers.writeKey();
      await servers.writeProofKey();
    }
    return servers;
  }

  get namespace(): string {
    return this.installation.namespace;
  }

  /** A command to its Redis, with all rights. */
  redis(...words: readonly (string | number)[]): Promise<unknown> {
    return this.#redis.command(...words);
  }

  /** Starts one. @param options.url another way to the API server, such as a fault proxy */
  async start(options: StartOptions = {}): Promise<TokenServerProcess> {
    const token = options.token ?? this.installation.serverToken;
    const port = await freePort(2);
    const adminPort = port + 1;
    const kubeconfig = this.cluster.kubeconfig({ token, ...(options.url !== undefined && { url: options.url }) });
    const process = new GrantryProcess(['server'], {
      environment: {
        KUBECONFIG: kubeconfig,
        GRANTRY_NAMESPACE: this.namespace,
        GRANTRY_CLASS: this.installation.className,
        GRANTRY_ISSUER: ISSUER,
        GRANTRY_REDIS_URL: this.#redis.url,
        GRANTRY_HOST: '127.0.0.1',
        GRANTRY_PORT: String(port),
        GRANTRY_ADMIN_PORT: String(adminPort),
        GRANTRY_DRAIN_DELAY: '0s',
        // A test that polls until a client is served fails often.
        GRANTRY_RATE_LIMITS: 'off',
        ...options.environment,
      },
    });
    this.#processes.push(process);
    return running(process, `http://127.0.0.1:${port}`, `http://127.0.0.1:${adminPort}`);
  }

  /** So many, all ready. */
  async startReady(count: number, options: StartOptions = {}): Promise<readonly TokenServerProcess[]> {
    const started = await Promise.all(Array.from({ length: count }, () => this.start(options)));
    await Promise.all(started.map((server) => server.ready()));
    return started;
  }

  /** An OAuthClient of this install's class, as it is applied. */
  manifest(namespace: string, name: string, spec: object = {}): Manifest {
    const machine = { grantTypes: ['client_credentials'], scopes: [`${namespace}/read`], ...spec };
    return {
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'OAuthClient',
      metadata: { namespace, name },
      spec: { className: this.installation.className, defaultScopes: machine.scopes, ...machine },
    };
  }

  /** Applies a client and writes what its secret is verified by. */
  async client(namespace: string, name: string, spec: object = {}): Promise<AClient> {
    const [applied] = await this.cluster.apply(this.manifest(namespace, name, spec));
    const uid = String(applied?.metadata.uid);
    const { clientId = `${namespace}.${name}` } = spec as { readonly clientId?: string };
    const client = { clientId, uid, secret: randomBytes(32).toString('base64url'), namespace, name };
    await this.writeVerifiers(client, [{ secret: client.secret }]);
    return client;
  }

  /** What the controller writes of a client's secrets, newest first. */
  async writeVerifiers(
    { uid }: Pick<AClient, 'uid'>,
    secrets: readonly { readonly secret: string; readonly expiresAt?: number }[],
    {
      type = VERIFIER_SECRET_TYPE,
      name = verifierSecretName(uid),
      revision = 1,
      labels = { [PART_LABEL]: 'verifier' } as Readonly<Record<string, string>>,
    } = {},
  ): Promise<void> {
    const verifiers = secrets.map(({ secret, expiresAt }, index) => ({
      verifier: secretVerifier(uid, secret),
      revision: secrets.length - index,
      ...(expiresAt !== undefined && { expiresAt }),
    }));
    await this.#writeVerifier({ type, name, labels, data: verifierSecretData({ revision, verifiers }) });
  }

  /** Applies a ServiceAccount and the client of that name that it is, and writes the uid that the account has now. */
  async accountClient(namespace: string, name: string): Promise<void> {
    const auth = { method: 'kubernetes_service_account', serviceAccounts: [{ name }] };
    const [account, client] = await this.cluster.apply(
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace, name } },
      this.manifest(namespace, name, { auth }),
    );
    const serviceAccounts = [{ name, uid: String(account?.metadata.uid) }];
    await this.#writeVerifier({
      type: VERIFIER_SECRET_TYPE,
      name: verifierSecretName(String(client?.metadata.uid)),
      labels: { [PART_LABEL]: 'verifier' },
      data: verifierSecretData({ revision: 1, verifiers: [], serviceAccounts }),
    });
  }

  async #writeVerifier({ type, name, labels, data }: VerifierSecret): Promise<void> {
    const metadata = { namespace: this.namespace, name, labels };
    await this.cluster.apply({ apiVersion: 'v1', kind: 'Secret', type, metadata, data });
  }

  async writePepper(): Promise<void> {
    await this.#writeSingle(PEPPER_SECRET, randomBytes(32).toString('base64url'));
  }

  /** What a controller would prove itself with. */
  async writeProofKey(key = this.#proofKey): Promise<void> {
    await this.#writeSingle(CONTROLLER_SECRET, key);
  }

  /** Asks a replica as its controller does. @param key what it is proven with; default: what `writeProofKey` wrote */
  async ask({ admin }: TokenServerProcess, path: string, question: object, key = this.#proofKey) {
    const body = JSON.stringify(question);
    const authorization = controllerProof({ path, body }, key, Date.now()) ?? '';
    const headers = { 'content-type': 'application/json', authorization };
    const response = await fetch(`${admin}${path}`, { method: 'POST', headers, body });
    // biome-ignore lint/suspicious/noExplicitAny: tests read what they know the answer to hold
    return { status: response.status, body: (await response.json()) as any };
  }

  async #writeSingle({ name, part, key }: SingleSecret, value: string): Promise<void> {
    await this.cluster.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'Opaque',
      metadata: { namespace: this.namespace, name, labels: { [PART_LABEL]: part } },
      data: { [key]: Buffer.from(value).toString('base64') },
    });
  }

  /** A key of the ring `default`, with its SigningKey. @returns its id */
  async writeKey(state: StoredKeyState = 'Active', spec: object = {}): Promise<string> {
    const pem = await generateSigningKeyPem('ES256');
    const { kid } = await importSigningKey(pem, 'ES256', 'Active');
    const now = Date.now();
    const times = { publishedAt: now, activatedAt: state === 'Published' ? undefined : now, removeAfter: undefined };
    const key = { signingKeyName: 'default', keyId: kid, algorithm: 'ES256', state, ...times } as const;
    await this.cluster.apply(
      {
        apiVersion: 'grantry.dev/v1alpha1',
        kind: 'SigningKey',
        metadata: { namespace: this.namespace, name: 'default' },
        spec,
      },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        type: KEY_SECRET_TYPE,
        immutable: true,
        metadata: { namespace: this.namespace, name: keySecretName(key), ...keySecretMetadata(key) },
        data: keySecretData(pem),
      },
    );
    return kid;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.end('SIGKILL')));
    await this.#redis.stop();
  }
}

interface VerifierSecret {
  readonly type: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly data: Readonly<Record<string, string>>;
}

export interface StartOptions {
  readonly url?: string;
  readonly token?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

function running(process: GrantryProcess, url: string, admin: string): TokenServerProcess {
  const readiness = async () => {
    try {
      const response = await fetch(`${admin}/readyz`);
      return { status: response.status, text: await response.text() };
    } catch {
      return { status: 0, text: '' };
    }
  };
  const wait = async (what: string, holds: (now: { status: number; text: string }) => boolean, limit: number) => {
    try {
      await until(what, async () => holds(await readiness()), limit);
    } catch (error) {
      const { text } = await readiness();
      throw new Error(`${(error as Error).message}\n${text}\n${process.output}\n${process.errors}`);
    }
  };
  return {
    process,
    url,
    admin,
    readiness,
    saysUnready: (line) =>
      wait(`/readyz says ${line}`, ({ status, text }) => status === 503 && line.test(text), STARTS),
    ready: (limit = STARTS) => wait('it is ready', ({ status }) => status === 200, limit),
    async token({ clientId, secret }, form = {}) {
      const response = await fetch(`${url}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', ...form }),
      });
      return { status: response.status, body: (await response.json()) as TokenBody };
    },
    async accountStatus(clientId, assertion) {
      const body = new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: clientId,
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: assertion,
      });
      return (await fetch(`${url}/token`, { method: 'POST', body })).status;
    },
    async metric(name) {
      const text = await (await fetch(`${admin}/metrics`)).text();
      const value = text.match(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm'))?.[1];
      return value === undefined ? undefined : Number(value);
    },
  };
}
