// Listening on a port, and the errors of a start that cannot.

import type { FastifyInstance } from 'fastify';
import { StartError } from '../config/start-error.ts';

/** Listens on one port. @throws StartError, naming the variable, when it is taken or the host is not of this machine */
export async function listenOn(
  server: FastifyInstance,
  { host, port, variable }: { readonly host: string; readonly port: number; readonly variable: string },
): Promise<void> {
  if (await tryListen(server, host, port)) return;
  throw new StartError(`port ${port} on ${host} is in use; choose another one with ${variable}`, 1);
}

/** @returns false when the port is taken. @throws StartError when the host or the port cannot be used at all */
export async function tryListen(server: FastifyInstance, host: string, port: number): Promise<boolean> {
  try {
    await server.listen({ host, port });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') return false;
    if (code === 'EACCES') throw new StartError(`port ${port} on ${host} may not be used; choose one above 1023`, 1);
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
      throw new StartError(`${host} is not an address of this machine`, 1);
    }
    throw error;
  }
}
