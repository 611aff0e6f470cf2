// Ports for servers that need theirs before they start.

import { createSocket, type Socket } from 'node:dgram';
import { createServer } from 'node:net';
import { afterEachFile } from './isolation/file-hooks.ts';

const claims = new Set<Socket>();
afterEachFile(() => {
  for (const claim of claims) claim.close();
  claims.clear();
});

/**
 * Below the ports that the system hands out by itself: this many in a row are free just now, and until the end
 * of the file of tests no other caller gets them here.
 */
export async function freePort(count = 1): Promise<number> {
  const first = 20_000 + 2 * Math.floor(Math.random() * 6000);
  for (let port = first; port < first + count; port++) {
    if (!(await isClaimed(port)) || !(await isFree(port))) return await freePort(count);
  }
  return first;
}

/** By a port of UDP of the same number, which no server of ours wants, and which is given up with the file, or the process. */
function isClaimed(port: number): Promise<boolean> {
  const claim = createSocket('udp4').unref();
  return new Promise((resolve) => {
    claim.once('error', () => resolve(false));
    claim.bind({ port, address: '127.0.0.1', exclusive: true }, () => {
      claims.add(claim);
      resolve(true);
    });
  });
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  const isFree = await new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => resolve(true));
  });
  if (isFree) await new Promise((resolve) => probe.close(resolve));
  return isFree;
}
