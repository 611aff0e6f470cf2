// Writes the one log line of a request, by allow-list: a field that is not named here is not logged. Targets, headers
// and bodies are never logged.

import type { Logger } from 'pino';
import type { RequestFacts } from './endpoint.ts';

/** The fields of the line beside the facts of the handler. */
export interface FinishedRequest {
  /** The `X-Request-Id` of the answer. */
  readonly requestId: string;
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly durationMilliseconds: number;
  readonly facts: RequestFacts;
}

/**
 * Writes one line for each request; of successful token requests one in `oneTokenIn`, and of readiness probes, which
 * come every few seconds, the changes.
 */
export class RequestLog {
  readonly #log: Logger;
  readonly #oneTokenIn: number;
  #tokens = 0;
  /** The last result of a readiness probe. */
  #readiness: string | undefined;

  /**
   * @param dependencies.oneTokenIn 1 logs every successful token request, 100 every hundredth; refusals are always
   * logged
   */
  constructor(dependencies: { log: Logger; oneTokenIn: number }) {
    this.#log = dependencies.log;
    this.#oneTokenIn = dependencies.oneTokenIn;
  }

  write({ requestId, route, method, status, durationMilliseconds, facts }: FinishedRequest): void {
    if (route === 'token' && status === 200 && this.#tokens++ % this.#oneTokenIn !== 0) return;
    const { clientId, grantType, scope, outcome, reason, detail } = facts;
    const isReadiness = outcome === 'ready' || outcome === 'not_ready';
    if (isReadiness && !this.#hasChanged(`${outcome} ${reason}`)) return;
    this.#log[levelOf(status, isReadiness)]({
      requestId,
      route,
      method,
      status,
      durationMs: Math.round(durationMilliseconds * 10) / 10,
      clientId,
      grantType,
      scope,
      outcome,
      reason,
      detail,
    });
  }

  #hasChanged(readiness: string): boolean {
    const hasChanged = readiness !== this.#readiness;
    this.#readiness = readiness;
    return hasChanged;
  }
}

/** A probe that answers "not ready" has not failed; the cause has log lines of its own. */
function levelOf(status: number, isReadiness: boolean): 'error' | 'warn' | 'info' {
  if (status < 500) return 'info';
  return isReadiness ? 'warn' : 'error';
}
