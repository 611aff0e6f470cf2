// Fastify without its lenient defaults: automatic HEAD routes, leniently decoded paths, answers that bypass the hooks,
// connections kept open by a closing server, bodies of any type (docs/scope.md, S5 and I3).

import type { RequestListener, Server, ServerOptions } from 'node:http';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { ConnectionLimits } from './connection.ts';
import type { Connections } from './connections.ts';
import { JSON_MEDIA_TYPE } from './endpoint.ts';
import { FORM_BYTE_LIMIT, FORM_MEDIA_TYPE } from './form.ts';
import { routedTarget } from './raw-request.ts';
import type { TlsSettings } from './tls.ts';

/** How long a peer may take, in milliseconds; one whose request is slower is answered 408. */
export interface HttpTimeouts extends ConnectionLimits {
  /** For the request line and headers, and for the handshake of TLS. */
  readonly headers: number;
  /** The interval of the check of `headers` and `request`. */
  readonly check: number;
}

export const HTTP_TIMEOUTS: HttpTimeouts = {
  headers: 10_000,
  request: 20_000,
  check: 1_000,
  answer: 60_000,
  keepAlive: 72_000,
};

export interface StrictFastifyOptions {
  readonly timeouts: HttpTimeouts;
  readonly connections: Connections;
  /** Makes request ids: opaque, and never taken from a request. */
  readonly newRequestId: () => string;
  /** Answers what Fastify refuses before any hook has run. */
  readonly refuse: (error: Error, request: FastifyRequest, reply: FastifyReply) => void;
  /** Whether the server is about to close. */
  readonly isDraining: () => boolean;
  /** Undefined: plain HTTP. */
  readonly tls: TlsSettings | undefined;
}

/** An instance without routes and hooks. It reads forms and JSON as bytes and nothing else. */
export function strictFastify(options: StrictFastifyOptions): FastifyInstance {
  const { connections, newRequestId, refuse } = options;
  const server = fastify({
    exposeHeadRoutes: false,
    // No route has a schema. Fastify would load its compilers anyway, at each start.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    // While closing, requests on open connections are still served, not answered by a 503 that bypasses the hooks.
    return503OnClosing: false,
    bodyLimit: FORM_BYTE_LIMIT,
    serverFactory: (handle) => httpServer(handle as RequestListener, options),
    genReqId: newRequestId,
    rewriteUrl: (message) => routedTarget(message.url ?? ''),
    // The handler refuses long path parameters: a refusal by the router would bypass the hooks.
    routerOptions: { querystringParser: () => ({}), maxParamLength: 16_384 },
    clientErrorHandler: (error, socket) => connections.answer(error, socket),
    frameworkErrors: refuse,
  });
  server.removeAllContentTypeParsers();
  // By name, not `*`: Fastify caches the parser of a named type, and parses the media type each time for `*`.
  server.addContentTypeParser(FORM_MEDIA_TYPE, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  // Only bodies for endpoints with `body: 'json'` get this far; the endpoint parses them.
  server.addContentTypeParser(JSON_MEDIA_TYPE, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  endConnections(server, options.isDraining);
  return server;
}

function httpServer(handle: RequestListener, { timeouts, tls, connections }: StrictFastifyOptions): Server {
  const limits: ServerOptions = {
    headersTimeout: timeouts.headers,
    requestTimeout: timeouts.request,
    connectionsCheckingInterval: timeouts.check,
    keepAliveTimeout: timeouts.keepAlive,
    // Node would answer a missing Host itself; `rejectAmbiguousHeaders` checks it instead.
    requireHostHeader: false,
  };
  const server =
    tls === undefined
      ? process.getBuiltinModule('node:http').createServer(limits)
      : process.getBuiltinModule('node:https').createServer({ ...limits, ...tls, handshakeTimeout: timeouts.headers });
  // Node drops headers above its own maximum count; their total size is limited anyway.
  server.maxHeadersCount = 0;
  connections.follow(server, tls === undefined ? 'connection' : 'secureConnection', handle);
  return server;
}

function noSchemas(): never {
  throw new Error('a route has a schema, and nothing that compiles schemas is loaded');
}

/**
 * A closing server waits for every connection that is not idle, so the last answer on one must also close it. It cuts
 * off idle ones, perhaps while a request is on its way: so a draining server closes each connection with its next
 * answer.
 */
function endConnections(server: FastifyInstance, isDraining: () => boolean): void {
  let closing = false;
  server.addHook('preClose', (done) => {
    closing = true;
    done();
  });
  server.addHook('onSend', (_request, reply, payload, done) => {
    if (closing || isDraining()) reply.raw.shouldKeepAlive = false;
    done(null, payload);
  });
}
