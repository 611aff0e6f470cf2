// The cache of a reflector: the objects of one list, each in its latest observed state. It reports changes only. An
// object that was deleted and created again under the same name is reported as a deletion and a new object.

import { type KubernetesObject, objectKey } from '../objects/resources.ts';

export interface ObjectChange {
  readonly type: 'put' | 'delete';
  /** `<namespace>/<name>`, or `<name>` of a cluster-scoped object. */
  readonly key: string;
  /** For a deletion the last observed state. */
  readonly object: KubernetesObject;
  /** The previous state, of the same uid; absent for a new object and for a deletion. */
  readonly before?: KubernetesObject;
  /**
   * Set when the listener may have missed states between `before` and `object`: in a change from a relist, before which
   * the cluster may even have been restored, and in a redelivery (change-delivery.ts).
   */
  readonly mayHaveSkippedStates?: true;
}

/** How many objects `replace` handles before it yields to the event loop. */
const SLICE = 250;

export class ObjectStore {
  #objects = new Map<string, KubernetesObject>();
  readonly #prune: (object: KubernetesObject, key: string) => KubernetesObject;
  readonly #onChange: (change: ObjectChange) => void;

  /** @param options.onChange called for each change; must not throw */
  constructor(options: {
    readonly prune: (object: KubernetesObject, key: string) => KubernetesObject;
    readonly onChange: (change: ObjectChange) => void;
  }) {
    this.#prune = options.prune;
    this.#onChange = options.onChange;
  }

  get(key: string): KubernetesObject | undefined {
    return this.#objects.get(key);
  }

  objects(): Iterable<KubernetesObject> {
    return this.#objects.values();
  }

  /** The object as it will be stored; the stored one itself, if its version is the same. */
  pruned(key: string, object: KubernetesObject): KubernetesObject {
    const known = this.#objects.get(key);
    return known !== undefined && isSame(known, object) ? known : this.#prune(object, key);
  }

  put(object: KubernetesObject): void {
    const key = objectKey(object.metadata);
    this.#put(key, this.pruned(key, object));
  }

  /** Does nothing when an object with another uid has the name. */
  delete({ metadata }: KubernetesObject): void {
    const key = objectKey(metadata);
    const object = this.#objects.get(key);
    if (object?.metadata.uid === metadata.uid) this.#delete(key, object);
  }

  /**
   * Replaces the contents with these objects, pruned and by their keys. Deletions are reported first, so that the names
   * of deleted objects are free for the other objects. The method yields to the event loop in between; no other method
   * may change the store meanwhile.
   * @param signal stops the replacement half-way
   */
  async replace(
    objects: Map<string, KubernetesObject>,
    { yieldToEventLoop, signal }: { readonly yieldToEventLoop: () => Promise<unknown>; readonly signal: AbortSignal },
  ): Promise<void> {
    const isFirst = this.#objects.size === 0;
    const isGone = ([key, { metadata }]: [string, KubernetesObject]) => objects.get(key)?.metadata.uid !== metadata.uid;
    const gone = [...this.#objects].filter(isGone);
    const putFirst = (key: string, object: KubernetesObject) => this.#onChange({ type: 'put', key, object });
    // The first list needs no copy: it becomes the store.
    if (isFirst) this.#objects = objects;
    let done = 0;
    for (const [list, take] of [
      [gone, this.#delete.bind(this)],
      [objects, isFirst ? putFirst : this.#putListed.bind(this)],
    ] as const) {
      for (const [key, object] of list) {
        if (++done % SLICE === 0) await yieldToEventLoop();
        if (signal.aborted) return;
        take(key, object);
      }
    }
  }

  #delete(key: string, object: KubernetesObject): void {
    this.#objects.delete(key);
    this.#onChange({ type: 'delete', key, object });
  }

  #putListed(key: string, object: KubernetesObject): void {
    this.#put(key, object, { mayHaveSkippedStates: true });
  }

  #put(key: string, object: KubernetesObject, origin: Pick<ObjectChange, 'mayHaveSkippedStates'> = {}): void {
    const before = this.#objects.get(key);
    if (before === undefined || before.metadata.uid !== object.metadata.uid) {
      if (before !== undefined) this.#delete(key, before);
      this.#objects.set(key, object);
      this.#onChange({ type: 'put', key, object });
    } else if (!isSame(before, object)) {
      this.#objects.set(key, object);
      this.#onChange({ type: 'put', key, object, before, ...origin });
    }
  }
}

function isSame({ metadata: one }: KubernetesObject, { metadata: other }: KubernetesObject): boolean {
  return one.uid === other.uid && one.resourceVersion === other.resourceVersion;
}

const OWN_ANNOTATION = 'grantry.dev/';

/** Without managedFields and foreign annotations, which can be larger than the rest of the object. */
export function withoutBallast(object: KubernetesObject): KubernetesObject {
  const {
    managedFields: _,
    annotations,
    ...metadata
  } = object.metadata as KubernetesObject['metadata'] & {
    readonly managedFields?: unknown;
  };
  const own = Object.entries(annotations ?? {}).filter(([name]) => name.startsWith(OWN_ANNOTATION));
  if (own.length === 0) return { ...object, metadata };
  return { ...object, metadata: { ...metadata, annotations: Object.fromEntries(own) } };
}
