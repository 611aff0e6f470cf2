// The two ports of a token server: listening on both, and finding a free one.

import { createServer, isIP } from 'node:net';
import { flagToGive, type Settings } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';
import { tryListen } from '../lifecycle/listen-on.ts';
import type { TokenServer } from './token-server.ts';

const FIRST_ADMIN_PORT = 9401;
const ADMIN_PORTS_TRIED = 100;

/**
 * Listens on the public port, the one for mutual TLS if there is one, and the admin port. Admin port 0: the first free one from 9401.
 * @returns the admin port
 * @throws StartError when a port is taken or the host is not of this machine
 */
export async function listen(server: TokenServer, { host, port, mtls, adminPort }: Settings): Promise<number> {
  if (!(await tryListen(server.public, host, port))) {
    throw new StartError(`port ${port} on ${host} is in use; choose another one with ${flagToGive('--port N')}`, 1);
  }
  if (server.mutualTls !== undefined && mtls?.listener !== undefined) {
    const { port: mtlsPort } = mtls.listener;
    if (!(await tryListen(server.mutualTls, host, mtlsPort))) {
      await server.public.close();
      throw new StartError(
        `port ${mtlsPort} on ${host} is in use; choose another one with ${flagToGive('--mtls-port N')}`,
        1,
      );
    }
  }
  const tried =
    adminPort === 0 ? range(FIRST_ADMIN_PORT, ADMIN_PORTS_TRIED).filter((tried) => tried !== port) : [adminPort];
  for (const candidate of tried) {
    if (!(await isFree(host, candidate))) continue;
    if (await tryListen(server.admin, host, candidate)) return candidate;
  }
  await server.public.close();
  await server.mutualTls?.close();
  throw new StartError(
    `admin port ${tried[0]} on ${host} is in use; choose another one with ${flagToGive('--admin-port N')}`,
    1,
  );
}

function isFree(host: string, port: number): Promise<boolean> {
  return probe(host, port).then((found) => found !== undefined);
}

/** A free port. @throws StartError when the host is not of this machine */
export async function freePort(host: string): Promise<number> {
  const port = await probe(host, 0);
  if (port === undefined) throw new StartError(`${host} is not an address of this machine`, 1);
  return port;
}

function probe(host: string, port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen({ host, port, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? address?.port : undefined));
    });
  });
}

function range(first: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => first + index).filter((port) => port <= 65_535);
}

/** Whether a server on `host` is reachable from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** The http address of a port. */
export function addressOf(host: string, port: number): string {
  return `http://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}
