// What a reflector knows: the objects of one list, each at its latest known state. Tells only of what changed; an object
// that was made anew under the same name is a deletion and a new object.

import { type KubernetesObject, objectKey } from '../objects/resources.ts';

export interface ObjectChange {
  readonly type: 'put' | 'delete';
  /** `<namespace>/<name>`, or `<name>` of a cluster-scoped object. */
  readonly key: string;
  /** For a deletion as it was last known. */
  readonly object: KubernetesObject;
  /** What it was before, of the same uid; absent for a new one and for a deletion. */
  readonly before?: KubernetesObject;
  /** Not told as it happened: between the two there may be anything, also a cluster that came back from a backup. */
  readonly isFromRelist?: true;
}

/** How many objects are taken over before others get their turn. */
const SLICE = 250;

export class ObjectStore {
  #objects = new Map<string, KubernetesObject>();
  readonly #prune: (object: KubernetesObject, key: string) => KubernetesObject;
  readonly #tell: (change: ObjectChange) => void;

  /** @param tell must not throw */
  constructor(options: {
    readonly prune: (object: KubernetesObject, key: string) => KubernetesObject;
    readonly tell: (change: ObjectChange) => void;
  }) {
    this.#prune = options.prune;
    this.#tell = options.tell;
  }

  get(key: string): KubernetesObject | undefined {
    return this.#objects.get(key);
  }

  objects(): Iterable<KubernetesObject> {
    return this.#objects.values();
  }

  /** The object as it will be kept: the very one that is already here, if it is the same. */
  pruned(key: string, object: KubernetesObject): KubernetesObject {
    const known = this.#objects.get(key);
    return known !== undefined && isSame(known, object) ? known : this.#prune(object, key);
  }

  put(object: KubernetesObject): void {
    const key = objectKey(object.metadata);
    this.#put(key, this.pruned(key, object));
  }

  /** Does nothing when another object than this has the name by now. */
  delete({ metadata }: KubernetesObject): void {
    const key = objectKey(metadata);
    const object = this.#objects.get(key);
    if (object?.metadata.uid === metadata.uid) this.#delete(key, object);
  }

  /**
   * Makes these objects, pruned ones by their keys, all there is. Deletions come first, so that what they held is free for
   * the others. Others get their turn in between; nothing else may change the store meanwhile.
   * @param options.signal ends it half-way
   */
  async replace(
    objects: Map<string, KubernetesObject>,
    { nextTurn, signal }: { readonly nextTurn: () => Promise<unknown>; readonly signal: AbortSignal },
  ): Promise<void> {
    const isFirst = this.#objects.size === 0;
    const isGone = ([key, { metadata }]: [string, KubernetesObject]) => objects.get(key)?.metadata.uid !== metadata.uid;
    const gone = [...this.#objects].filter(isGone);
    const putFirst = (key: string, object: KubernetesObject) => this.#tell({ type: 'put', key, object });
    // A first list need not be copied: it is the store.
    if (isFirst) this.#objects = objects;
    let done = 0;
    for (const [list, take] of [
      [gone, this.#delete.bind(this)],
      [objects, isFirst ? putFirst : this.#putListed.bind(this)],
    ] as const) {
      for (const [key, object] of list) {
        if (++done % SLICE === 0) await nextTurn();
        if (signal.aborted) return;
        take(key, object);
      }
    }
  }

  #delete(key: string, object: KubernetesObject): void {
    this.#objects.delete(key);
    this.#tell({ type: 'delete', key, object });
  }

  #putListed(key: string, object: KubernetesObject): void {
    this.#put(key, object, { isFromRelist: true });
  }

  #put(key: string, object: KubernetesObject, gap: Pick<ObjectChange, 'isFromRelist'> = {}): void {
    const before = this.#objects.get(key);
    if (before === undefined || before.metadata.uid !== object.metadata.uid) {
      if (before !== undefined) this.#delete(key, before);
      this.#objects.set(key, object);
      this.#tell({ type: 'put', key, object });
    } else if (!isSame(before, object)) {
      this.#objects.set(key, object);
      this.#tell({ type: 'put', key, object, before, ...gap });
    }
  }
}

function isSame({ metadata: one }: KubernetesObject, { metadata: other }: KubernetesObject): boolean {
  return one.uid === other.uid && one.resourceVersion === other.resourceVersion;
}

const OWN_ANNOTATION = 'grantry.dev/';

/** Without managedFields and the annotations of others, which can be larger than all the rest. */
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
