// A real Kubernetes API server for tests: etcd and kube-apiserver, with RBAC and the admission plugins of production, on
// free ports of 127.0.0.1, from a folder of its own. There is no node, no scheduler and no controller manager, so: nothing
// is garbage-collected, a deleted namespace stays Terminating, no ServiceAccount `default` appears, aggregated roles stay
// empty. Tests use it through `cluster.ts`.

import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../free-port.ts';
import { until } from '../../until.ts';
import { KeptProcess } from './kept-process.ts';

/** How to reach an API server; plain data, for it crosses from vitest's own process to the workers. */
export interface ApiServerAddress {
  readonly url: string;
  /** The folder that holds kubectl. */
  readonly assets: string;
  /** Removed with the server: kubeconfigs, its log, `ca.crt`. */
  readonly folder: string;
  /** Of a member of system:masters. */
  readonly adminToken: string;
  /** The server's certificate (signed by the CA below it) and its key: a proxy in front of it serves with the same. */
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** A namespaced object in JSON, as kube-apiserver stores custom ones and reads all. */
export interface StoredObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    /** Without a fraction of a second. */
    readonly creationTimestamp: string;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

const STORED_AT_ONCE = 16;

/** The issuer of ServiceAccount tokens, which is also their default audience. */
const SERVICE_ACCOUNT_ISSUER = 'https://kubernetes.default.svc.cluster.local';

/** The folder with etcd, kube-apiserver and kubectl; finding it may take the minutes of a build. */
function findAssets(): string {
  const script = join(import.meta.dirname, '../../../scripts/kubernetes-assets.mjs');
  return execFileSync(process.execPath, [script], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim();
}

/** One API server with its etcd. */
export class ApiServer {
  readonly address: ApiServerAddress;
  readonly #etcdUrl: string;
  readonly #etcdArguments: readonly string[];
  readonly #arguments: readonly string[];
  #etcd: KeptProcess | undefined;
  #server: KeptProcess | undefined;

  private constructor(assets: string, ports: { etcd: number; peer: number; secure: number }, more: readonly string[]) {
    const folder = mkdtempSync(join(tmpdir(), 'grantry-cluster-'));
    const file = (name: string) => join(folder, name);
    const adminToken = randomBytes(24).toString('hex');
    this.address = {
      url: `https://127.0.0.1:${ports.secure}`,
      assets,
      folder,
      adminToken,
      certificateFile: file('certificates/apiserver.crt'),
      keyFile: file('certificates/apiserver.key'),
    };
    this.renewServiceAccountKey();
    writeFileSync(file('tokens.csv'), `${adminToken},admin,admin,system:masters\n`, { mode: 0o600 });
    mkdirSync(file('certificates'));
    const etcd = `http://127.0.0.1:${ports.etcd}`;
    this.#etcdUrl = etcd;
    const peer = `http://127.0.0.1:${ports.peer}`;
    this.#etcdArguments = [
      `--data-dir=${file('etcd')}`,
      `--listen-client-urls=${etcd}`,
      `--advertise-client-urls=${etcd}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
      // What a power cut would lose is of no interest here.
      '--unsafe-no-fsync',
      '--log-level=error',
    ];
    this.#arguments = [
      `--etcd-servers=${etcd}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${ports.secure}`,
      // It signs a certificate for itself into this folder.
      `--cert-dir=${file('certificates')}`,
      '--authorization-mode=RBAC',
      `--token-auth-file=${file('tokens.csv')}`,
      `--service-account-issuer=${SERVICE_ACCOUNT_ISSUER}`,
      `--service-account-signing-key-file=${file('service-accounts.key')}`,
      `--service-account-key-file=${file('service-accounts.pub')}`,
      '--service-cluster-ip-range=10.96.0.0/16',
      // It would publish its own address, and refuses a loopback one.
      '--endpoint-reconciler-type=none',
      ...more,
    ];
  }

  /**
   * Starts a pair of its own, in about 3 s.
   * @param assets where the programs are, if that is known
   * @param more further arguments of kube-apiserver
   */
  static async start(assets = findAssets(), more: readonly string[] = []): Promise<ApiServer> {
    const etcd = await freePort(2);
    const server = new ApiServer(assets, { etcd, peer: etcd + 1, secure: await freePort() }, more);
    await server.start();
    return server;
  }

  /** Starts what does not run, on the same ports and with what was stored; waits until it is ready. */
  async start(): Promise<void> {
    const { assets, folder } = this.address;
    if (this.#etcd === undefined || this.#etcd.hasEnded) {
      this.#etcd = new KeptProcess(join(assets, 'etcd'), this.#etcdArguments, {
        logFile: join(folder, 'etcd.log'),
      });
    }
    if (this.#server === undefined || this.#server.hasEnded) {
      this.#server = new KeptProcess(join(assets, 'kube-apiserver'), this.#arguments, { logFile: this.logFile });
    }
    await until(
      'the API server is ready',
      () => {
        this.#etcd?.assertRuns();
        this.#server?.assertRuns();
        return isReady(this.address);
      },
      60_000,
    );
  }

  /** From the next start on, ServiceAccount tokens are signed by another key, and those of the key before are no longer valid. */
  renewServiceAccountKey(): void {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    writeFileSync(join(this.address.folder, 'service-accounts.key'), privateKey, { mode: 0o600 });
    writeFileSync(join(this.address.folder, 'service-accounts.pub'), publicKey);
  }

  /**
   * Puts objects where kube-apiserver keeps them, without asking it, which takes a fraction of the time. It lists and
   * watches them like any others, so they have to be what it would have stored, uid, age and generation included.
   * @param kind where it keeps them, such as `grantry.dev/oauthclients` or `secrets`
   */
  async store(kind: string, objects: readonly StoredObject[]): Promise<void> {
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    const waiting = objects.values();
    const work = async () => {
      for (const object of waiting) {
        const { namespace, name } = object.metadata;
        const body = JSON.stringify({
          key: base64(`/registry/${kind}/${namespace}/${name}`),
          value: base64(JSON.stringify(object)),
        });
        // Each by itself: several in one transaction would have one version, and a list could end in the middle of it.
        const response = await fetch(`${this.#etcdUrl}/v3/kv/put`, { method: 'POST', body });
        await response.arrayBuffer();
        if (response.status !== 200) throw new Error(`etcd answered ${response.status}`);
      }
    };
    await Promise.all(Array.from({ length: STORED_AT_ONCE }, work));
  }

  /** What kube-apiserver said. */
  get logFile(): string {
    return join(this.address.folder, 'kube-apiserver.log');
  }

  /** Freezes kube-apiserver: connections stay, nothing is answered. */
  pause(): void {
    this.#server?.pause();
  }

  resume(): void {
    this.#server?.resume();
  }

  /** kube-apiserver is gone; etcd stays, and `start()` starts it again. */
  async kill(): Promise<void> {
    await this.#server?.kill();
  }

  /** Ends both and removes the folder. */
  async stop(): Promise<void> {
    await Promise.all([this.#server?.kill(), this.#etcd?.kill()]);
    rmSync(this.address.folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

async function isReady({ url, certificateFile, adminToken }: ApiServerAddress): Promise<boolean> {
  const ca = readIfThere(certificateFile);
  if (ca === undefined) return false;
  return await new Promise((resolve) => {
    const headers = { authorization: `Bearer ${adminToken}` };
    const asked = request(`${url}/readyz`, { ca, headers, agent: false, timeout: 5000 }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode === 200));
    });
    asked
      .on('timeout', () => asked.destroy())
      .on('error', () => resolve(false))
      .end();
  });
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
