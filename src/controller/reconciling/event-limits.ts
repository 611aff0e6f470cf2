// How many Events may be written: about one object, in one namespace, and of all together. Of what there is for all a namespace
// may use a part and no more, so that who applies thousands of objects silences nobody else.

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
    // What is too much of a little counts for nothing larger.
    return (
      bucketOf(this.#objects, uid, OF_OBJECT).tryTake() &&
      bucketOf(this.#namespaces, namespace, OF_NAMESPACE).tryTake() &&
      this.#all.tryTake()
    );
  }
}

/** Who was not seen for long begins anew. */
function bucketOf(buckets: Map<string, TokenBucket>, key: string, rate: Rate): TokenBucket {
  const bucket = buckets.get(key) ?? new TokenBucket(rate);
  // The youngest last: the oldest is forgotten first.
  buckets.delete(key);
  buckets.set(key, bucket);
  for (const oldest of buckets.keys()) {
    if (buckets.size <= REMEMBERED) break;
    buckets.delete(oldest);
  }
  return bucket;
}
