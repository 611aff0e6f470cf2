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

/** Writes one line for each request; of the successful token requests one in so many. */
export class RequestLog {
  readonly #log: Logger;
  readonly #oneTokenIn: number;
  #tokens = 0;

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
    this.#log[status >= 500 ? 'error' : 'info']({
      ...{ requestId, route, method, status },
      durationMs: Math.round(durationMilliseconds * 10) / 10,
      ...{ clientId, grantType, scope, outcome, reason },
    });
  }
}
