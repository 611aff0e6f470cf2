// Fastify with everything turned off that is nearly right: HEAD routes of its own making, leniently decoded paths,
// answers past the hooks, connections kept open by a closing server, bodies of any type (docs/scope.md, S5 and I3).

import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Connections } from './connections.ts';
import { JSON_MEDIA_TYPE } from './endpoint.ts';
import { FORM_BYTE_LIMIT, FORM_MEDIA_TYPE } from './form.ts';
import { routedTarget } from './raw-request.ts';

/** How long a peer may take, in milliseconds; one that is slower is answered 408. */
export interface HttpTimeouts {
  /** For the request line and headers. */
  readonly headers: number;
  /** For the whole request. */
  readonly request: number;
  /** How often the two are looked at. */
  readonly check: number;
  /** For a connection on which nothing moves in either direction. */
  readonly idle: number;
  /** Between two requests of one connection. */
  readonly keepAlive: number;
}

export const HTTP_TIMEOUTS: HttpTimeouts = {
  headers: 10_000,
  request: 20_000,
  check: 1_000,
  idle: 60_000,
  keepAlive: 72_000,
};

export interface StrictFastifyOptions {
  readonly timeouts: HttpTimeouts;
  readonly connections: Connections;
  /** Makes request ids; they tell nothing and are never taken from a request. */
  readonly newRequestId: () => string;
  /** Answers what Fastify refuses before any hook has run. */
  readonly refuse: (error: Error, request: FastifyRequest, reply: FastifyReply) => void;
  /** Whether the server is about to close. */
  readonly isDraining: () => boolean;
}

/** An instance without routes and hooks. It reads forms and JSON as bytes and nothing else. */
export function strictFastify(options: StrictFastifyOptions): FastifyInstance {
  const { timeouts, connections, newRequestId, refuse } = options;
  const server = fastify({
    exposeHeadRoutes: false,
    // No route has one. Fastify would load its compilers all the same, at each start.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    // While closing, what still comes on an open connection is served, not answered past the hooks.
    return503OnClosing: false,
    bodyLimit: FORM_BYTE_LIMIT,
    requestTimeout: timeouts.request,
    connectionTimeout: timeouts.idle,
    keepAliveTimeout: timeouts.keepAlive,
    http: {
      headersTimeout: timeouts.headers,
      connectionsCheckingInterval: timeouts.check,
      // Node would answer a missing Host by itself; `rejectAmbiguousHeaders` looks instead.
      requireHostHeader: false,
    },
    genReqId: newRequestId,
    rewriteUrl: (message) => routedTarget(message.url ?? ''),
    // A longer path parameter is for its handler to refuse: the router would do it past the hooks.
    routerOptions: { querystringParser: () => ({}), maxParamLength: 16_384 },
    clientErrorHandler: (error, socket) => connections.answer(error, socket),
    frameworkErrors: refuse,
  });
  // Node drops what is above its own number of headers; the size of them all is limited anyway.
  server.server.maxHeadersCount = 0;
  connections.follow(server.server);
  server.removeAllContentTypeParsers();
  // By its name, not for `*`: Fastify remembers which parser a named type has, and parses the type anew for `*`.
  server.addContentTypeParser(FORM_MEDIA_TYPE, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  // Only where an endpoint asks for it does such a body get this far; what it says is the endpoint's to read.
  server.addContentTypeParser(JSON_MEDIA_TYPE, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  endConnections(server, options.isDraining);
  return server;
}

function noSchemas(): never {
  throw new Error('a route has a schema, and nothing that compiles schemas is loaded');
}

/**
 * Closing waits for every connection that is not idle, so the last answer on one must also be its end. An idle one it cuts off,
 * perhaps while a request is on its way: so before it, what is asked on a connection is the last there.
 */
function endConnections(server: FastifyInstance, isDraining: () => boolean): void {
  let closing = false;
  server.addHook('preClose', (done) => {
    closing = true;
    done();
  });
  server.addHook('onSend', (_request, reply, payload, done) => {
    if (closing || isDraining()) reply.header('connection', 'close');
    done(null, payload);
  });
}
