// Ports for servers that must be told theirs before they start.

import { createServer } from 'node:net';

/** Below the ports that the system hands out by itself; this many in a row are free just now. */
export async function freePort(count = 1): Promise<number> {
  const first = 20_000 + 2 * Math.floor(Math.random() * 6000);
  for (let i = 0; i < count; i++) {
    const probe = createServer();
    const taken = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(true));
      probe.listen(first + i, '127.0.0.1', () => resolve(false));
    });
    if (taken) return await freePort(count);
    await new Promise((resolve) => probe.close(resolve));
  }
  return first;
}
