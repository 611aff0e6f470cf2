// Cross-origin access (Fetch §3.2) for the JSON endpoints: never with credentials, never on /authorize and pages.
// A preflight names no client, so the registered origins are those of all clients together.

import type { Endpoint } from './endpoint.ts';

const EXPOSED = 'WWW-Authenticate, DPoP-Nonce, Retry-After, X-Request-Id';
/** The last three are those of W3C Trace Context and Baggage, which tracing in a page adds to each of its requests. */
const REQUEST_HEADERS = 'Authorization, Content-Type, DPoP, traceparent, tracestate, baggage';

/** The CORS headers of every answer of an endpoint, errors included. */
export function corsHeaders(
  endpoint: Endpoint,
  origin: string | undefined,
  registered: ReadonlySet<string>,
): Readonly<Record<string, string>> {
  if (endpoint.cors === 'any') {
    return { 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED };
  }
  if (endpoint.cors === 'none') return {};
  if (origin === undefined || !registered.has(origin)) return { vary: 'Origin' };
  return { vary: 'Origin', 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED };
}

/** The headers that a preflight adds to {@link corsHeaders}; none for an origin that is not allowed. */
export function preflightHeaders(
  endpoint: Endpoint,
  origin: string | undefined,
  registered: ReadonlySet<string>,
): Readonly<Record<string, string>> {
  const allowed = endpoint.cors === 'any' || (origin !== undefined && registered.has(origin));
  if (!allowed) return {};
  return {
    'access-control-allow-methods': Object.keys(endpoint.handlers).join(', '),
    'access-control-allow-headers': REQUEST_HEADERS,
    'access-control-max-age': '600',
  };
}
