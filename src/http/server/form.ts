// The strict parser of application/x-www-form-urlencoded, for form bodies and for queries, and the check of their media
// type. Pure: bytes in, parameters or a fault's slug out. The endpoint interprets the parameters.

import type { RawParameters } from '../../oauth/values/parameters.ts';

/** The largest form body and the largest query, in bytes. */
export const FORM_BYTE_LIMIT = 64 * 1024;

export const FORM_MEDIA_TYPE = 'application/x-www-form-urlencoded';

const PARAMETER_LIMIT = 100;

/** Why a form was refused; a reason of `invalid_request`. */
export type FormFault =
  | 'form_too_large'
  | 'too_many_parameters'
  | 'malformed_percent_encoding'
  | 'malformed_utf8'
  | 'nul_character'
  | 'byte_order_mark';

const MEDIA_TYPE = /^[ \t]*application\/x-www-form-urlencoded[ \t]*(?:;[ \t]*(?:charset=(?:utf-8|"utf-8")[ \t]*)?)*$/i;

/** Whether a `Content-Type` is form data in UTF-8 (RFC 9110 §8.3.1): no other charset and no other parameter. */
export function isFormMediaType(contentType: string | undefined): boolean {
  return contentType !== undefined && contentType.length <= 200 && MEDIA_TYPE.test(contentType);
}

/**
 * Parses a form body or a query without its `?` (WHATWG URL §5.1, made strict). Percent sequences are decoded once,
 * empty pieces between `&` are skipped, a name without `=` has the empty value. Duplicates are kept for the endpoint.
 */
export function parseForm(bytes: Uint8Array): RawParameters | FormFault {
  if (bytes.length > FORM_BYTE_LIMIT) return 'form_too_large';
  const text = decodeUtf8(bytes);
  if (text === undefined) return 'malformed_utf8';
  const parameters = new Map<string, string[]>();
  let count = 0;
  for (const piece of text.split('&')) {
    if (piece === '') continue;
    count += 1;
    if (count > PARAMETER_LIMIT) return 'too_many_parameters';
    const equals = piece.indexOf('=');
    const name = decodeComponent(equals < 0 ? piece : piece.slice(0, equals));
    const value = decodeComponent(equals < 0 ? '' : piece.slice(equals + 1));
    if (typeof name !== 'string') return name.fault;
    if (typeof value !== 'string') return value.fault;
    if (name.includes('\0') || value.includes('\0')) return 'nul_character';
    if (count === 1 && name.startsWith('\uFEFF')) return 'byte_order_mark';
    const values = parameters.get(name);
    if (values === undefined) parameters.set(name, [value]);
    else values.push(value);
  }
  return parameters;
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return undefined;
  }
}

function decodeComponent(encoded: string): string | { fault: FormFault } {
  const spaced = encoded.includes('+') ? encoded.replaceAll('+', ' ') : encoded;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return { fault: /%(?![0-9A-Fa-f]{2})/.test(spaced) ? 'malformed_percent_encoding' : 'malformed_utf8' };
  }
}
