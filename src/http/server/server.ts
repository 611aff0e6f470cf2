// An HTTP server of grantry, public or admin: a list of endpoints behind the checks, headers, errors, log line and
// metrics they share. A request passes `admit`, then the handler that `addRoutes` registers.
// `processes/token-server/token-server.ts` wires the endpoints.

import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { MicroBatch } from '../../oauth/values/micro-batch.ts';
import type { TrustedProxies } from './client-address.ts';
import { Connections } from './connections.ts';
import { corsHeaders, preflightHeaders } from './cors.ts';
import type { Endpoint, Handler, RequestFacts } from './endpoint.ts';
import { EndpointTable } from './endpoint-table.ts';
import { ErrorWriter, type ErrorWriterOptions, type FaultCode } from './error-writer.ts';
import { TransportError } from './errors.ts';
import { admitPostedQuery, POSTED_QUERY_BYTE_LIMIT, postedParameters, redirectToGet } from './posted-query.ts';
import { pathOf } from './raw-request.ts';
import * as checks from './request-checks.ts';
import type { FinishedRequest, RequestLog } from './request-log.ts';
import { commonHeaders, PAGE_HEADERS } from './security-headers.ts';
import { type HttpTimeouts, strictFastify } from './strict-fastify.ts';
import type { TlsSettings } from './tls.ts';

export interface HttpServerOptions extends ErrorWriterOptions {
  /** With absolute paths. */
  readonly endpoints: readonly Endpoint[];
  readonly corsOrigins: () => ReadonlySet<string>;
  readonly proxies: TrustedProxies;
  readonly timeouts: HttpTimeouts;
  /** Undefined: plain HTTP. */
  readonly tls?: TlsSettings | undefined;
  readonly requestLog: RequestLog;
  /** Makes request ids: opaque, and never taken from a request. */
  readonly newRequestId: () => string;
  /** Whether this server is about to close: each connection then closes with its next answer. Default: never. */
  readonly isDraining?: () => boolean;
}

/** The context of a request. */
interface Visit {
  readonly endpoint: Endpoint | undefined;
  /** Of `performance.now()`, when the headers had been read. */
  readonly startedAt: number;
  readonly facts: RequestFacts;
  /**
   * Set by a handler once the client's address is verified: server faults redirect there instead of to an error page.
   */
  faultLocation: ((error: FaultCode) => string) | undefined;
  /** Set by a handler, for error pages: see {@link ErrorPageFacts.start}. */
  start: string | undefined;
}

/** One for the process: the headers of every request of a tick are read and checked before the first handler runs. */
const REQUEST_BATCH = new MicroBatch({ endOfTick: setImmediate });

declare module 'fastify' {
  interface FastifyRequest {
    visit: Visit;
  }
}

/** A server that is not listening yet. */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { issuer, metrics, requestLog, timeouts, tls, newRequestId, isDraining = () => false } = options;
  const errors = new ErrorWriter(options);
  const beginVisit = visits(options);
  const finished = (request: FinishedRequest) => {
    requestLog.write(request);
    metrics.requestFinished(request.route, request.method, request.status, request.durationMilliseconds / 1000);
  };
  const server = strictFastify({
    timeouts,
    tls,
    newRequestId,
    isDraining,
    connections: new Connections({ issuer, limits: timeouts, newRequestId, finished }),
    refuse: (error, request, reply) => {
      beginVisit(request, reply);
      errors.write(error, request, reply, request.visit.endpoint);
    },
  });
  server.decorateRequest('visit');
  server.addHook('onRequest', (request, reply, done) => {
    beginVisit(request, reply);
    try {
      if (admit(request, reply, options)) done();
    } catch (error) {
      done(error as Error);
    }
  });
  server.addHook('onResponse', (request, reply, done) => {
    const { endpoint, startedAt, facts } = request.visit;
    const durationMilliseconds = performance.now() - startedAt;
    const { id: requestId, method } = request;
    const route = endpoint?.route ?? 'unmatched';
    finished({ requestId, route, method, status: reply.statusCode, durationMilliseconds, facts });
    done();
  });
  server.setErrorHandler((error, request, reply) => errors.write(error, request, reply, request.visit.endpoint));
  server.setNotFoundHandler(() => {
    throw new TransportError('not_found');
  });
  addRoutes(server, options);
  return server;
}

