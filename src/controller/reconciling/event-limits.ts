// Rate limits for Events: per object, per namespace, and for all together. A namespace may use only part of the total,
// so that thousands of objects in one namespace do not suppress the Events of another.

import { TokenBucket } from '../../kubernetes/api/token-bucket.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';

type Rate = ConstructorParameters<typeof TokenBucket>[0];

const OF_ALL: Rate = { perSecond: 10, burst: 50 };
const OF_NAMESPACE: Rate = { perSecond: 2, burst: 20 };
const OF_OBJECT: Rate = { perSecond: 1 / 60, burst: 10 };
const REMEMBERED = 4096;

export class EventLimits {
  readonly #all = new TokenBucket(OF_ALL);
  readonly #namespaces = new Map<string, TokenBucket>();
  readonly #objects = new Map<string, TokenBucket>();

  /** Whether one more may be written about this object now; counts it if so. */
  tryTake({ metadata: { uid, namespace = '' } }: KubernetesObject): boolean {
    // An Event over the limit of its object or namespace does not count against the larger limits.
    return (
      bucketOf(this.#objects, uid, OF_OBJECT).tryTake() &&
      bucketOf(this.#namespaces, namespace, OF_NAMESPACE).tryTake() &&
      this.#all.tryTake()
    );
  }
}

/** The bucket of a key; a full one for a key that is new or was evicted. */
function bucketOf(buckets: Map<string, TokenBucket>, key: string, rate: Rate): TokenBucket {
  const bucket = buckets.get(key) ?? new TokenBucket(rate);
  // Moved to the end: the least recently used one is evicted first.
  buckets.delete(key);
  buckets.set(key, bucket);
  for (const oldest of buckets.keys()) {
    if (buckets.size <= REMEMBERED) break;
    buckets.delete(oldest);
  }
  return bucket;
}
