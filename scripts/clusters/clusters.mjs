// Which cluster `scripts/cluster` is on this machine.

import { oneNode } from '../one-node/node.mjs';
import { kind } from './kind.mjs';

/**
 * kind's where kind is installed, else one of our own; but one of our own that is up stays the one that is meant. Answers
 * `{ cluster }`, or `{ whyNot }`: a sentence that names what is missing.
 */
export function chooseCluster() {
  const [notKind, notOwn] = [kind.whyNot(), oneNode.whyNot()];
  const isOwn = notOwn === undefined && (notKind !== undefined || oneNode.isWanted());
  if (isOwn) return { cluster: oneNode };
  return notKind === undefined ? { cluster: kind } : { whyNot: `${notKind}, and ${notOwn}` };
}
