// One `grantry controller` as src/processes/controller/controller.ts makes it, as far as the secrets of clients are concerned:
// the watches, the election, and the controller of clients while this process leads.

import { ClientController } from '../../../src/controller/clients/client-controller.ts';
import { LeaderApi } from '../../../src/controller/leadership/leader-api.ts';
import { type Leadership, LeadershipLostError, LeaseElector } from '../../../src/controller/leadership/lease.ts';
import { StaleReadError } from '../../../src/controller/reconciling/stale-read.ts';
import type { ObservedReplicas } from '../../../src/controller/replicas/observed-replicas.ts';
import { type KubernetesApi, KubernetesError } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, objectKey } from '../../../src/kubernetes/objects/resources.ts';
import type { Random } from '../../../src/oauth/ports/ports.ts';
import { ControllerSources } from '../../../src/processes/controller/controller-sources.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { FaultyLink } from './faulty-link.ts';
import { INSTALL, LEASE } from './install.ts';

export interface ControllerProcessOptions {
  readonly identity: string;
  readonly link: FaultyLink;
  readonly api: KubernetesApi;
  readonly observed: ObservedReplicas;
  readonly time: VirtualTime;
  readonly random: Random;
  /** Called when it begins to lead. */
  readonly onLeading: () => void;
  /** Called with an error that no network and no other writer explains. */
  readonly onFault: (error: unknown) => void;
}

export class ControllerProcess {
  readonly identity: string;
  readonly link: FaultyLink;
  readonly #options: ControllerProcessOptions;
  readonly #sources: ControllerSources;
  readonly #elector: LeaseElector;
  readonly #stopping = new AbortController();
  #clients: ClientController | undefined;
  #transitions: Promise<void> = Promise.resolve();

  constructor(options: ControllerProcessOptions) {
    this.#options = options;
    const { identity, link, api, time: clock, random } = options;
    [this.identity, this.link] = [identity, link];
    this.#sources = new ControllerSources({
      api,
      clock,
      random,
      log: this.#log,
      metrics: { watchEvent: () => {}, watchRestarted: () => {}, changeRefused: () => {} },
      className: INSTALL.className,
      releaseNamespace: INSTALL.releaseNamespace,
      watchNamespaces: undefined,
      serverService: undefined,
      needsUsers: false,
    });
    this.#elector = new LeaseElector({
      api,
      clock,
      random,
      identity,
      log: this.#log,
      namespace: INSTALL.releaseNamespace,
      name: LEASE,
      onStartedLeading: (leadership) => this.#enqueue(() => this.#lead(leadership)),
      onStoppedLeading: () => this.#enqueue(() => this.#stopLeading()),
    });
  }

  get isLeading(): boolean {
    return this.#elector.isLeading;
  }

  /** Whether its watch has delivered this Secret. */
  hasSeen({ metadata }: KubernetesObject): boolean {
    const { secrets, releaseSecrets } = this.#sources;
    const view = metadata.namespace === INSTALL.releaseNamespace ? releaseSecrets : secrets;
    return view.get(objectKey(metadata))?.metadata.uid === metadata.uid;
  }

  start(): void {
    this.#options.time.within(this.link, () => {
      this.#sources.start();
      this.#elector.start();
    });
  }

  /** Ends in order: releases its lease when nothing is written any more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#enqueue(() => this.#stopLeading());
    await this.#transitions;
    await this.#elector.stop();
    await this.#transitions;
    await this.#sources.stop();
  }

  /** Dies: what it has sent is on its way, and it does nothing more. */
  crash(): void {
    this.link.cut();
    this.#stopping.abort();
    // Not waited for: an answer may never come. Its timers end.
    for (const end of [this.#clients?.stop(), this.#elector.stop(), this.#sources.stop()]) end?.catch(() => {});
  }

  async #lead(leadership: Leadership): Promise<void> {
    const end = AbortSignal.any([leadership.signal, this.#stopping.signal]);
    await Promise.race([this.#sources.whenSynced(), aborted(end)]);
    if (end.aborted) return;
    const { api, observed, time: clock, random } = this.#options;
    this.#clients = new ClientController({
      observed,
      clock,
      random,
      log: this.#log,
      api: new LeaderApi({ api, leadership, rights: { recordResult: () => {} } }),
      sources: this.#sources,
      install: { ...INSTALL, watchNamespaces: undefined },
      replicas: { find: () => undefined, ask: () => Promise.reject(new Error('there is none to ask')) },
      grantsOf: () => undefined,
      ownerOf: () => undefined,
      record: () => {},
      metrics: { reconciled: () => {} },
    });
    this.#options.onLeading();
    this.#clients.start();
  }

  async #stopLeading(): Promise<void> {
    const clients = this.#clients;
    this.#clients = undefined;
    await clients?.stop();
  }

  #enqueue(task: () => Promise<void>): void {
    this.#transitions = this.#transitions.then(task).catch((error: unknown) => this.#options.onFault(error));
  }

  readonly #log = {
    info: () => {},
    warn: () => {},
    error: ({ err }: { readonly err?: unknown }) => {
      const isUsual = [KubernetesError, StaleReadError, LeadershipLostError].some((kind) => err instanceof kind);
      if (err !== undefined && !isUsual) this.#options.onFault(err);
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
