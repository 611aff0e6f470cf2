// Checks a request before it is routed and its body is read: the target exactly as sent, and the raw headers.
// Fastify decodes paths, joins repeated headers and tolerates near matches; these checks do not.

import type { IncomingMessage } from 'node:http';
import { FORM_BYTE_LIMIT } from './form.ts';

/** A path without an endpoint, for targets that must not be routed. */
const NOWHERE = '/.nowhere';

/** The scheme and authority of an absolute-form target (RFC 9112 §3.2.2); both are ignored. */
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]+/i;

/**
 * The path and query to route by. Paths are exact in case, slash and encoding: no endpoint matches a path with an
 * escape or a target with a fragment. An absolute-form target is routed by its path, its authority ignored.
 */
export function routedTarget(target: string): string {
  const local = target.startsWith('/') ? target : target.replace(ABSOLUTE_FORM, '');
  const path = pathOf(local);
  if (!path.startsWith('/') || path.includes('%') || local.includes('#')) return NOWHERE;
  return local;
}

/** The path of a target, without its query. */
export function pathOf(target: string): string {
  const question = target.indexOf('?');
  return question < 0 ? target : target.slice(0, question);
}

/** The bytes of a target's query, without the `?`; undefined when there is none. */
export function queryOf(target: string): Uint8Array | undefined {
  const question = target.indexOf('?');
  // Node hands the target over as latin1: one character for each byte.
  return question < 0 ? undefined : Buffer.from(target.slice(question + 1), 'latin1');
}

/** Headers that two parsers would read differently if repeated. */
const SINGLE = new Set(['authorization', 'host', 'content-type', 'content-length', 'transfer-encoding', 'origin']);

/** Why the headers are refused; a reason of `invalid_request`. */
export type HeaderFault =
  | 'unsupported_http_version'
  | 'repeated_header'
  | 'missing_host'
  | 'malformed_host'
  | 'unknown_transfer_encoding';

/** A host and port by RFC 3986 §3.2, or nothing at all, as RFC 9112 §3.2 demands for targets without an authority. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?$/;

/** Checks the version and the header lines as they were sent (RFC 9112 §2.3, §3.2, §6.1; RFC 9110 §5.3). */
export function headerFault(message: IncomingMessage): HeaderFault | undefined {
  // The parser lets 0.9 and 2.0 through and answers them as if they were 1.1.
  if (message.httpVersion !== '1.1' && message.httpVersion !== '1.0') return 'unsupported_http_version';
  if (hasRepeatedHeader(message)) return 'repeated_header';
  const { host } = message.headers;
  if (host === undefined && message.httpVersion !== '1.0') return 'missing_host';
  if (host !== undefined && !HOST.test(host)) return 'malformed_host';
  const transferEncoding = message.headers['transfer-encoding'];
  if (transferEncoding !== undefined && transferEncoding.trim().toLowerCase() !== 'chunked') {
    return 'unknown_transfer_encoding';
  }
  return undefined;
}

function hasRepeatedHeader({ rawHeaders, headers }: IncomingMessage): boolean {
  // Node joins or drops repeated headers: with as many names as lines, none is repeated.
  if (2 * Object.keys(headers).length === rawHeaders.length) return false;
  const seen = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? '').toLowerCase();
    if (!SINGLE.has(name)) continue;
    if (seen.has(name)) return true;
    seen.add(name);
  }
  return false;
}

/** Whether the announced body is larger than any form may be; a body without a length is measured while it is read. */
export function announcesTooMuch(message: IncomingMessage): boolean {
  return Number(message.headers['content-length'] ?? 0) > FORM_BYTE_LIMIT;
}
