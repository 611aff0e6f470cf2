// A shared informer: one kind of object in all or some namespaces, with several listeners. Each listener gets every
// change; the failure of one does not affect the others.

import { type KubernetesObject, resourceName } from '../objects/resources.ts';
import { ChangeDelivery } from './change-delivery.ts';
import type { ObjectChange } from './object-store.ts';
import { Reflector, type ReflectorOptions } from './reflector.ts';

/** The read side of a cache of watched objects. */
export interface ObjectView {
  /** By `<namespace>/<name>`, or `<name>` of a cluster-scoped object. */
  get(key: string): KubernetesObject | undefined;
  objects(): Iterable<KubernetesObject>;
}

export interface SharedReflectorOptions extends Omit<ReflectorOptions, 'onChange' | 'onSynced' | 'namespace'> {
  /** Undefined: all of the cluster. */
  readonly namespaces?: readonly string[] | undefined;
}

/** The same objects, and their changes. */
export type ObjectSource = Pick<SharedReflector, 'get' | 'objects' | 'listen'>;

export class SharedReflector implements ObjectView {
  /** The kind, as kubectl names it. */
  readonly name: string;
  readonly #reflectors: readonly Reflector[];
  readonly #byNamespace = new Map<string | undefined, Reflector>();
  readonly #deliveries = new Set<ChangeDelivery>();
  readonly #options: Pick<SharedReflectorOptions, 'log' | 'metrics'>;

  constructor({ namespaces, ...options }: SharedReflectorOptions) {
    this.name = resourceName(options.resource);
    this.#options = options;
    for (const namespace of namespaces ?? [undefined]) {
      const onChange = (change: ObjectChange) => {
        for (const delivery of this.#deliveries) delivery.deliver(change);
      };
      this.#byNamespace.set(namespace, new Reflector({ ...options, namespace, onChange }));
    }
    this.#reflectors = [...this.#byNamespace.values()];
  }

  /**
   * Delivers every change from now on; a change at which the listener throws is retried.
   * @returns a function that ends the delivery
   */
  listen(listener: (change: ObjectChange) => void): () => void {
    const { log, metrics } = this.#options;
    const delivery = new ChangeDelivery({
      resource: this.name,
      listener,
      log,
      current: (key) => this.get(key),
      onFailure: () => metrics.changeRefused(this.name),
    });
    this.#deliveries.add(delivery);
    return () => {
      this.#deliveries.delete(delivery);
      delivery.stop();
    };
  }

  start(): void {
    for (const reflector of this.#reflectors) reflector.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.stop()));
    for (const delivery of this.#deliveries) delivery.stop();
  }

  get synced(): boolean {
    return this.#reflectors.every(({ synced }) => synced);
  }

  async whenSynced(): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.whenSynced()));
  }

  /** The present fault of a watch; undefined without one. */
  get fault(): string | undefined {
    return this.#reflectors.find(({ fault }) => fault !== undefined)?.fault;
  }

  /** Epoch milliseconds until which nothing was missed. */
  get lastProgress(): number {
    return Math.min(...this.#reflectors.map(({ lastProgress }) => lastProgress));
  }

  get(key: string): KubernetesObject | undefined {
    const all = this.#byNamespace.get(undefined);
    return (all ?? this.#byNamespace.get(key.slice(0, key.indexOf('/'))))?.get(key);
  }

  *objects(): Iterable<KubernetesObject> {
    for (const reflector of this.#reflectors) yield* reflector.objects();
  }
}
