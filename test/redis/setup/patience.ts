// For tests of what the stores answer, not of when: on a busy machine Redis, or this process, may stand still for longer than
// an action has in the product.

import type { ConnectionOptions, ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { newDeadline } from '../../../src/redis/link/deadline.ts';
import { connectTo, methodsOf } from './connect.ts';

/** By how much every deadline is later, and for how long a server may be silent; milliseconds. */
const PATIENCE = 10_000;

/** Connects as `connectTo` does. Not where Redis is made to fail: an action whose answer is lost may end only then. */
export async function connectPatiently(
  server: { readonly url: string },
  options: Omit<ConnectionOptions, 'target'> = {},
): Promise<ManagedConnection> {
  return patient(await connectTo(server, Object.assign({ socketTimeout: PATIENCE }, options)));
}

/** A connection whose actions have so much more time than those of the product. */
function patient(real: ManagedConnection): ManagedConnection {
  return Object.assign(methodsOf(real), {
    run: (action, deadline = newDeadline()) => real.run(action, deadline + PATIENCE),
    runDurably: (action, deadline = newDeadline()) => real.runDurably(action, deadline + PATIENCE),
  } satisfies Partial<ManagedConnection>);
}
