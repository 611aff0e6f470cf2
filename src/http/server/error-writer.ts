// The only writer of error answers. Handlers and checks throw; the table in `errors.ts` maps the error; this file sends
// it as JSON or as a page, adds it to the log line and counts it. `connections.ts` answers connections without a
// readable request.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { OAuthError, StoreUnavailableError } from '../../oauth/ports/error.ts';
import { describeFault } from '../../oauth/ports/fault.ts';
import { AccessRefused } from '../../oauth/resource/access-refused.ts';
import { issuerPath } from '../../oauth/values/issuer.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { type Brand, OWN_BRAND } from '../pages/brand.ts';
import { errorPage } from '../pages/error-page.ts';
import { type PageSite, pageFrame } from '../pages/page-frame.ts';
import type { Endpoint } from './endpoint.ts';
import { describeError, type ErrorAnswer, errorBody } from './errors.ts';
import { acceptsPage } from './request-checks.ts';
import { PAGE_HEADERS } from './security-headers.ts';

/** The error codes that report a server fault to the client by redirect (RFC 6749 §4.1.2.1). */
export type FaultCode = 'server_error' | 'temporarily_unavailable';

/** The metrics of requests; the last two only where token requests are answered. */
export type RequestMetrics = Pick<Metrics, 'requestFinished'> & Partial<Pick<Metrics, 'rateLimited' | 'tokenErrors'>>;

/**
 * The routes whose errors are counted here; `authorize` itself counts those it sends by redirect (RFC 6749 §4.1.2.1).
 */
const PROTOCOL_ENDPOINTS: ReadonlySet<string> = new Set(['authorize', 'token', 'revoke', 'introspect', 'userinfo']);

export interface ErrorWriterOptions {
  readonly issuer: string;
  readonly log: Logger;
  readonly metrics: RequestMetrics;
  /** Of the pages. Default: that of grantry. */
  readonly brand?: Brand | undefined;
}

export class ErrorWriter {
  readonly #options: ErrorWriterOptions;
  readonly #site: PageSite;

  constructor(options: ErrorWriterOptions) {
    this.#options = options;
    this.#site = { basePath: issuerPath(options.issuer), brand: options.brand ?? OWN_BRAND };
  }

  /** Sends the answer to an error; `endpoint` is undefined where none has this path. */
  write(error: unknown, request: FastifyRequest, reply: FastifyReply, endpoint: Endpoint | undefined): void {
    const answer = describeError(error, this.#options.issuer, endpoint?.challenge);
    this.#note(error, answer, request, endpoint);
    const fault = faultCode(answer);
    if (fault !== undefined && request.visit.faultLocation !== undefined) {
      reply.redirect(request.visit.faultLocation(fault), 302);
      return;
    }
    // The handler may have set other values for a successful answer.
    reply.headers({ 'cache-control': 'no-store', ...answer.headers });
    if (answer.error === undefined) reply.code(answer.status).send();
    else if (formatOf(endpoint, request) === 'html') this.#sendPage(reply, answer);
    else reply.code(answer.status).type('application/json; charset=utf-8').send(errorBody(answer));
  }

  /** A person cannot answer an authentication challenge: 401 becomes 400 on a page. */
  #sendPage(reply: FastifyReply, answer: ErrorAnswer): void {
    const { reason } = answer;
    const { id: requestId, headers, visit } = reply.request;
    const status = answer.status === 401 ? 400 : answer.status;
    reply
      .removeHeader('www-authenticate')
      .code(status)
      .headers(PAGE_HEADERS)
      .type('text/html; charset=utf-8')
      .send(errorPage({ frame: pageFrame(this.#site, headers), status, reason, requestId, start: visit.start }));
  }

  #note(error: unknown, answer: ErrorAnswer, request: FastifyRequest, endpoint: Endpoint | undefined): void {
    const { metrics, log } = this.#options;
    const { facts } = request.visit;
    facts.outcome = 'refused';
    facts.reason = answer.reason;
    if (error instanceof OAuthError || error instanceof AccessRefused) {
      if (error.clientId !== undefined) facts.clientId = error.clientId;
    }
    if (error instanceof OAuthError && error.detail !== undefined) facts.detail = error.detail;
    if (answer.status === 429) metrics.rateLimited?.inc({ limit: answer.reason });
    if (error instanceof StoreUnavailableError) {
      const { operation, reason } = error;
      log.warn({ requestId: request.id, operation, reason, cause: describeFault(error) }, 'store unavailable');
    }
    if (answer.reason === 'unexpected') {
      log.error({ requestId: request.id, route: endpoint?.route, cause: describeFault(error) }, 'unexpected error');
    }
    if (endpoint !== undefined && PROTOCOL_ENDPOINTS.has(endpoint.route)) {
      metrics.tokenErrors?.inc({ endpoint: endpoint.route, error: answer.error ?? 'none', reason: answer.reason });
    }
  }
}

/** The format of an endpoint, whatever the client accepts; for an unknown path a browser gets a page. */
function formatOf(endpoint: Endpoint | undefined, request: FastifyRequest): 'json' | 'html' {
  if (endpoint !== undefined) return endpoint.answers;
  return acceptsPage(request) ? 'html' : 'json';
}

function faultCode({ status }: ErrorAnswer): FaultCode | undefined {
  if (status < 500) return undefined;
  return status === 503 ? 'temporarily_unavailable' : 'server_error';
}
