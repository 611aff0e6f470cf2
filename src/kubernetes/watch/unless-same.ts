// A filter in front of a listener: it drops changes that the listener considers equal.

import type { KubernetesObject } from '../objects/resources.ts';
import type { ObjectChange } from './object-store.ts';

type Listener = (change: ObjectChange) => void;

/** Drops a change between equal states. After a relist they cannot be compared: states in between may be missed. */
export function unlessSame(
  isSame: (object: KubernetesObject, before: KubernetesObject) => boolean,
  listener: Listener,
): Listener {
  return (change) => {
    const { type, object, before, isFromRelist } = change;
    const isComparable = type === 'put' && before !== undefined && !isFromRelist;
    if (!isComparable || !isSame(object, before)) listener(change);
  };
}