/**
 * The first step of every request, before any check: finds its endpoint and sets the headers of every answer.
 */
function visits({ endpoints, issuer, corsOrigins }: HttpServerOptions) {
  const table = new EndpointTable(endpoints);
  const common = commonHeaders(issuer);
  const page = { ...common, ...PAGE_HEADERS };
  const form = { ...common, pragma: 'no-cache' };
  return (request: FastifyRequest, reply: FastifyReply): void => {
    const found = table.find(pathOf(request.url));
    const endpoint = found?.isForBrowsers && !checks.acceptsPage(request) ? undefined : found;
    reply.header('x-request-id', request.id);
    request.visit = { endpoint, startedAt: performance.now(), facts: {}, faultLocation: undefined, start: undefined };
    if (endpoint === undefined || endpoint.answers === 'html') reply.headers(page);
    else reply.headers(endpoint.handlers.POST ? form : common);
    if (endpoint) reply.headers(corsHeaders(endpoint, request.headers.origin, corsOrigins()));
  };
}

/** Checks a request by its headers. False for a preflight, which is answered here. */
function admit(request: FastifyRequest, reply: FastifyReply, options: HttpServerOptions): boolean {
  const { endpoint } = request.visit;
  checks.rejectAmbiguousHeaders(request, reply);
  if (request.method === 'OPTIONS' && endpoint !== undefined && endpoint.cors !== 'none') {
    const headers = preflightHeaders(endpoint, request.headers.origin, options.corsOrigins());
    reply
      .code(204)
      .headers({ allow: checks.allowedMethods(endpoint), ...headers })
      .send();
    return false;
  }
  if (request.method === 'POST' && endpoint?.isPostedQuery !== undefined) {
    admitPostedQuery(endpoint, request);
    return true;
  }
  checks.requireMethod(endpoint, request.method);
  if (request.method === 'POST') {
    if (endpoint.body === 'json') checks.requireJson(request);
    else if (endpoint.body !== 'form or none' || !checks.hasNoBody(request)) checks.requireForm(request);
    checks.rejectTooMuch(request);
  }
  return true;
}

function addRoutes(server: FastifyInstance, options: HttpServerOptions): void {
  for (const endpoint of options.endpoints.filter(({ answers }) => answers === 'json')) {
    addEndpoint(server, endpoint, options);
  }
  // Only pages have cookies.
  server.register(async (pages) => {
    await pages.register(cookie);
    for (const endpoint of options.endpoints.filter(({ answers }) => answers === 'html')) {
      addEndpoint(pages, endpoint, options);
    }
  });
}

function addEndpoint(server: FastifyInstance, endpoint: Endpoint, options: HttpServerOptions): void {
  const { GET, POST } = endpoint.handlers;
  const url = endpoint.path;
  if (GET) {
    const handler = exchangeWith(GET, checks.queryParameters, options);
    server.route({ method: endpoint.head ? ['GET', 'HEAD'] : 'GET', url, handler });
  }
  const { isPostedQuery } = endpoint;
  if (isPostedQuery) {
    const posted = { endpoint, isPostedQuery };
    const handler = exchangeWith(redirectToGet(posted), (request) => postedParameters(posted, request), options);
    server.route({ method: 'POST', url, bodyLimit: POSTED_QUERY_BYTE_LIMIT, handler });
  }
  if (POST) {
    const parametersOf = endpoint.body === 'json' ? checks.queryParameters : checks.formParameters;
    server.route({ method: 'POST', url, handler: exchangeWith(POST, parametersOf, options) });
  }
}

function exchangeWith(
  handler: Handler,
  parametersOf: typeof checks.queryParameters,
  { proxies }: HttpServerOptions,
): (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply> {
  return async (request, reply) => {
    await REQUEST_BATCH.join();
    const forwardedFor = request.headers['x-forwarded-for'];
    const address = proxies.clientAddress(
      request.socket.remoteAddress,
      Array.isArray(forwardedFor) ? forwardedFor.join(',') : forwardedFor,
    );
    const parameters = parametersOf(request);
    await handler({ request, reply, parameters, address, log: request.visit.facts });
    return reply;
  };
}
