// The one log line of a request, by allow-list: what is not named here is not logged. Targets, headers and bodies never
// are.

import type { Logger } from 'pino';
import type { RequestFacts } from './endpoint.ts';

/** What the line says beside the facts of the handler. */
export interface FinishedRequest {
  /** Undefined where no request could be read. */
  readonly requestId: string | undefined;
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly durationMilliseconds: number;
  readonly facts: RequestFacts;
}

/**
 * Writes one line for each request; of the successful token requests one in so many, and of readiness, which is asked every
 * few seconds, what is new.
 */
export class RequestLog {
  readonly #log: Logger;
  readonly #oneTokenIn: number;
  #tokens = 0;
  /** The last answer about readiness. */
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
    const { clientId, grantType, scope, outcome, reason } = facts;
    const isReadiness = outcome === 'ready' || outcome === 'not_ready';
    if (isReadiness && !this.#isNews(`${outcome} ${reason}`)) return;
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
    });
  }

  #isNews(readiness: string): boolean {
    const isNews = readiness !== this.#readiness;
    this.#readiness = readiness;
    return isNews;
  }
}

/** Not to be ready is an answer; what led to it has lines of its own. */
function levelOf(status: number, isReadiness: boolean): 'error' | 'warn' | 'info' {
  if (status < 500) return 'info';
  return isReadiness ? 'warn' : 'error';
}
