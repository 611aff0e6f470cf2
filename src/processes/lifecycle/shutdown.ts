// Graceful shutdown: readiness fails at once, after the drain delay the servers accept no new connections, and requests
// in flight are finished.

import { setImmediate, setTimeout } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { describeFault } from '../../oauth/ports/fault.ts';
import { StartError } from '../config/start-error.ts';

const FINISH_SECONDS = 25;

/** Whether the process is shutting down; a readiness check reads it. */
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
  /** How long requests are still accepted after the signal, so that load balancers observe the failed readiness. */
  readonly drainDelaySeconds: number;
  /** The servers to close. */
  readonly servers: readonly FastifyInstance[];
  readonly log: Logger;
  /** Called once no request is left. */
  readonly afterwards?: () => Promise<void>;
  /** Called last: writes out the logs. Must not reject. */
  readonly flush: () => Promise<void>;
  readonly exit: (code: number) => void;
}

/**
 * Drains the servers: readiness fails at once, drain delay, no new connections, at most 25 s for requests in flight.
 * @returns 0, or 1 when requests had to be cut off
 */
export async function drain(options: Omit<ShutdownOptions, 'flush' | 'exit'>): Promise<0 | 1> {
  const { draining, drainDelaySeconds, servers, log, afterwards = async () => {} } = options;
  draining.begin();
  log.info({ drainDelaySeconds }, 'draining');
  await setTimeout(drainDelaySeconds * 1000);
  await arrivedRequests();
  const closed = Promise.all(servers.map((server) => server.close()))
    .then(afterwards)
    .then(() => true);
  const inTime = await Promise.race([closed, setTimeout(FINISH_SECONDS * 1000, false, { ref: false })]);
  if (!inTime) log.error('requests in flight were cut off');
  return inTime ? 0 : 1;
}

/**
 * Resolves when what has arrived is read. Where the process was held up, the timer of the delay comes first, and a closing
 * server takes a connection whose request is not read yet for an idle one, and cuts it off. One turn accepts connections,
 * the next one reads from them.
 */
async function arrivedRequests(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await setImmediate();
}

/** Ends the process on SIGTERM and SIGINT (a second one: at once), unhandled rejection and uncaught exception. */
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
 * The exit code that `run` returns; 1 for an internal error, which is logged. It is not rethrown: `exit` of
 * `endOnSignals` ends a `run` that still waits, and this one is over.
 * @throws StartError, whose message is for the user
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
