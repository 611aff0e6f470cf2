// One replica of the token server, as far as its registry: it follows the API server by its own watches, and says which client
// secrets it accepts and, to a controller, what it serves.

import { RegistrySync } from '../../../src/cluster-registry/registry-sync.ts';
import type { ObservedReplicas, ServedClient } from '../../../src/controller/replicas/observed-replicas.ts';
import type { KubernetesApi } from '../../../src/kubernetes/api/kubernetes-api.ts';
import type { Random } from '../../../src/oauth/ports/ports.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { FaultyLink } from './faulty-link.ts';
import { INSTALL } from './install.ts';

/** How long a controller waits for what it serves. */
const ANSWER_MILLISECONDS = 20;

export class TokenServer {
  readonly link: FaultyLink;
  readonly #time: VirtualTime;
  readonly #registry: RegistrySync;

  constructor({
    api,
    link,
    time,
    random,
  }: {
    readonly api: KubernetesApi;
    readonly link: FaultyLink;
    readonly time: VirtualTime;
    readonly random: Random;
  }) {
    this.link = link;
    this.#time = time;
    this.#registry = new RegistrySync({
      api,
      clock: time,
      random,
      watchNamespaces: [],
      ...INSTALL,
      log: { info: () => {}, warn: () => {}, error: () => {} },
      metrics: { watchEvent: () => {}, watchRestarted: () => {}, changeRefused: () => {} },
    });
  }

  start(): void {
    this.#registry.start({ onSwap: () => {}, onSecret: () => {}, onUsers: () => {} });
  }

  async stop(): Promise<void> {
    await this.#registry.stop();
  }

  /** Whether it knows the client at all. */
  serves(uid: string): boolean {
    return this.#registry.current.findByUid(uid) !== undefined;
  }

  /** Whether a request of this client with this secret is authenticated. */
  accepts(uid: string, secret: string): boolean {
    const wanted = Buffer.from(secretVerifier(uid, secret));
    const { secretVerifiers = [] } = this.#registry.current.findByUid(uid) ?? {};
    return secretVerifiers.some((verifier) => wanted.equals(verifier));
  }

  /** As a controller observes it. */
  readonly observed: ObservedReplicas = {
    observe: (uids) =>
      new Promise((resolve) => {
        this.#time.after(ANSWER_MILLISECONDS, () => {
          const clients = new Map<string, ServedClient>();
          for (const uid of uids) {
            const served = this.#registry.servedState(uid);
            if (served !== undefined) clients.set(uid, served);
          }
          const state = { clients, resources: new Map(), keyIds: new Set<string>() };
          resolve({ outcome: 'Observed', replicas: [{ name: 'pod-1', state }] });
        });
      }),
  };
}
