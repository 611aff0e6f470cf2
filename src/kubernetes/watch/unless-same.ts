// Which changes are told: not those that leave an object what it is to whoever listens.

import type { KubernetesObject } from '../objects/resources.ts';
import type { ObjectChange } from './object-store.ts';

type Tell = (change: ObjectChange) => void;

/** Does not tell of an object that is to us what it was. After a gap that cannot be told from the two alone. */
export function unlessSame(isSame: (object: KubernetesObject, before: KubernetesObject) => boolean, tell: Tell): Tell {
  return (change) => {
    const { type, object, before, isFromRelist } = change;
    const isComparable = type === 'put' && before !== undefined && !isFromRelist;
    if (!isComparable || !isSame(object, before)) tell(change);
  };
}
