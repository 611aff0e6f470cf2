// A filter in front of a listener. It drops a change between two states that are the same to the listener.

import type { KubernetesObject } from '../objects/resources.ts';
import type { ObjectChange } from './object-store.ts';

type Listener = (change: ObjectChange) => void;

/**
 * Drops a change between two states that are the same. A change that may have skipped states is never dropped, because
 * the object may have differed in between.
 */
export function unlessSame(
  isSame: (object: KubernetesObject, before: KubernetesObject) => boolean,
  listener: Listener,
): Listener {
  return (change) => {
    const { type, object, before, mayHaveSkippedStates } = change;
    const isComparable = type === 'put' && before !== undefined && !mayHaveSkippedStates;
    if (!isComparable || !isSame(object, before)) listener(change);
  };
}
