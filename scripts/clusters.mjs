// Which cluster `scripts/cluster` is on this machine.

import { kind } from './kind.mjs';
import { oneNode } from './one-node/node.mjs';

/**
 * kind's where kind is installed, else one of our own; but one of our own that is up stays the one that is meant. Answers
 * `{ cluster }`, or `{ whyNot }`: a sentence that names what is missing.
 */
export function chooseCluster() {
  if (!oneNode.exists() && kind.whyNot() === undefined) return { cluster: kind };
  const why = oneNode.whyNot();
  return why === undefined ? { cluster: oneNode } : { whyNot: `${kind.whyNot()}, and ${why}` };
}
