// Judges a request before anything is routed or read: the target exactly as it was sent and the list of raw headers.
// Fastify decodes paths, joins repeated headers and routes what is nearly right; here nearly right is wrong.

import type { IncomingMessage } from 'node:http';
import { FORM_BYTE_LIMIT } from './form.ts';

/** A path that no endpoint has: where targets go that must not be routed. */
const NOWHERE = '/.nowhere';

/** The scheme and authority of an absolute-form target (RFC 9112 §3.2.2); both are ignored. */
const ABSOLUTE_FORM = /^https?:\/\/[^/?#]+/i;

/**
 * The path and query to route by. Paths are exact in case, slash and encoding: one with an escape is never ours, nor is
 * a target with a fragment. An absolute-form target is routed by its path, its authority ignored.
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

/** Headers of which two would let two readers see two requests. */
const SINGLE = new Set(['authorization', 'host', 'content-type', 'content-length', 'transfer-encoding', 'origin']);

/** Why the headers are refused; a reason of `invalid_request`. */
export type HeaderFault =
  | 'unsupported_http_version'
  | 'repeated_header'
  | 'missing_host'
  | 'malformed_host'
  | 'unknown_transfer_encoding';

/** A host and port by RFC 3986 §3.2, or nothing at all, as RFC 9112 §3.2 has it for targets without an authority. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?$/;

/** Judges the version and the header lines as they were sent (RFC 9112 §2.3, §3.2, §6.1; RFC 9110 §5.3). */
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
  // Node joins or drops what is repeated: with as many names as lines, nothing is.
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
