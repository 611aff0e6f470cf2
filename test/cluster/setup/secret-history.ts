// What could ever be read: every state of the owners' Secrets and of the verifiers of one install, in the one order in
// which the API server wrote them. What is wrong with it can be determined exactly, however loaded the machine is.

import { onTestFinished, type TestContext } from 'vitest';
import { type AcceptedVerifier, readVerifierSecret } from '../../../src/admission/client-secrets/client-verifier.ts';
import { type KubernetesObject, SECRETS } from '../../../src/kubernetes/objects/resources.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { connectCluster } from '../../../src/processes/lifecycle/cluster-connection.ts';
import { until } from '../../until.ts';
import type { Cluster } from './cluster.ts';
import type { Installation } from './installation.ts';

const UID_LABEL = 'grantry.dev/client-uid';
const MARK = 'end-of-history';

/** One client's. */
export interface ClientHistory {
  /** The texts that its Secrets held under `client-secret`, in order; the same one after another counts once. */
  readonly values: readonly string[];
  /** How many secrets were made for it: of each the verifier was stored. */
  readonly made: number;
  /** How many of them were made after the first one could be read. */
  readonly madeAfterwards: number;
  /** What could be read and was not accepted then or later. */
  readonly refused: readonly string[];
}

interface Told {
  readonly values: string[];
  readonly verifiers: Set<string>;
  readonly refused: string[];
  accepted: readonly AcceptedVerifier[];
  verifiersWhenRead: number | undefined;
}

export class SecretHistory {
  readonly #cluster: Cluster;
  readonly #releaseNamespace: string;
  readonly #clients = new Map<string, Told>();
  #marks = 0;
  #ended: unknown;

  private constructor(cluster: Cluster, releaseNamespace: string) {
    this.#cluster = cluster;
    this.#releaseNamespace = releaseNamespace;
  }

  /** Follows an install from now on to the end of the test, which a concurrent test passes itself. */
  static async follow(
    cluster: Cluster,
    { namespace }: Pick<Installation, 'namespace'>,
    { onTestFinished: atEnd = onTestFinished }: Partial<Pick<TestContext, 'onTestFinished'>> = {},
  ): Promise<SecretHistory> {
    const history = new SecretHistory(cluster, namespace);
    const api = await connectCluster({ kind: 'kubeconfig', files: [cluster.adminKubeconfig] });
    const ending = new AbortController();
    atEnd(() => {
      ending.abort();
      api.close();
    });
    const { signal } = ending;
    let { resourceVersion } = await api.list(SECRETS, { limit: 1, signal });
    const watch = () => api.watch(SECRETS, { resourceVersion, timeoutSeconds: 3600, signal });
    let frames = await watch();
    const following = (async () => {
      // An API server closes the watch of a slow reader. From there on it delivers the same, or says that it cannot.
      for (; ; frames = await watch()) {
        for await (const frame of frames) {
          if (frame.type === 'ERROR') throw frame.error;
          resourceVersion = frame.type === 'BOOKMARK' ? frame.resourceVersion : frame.object.metadata.resourceVersion;
          if (frame.type === 'ADDED' || frame.type === 'MODIFIED') history.#take(frame.object);
        }
      }
    })();
    following.catch((error: unknown) => {
      history.#ended = error;
    });
    return history;
  }

  /** Everything that was written up to now, by uid of the client. @throws when something may have been missed */
  async upToNow(): Promise<ReadonlyMap<string, ClientHistory>> {
    const mark = String(this.#marks + 1);
    const metadata = { namespace: this.#releaseNamespace, name: MARK };
    await this.#cluster.apply({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: { mark } });
    await until('all was delivered', () => this.#ended !== undefined || this.#marks === Number(mark), 60_000);
    if (this.#ended !== undefined) throw this.#ended;
    // Others have clients too.
    const ours = [...this.#clients].filter(([, { verifiers }]) => verifiers.size > 0);
    const told = ours.map(([uid, { values, refused, verifiers, verifiersWhenRead: before = verifiers.size }]) => {
      return [uid, { values, refused, made: verifiers.size, madeAfterwards: verifiers.size - before }] as const;
    });
    return new Map(told);
  }

  #take(object: KubernetesObject): void {
    const { namespace, name, labels = {} } = object.metadata;
    const uid = labels[UID_LABEL];
    if (namespace === this.#releaseNamespace) {
      if (name === MARK) this.#marks = Number(textIn(object, 'mark'));
      const read = readVerifierSecret(object);
      if (read !== undefined) this.#stored(read.uid, read.verifiers);
    } else if (uid !== undefined) this.#read(uid, textIn(object, 'client-secret'));
  }

  #stored(uid: string, accepted: readonly AcceptedVerifier[]): void {
    const told = this.#of(uid);
    told.accepted = accepted;
    for (const { verifier } of accepted) told.verifiers.add(hex(verifier));
    for (const value of told.values) check(told, value, uid);
  }

  #read(uid: string, value: string | undefined): void {
    const told = this.#of(uid);
    if (value === undefined || told.values.at(-1) === value) return;
    told.values.push(value);
    told.verifiersWhenRead ??= told.verifiers.size;
    check(told, value, uid);
  }

  #of(uid: string): Told {
    const told = this.#clients.get(uid) ?? {
      values: [],
      verifiers: new Set<string>(),
      refused: [],
      accepted: [],
      verifiersWhenRead: undefined,
    };
    this.#clients.set(uid, told);
    return told;
  }
}

function check({ accepted, refused }: Told, value: string, uid: string): void {
  const wanted = hex(secretVerifier(uid, value));
  if (!accepted.some(({ verifier }) => hex(verifier) === wanted)) refused.push(value);
}

function textIn({ data }: KubernetesObject, key: string): string | undefined {
  const encoded = (data as Readonly<Record<string, string>> | undefined)?.[key];
  return encoded === undefined ? undefined : Buffer.from(encoded, 'base64').toString();
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
