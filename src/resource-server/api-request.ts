// The parts of a request that decide about access, of Fetch's Request and of a request of node:http, Express or Fastify alike.

import { mayHoldToken, type RequestParts } from '../oauth/resource/credentials.ts';
import { readTarget } from '../oauth/resource/request-target.ts';

/** A request of node:http, and what Connect and Express add to it. */
export interface NodeRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** The whole target, where a router has cut `url`. */
  readonly originalUrl?: string | undefined;
  readonly rawHeaders: readonly string[];
  /** The form, where a body parser has read it: text, bytes, or its parameters by name. */
  readonly body?: unknown;
  readonly socket?: unknown;
}

/** What a verifier verifies. */
export type ApiRequest = Request | NodeRequest;

/** The parts of a request, and what DPoP needs beside them. */
export interface ReadRequest extends RequestParts {
  readonly path: string;
  /** Each DPoP header. */
  readonly proofs: readonly string[];
}

const FORM_BYTES_MAX = 64 * 1024;
/** No token has such a value: it makes the request a malformed one. */
const MALFORMED = '';

/**
 * Reads a request. The body of a Fetch request is read from a clone, and only where it may hold a token.
 * @param form the form of a node:http request; default: its `body`
 * @throws TypeError where tokens in forms are allowed and no body parser has read the form
 */
export async function readRequest(
  request: ApiRequest,
  { formBody, form }: { readonly formBody: boolean; readonly form: unknown },
): Promise<ReadRequest> {
  const isNode = 'rawHeaders' in request;
  const values = isNode ? rawValues(request.rawHeaders) : fetchValues(request.headers);
  const { path, query } = readTarget(isNode ? (request.originalUrl ?? request.url ?? '/') : request.url);
  const method = request.method ?? 'GET';
  const [contentType] = values('content-type');
  const parts = { method, contentType, authorization: values('authorization'), proofs: values('dpop'), path, query };
  if (!formBody || !mayHoldToken(parts)) return { ...parts, formTokens: undefined };
  if (!isNode) return { ...parts, formTokens: await tokensOf(request) };
  const hasBody = values('transfer-encoding').length > 0 || values('content-length').some((length) => length !== '0');
  const formTokens = tokensIn(form ?? request.body ?? (hasBody ? undefined : ''));
  return { ...parts, formTokens };
}

type HeaderValues = (name: string) => readonly string[];

/** By `rawHeaders`, as Node drops a second Authorization header elsewhere. */
function rawValues(rawHeaders: readonly string[]): HeaderValues {
  return (name) => rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}

/** Fetch has joined doubled headers by commas, which neither a token nor a proof holds. */
function fetchValues(headers: Headers): HeaderValues {
  return (name) => {
    const value = headers.get(name);
    return value === null ? [] : [value];
  };
}

function tokensIn(form: unknown): readonly string[] {
  if (form === undefined || form === null) {
    throw new TypeError('formBody needs the form of the request: use a body parser, or pass it as `form`');
  }
  if (typeof form === 'string') return new URLSearchParams(form).getAll('access_token');
  if (form instanceof URLSearchParams) return form.getAll('access_token');
  if (form instanceof Uint8Array) return tokensIn(new TextDecoder().decode(form));
  const value: unknown = Object.entries(form).find(([name]) => name === 'access_token')?.[1];
  if (value === undefined) return [];
  return [value].flat().map((each: unknown) => (typeof each === 'string' ? each : MALFORMED));
}

async function tokensOf(request: Request): Promise<readonly string[]> {
  const reader = request.clone().body?.getReader();
  const decoder = new TextDecoder();
  let [text, bytes] = ['', 0];
  for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) {
    bytes += read.value.length;
    if (bytes > FORM_BYTES_MAX) {
      // Not awaited: the body of a clone is cancelled when that of the request is.
      reader?.cancel().catch(() => {});
      return [MALFORMED];
    }
    text += decoder.decode(read.value, { stream: true });
  }
  return tokensIn(text);
}
