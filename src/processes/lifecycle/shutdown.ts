// The end of a process: readiness goes red, new work is turned away after the drain delay, what is in flight is
// finished.

import { setTimeout } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { describeFault } from '../../oauth/ports/fault.ts';
import { StartError } from '../config/start-error.ts';

const FINISH_SECONDS = 25;

/** Whether the process is on its way out; a readiness check reads it. */
export class Draining {
  #begun = false;

  get begun(): boolean {
    return this.#begun;
  }

  begin(): void {
    this.#begun = true;
  }
}

export interface ShutdownOptions {
  readonly draining: Draining;
  /** How long requests are still taken after the signal, so that load balancers notice. */
  readonly drainDelaySeconds: number;
  /** Closed in this order. */
  readonly servers: readonly FastifyInstance[];
  readonly log: Logger;
  /** What is finished once no request is left. */
  readonly afterwards?: () => Promise<void>;
  /** The last thing done: writes out logs. Must not reject. */
  readonly flush: () => Promise<void>;
  readonly exit: (code: number) => void;
}

/**
 * Ends the servers in order: red at once, drain delay, no new connections, at most 25 s for requests in flight.
 * @returns 0, or 1 when requests had to be cut off
 */
export async function drain(options: Omit<ShutdownOptions, 'flush' | 'exit'>): Promise<0 | 1> {
  const { draining, drainDelaySeconds, servers, log, afterwards = async () => {} } = options;
  draining.begin();
  log.info({ drainDelaySeconds }, 'draining');
  await setTimeout(drainDelaySeconds * 1000);
  const closed = Promise.all(servers.map((server) => server.close()))
    .then(afterwards)
    .then(() => true);
  const inTime = await Promise.race([closed, setTimeout(FINISH_SECONDS * 1000, false, { ref: false })]);
  if (!inTime) log.error('requests in flight were cut off');
  return inTime ? 0 : 1;
}

/** Ends the process on SIGTERM and SIGINT (a second one ends it at once) and on an unhandled rejection or exception. */
export function endOnSignals(options: ShutdownOptions): void {
  const { draining, log, flush, exit } = options;
  function finish(code: number): void {
    void flush().then(() => exit(code));
  }
  function onSignal(): void {
    if (draining.begun) exit(1);
    else drain(options).then(finish, onFault);
  }
  function onFault(error: unknown): void {
    logFault(log, error);
    finish(1);
  }
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  process.on('unhandledRejection', onFault);
  process.on('uncaughtException', onFault);
}

/**
 * The code that `run` answers; 1 for a fault of ours, which is logged. Thrown on, it would end nothing: what `endOnSignals` tells
 * to exit is a `run` that is over.
 * @throws StartError, which is for a person
 */
export async function codeOf(run: () => Promise<number>, log: Logger): Promise<number> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof StartError) throw error;
    logFault(log, error);
    return 1;
  }
}

function logFault(log: Logger, error: unknown): void {
  log.fatal({ cause: describeFault(error) }, 'unhandled');
}
