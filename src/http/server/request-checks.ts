// The checks of every request before its handler runs, in the order `server.ts` applies them: headers, path, method,
// media type, size; then, with the body read, its parameters. All throw for the error writer.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { INTROSPECTION_PARAMETERS } from '../../oauth/endpoints/introspection.ts';
import { REVOCATION_PARAMETERS } from '../../oauth/endpoints/revocation.ts';
import { TOKEN_PARAMETERS } from '../../oauth/endpoints/token-endpoint.ts';
import { OAuthError } from '../../oauth/ports/error.ts';
import { Parameters, type RawParameters } from '../../oauth/values/parameters.ts';
import { type Endpoint, JSON_MEDIA_TYPE } from './endpoint.ts';
import { TransportError } from './errors.ts';
import { type FormFault, isFormMediaType, parseForm } from './form.ts';
import { announcesTooMuch, headerFault, queryOf } from './raw-request.ts';

/**
 * RFC 9112 §3.2, §6: every intermediary must read the same request. The end of an ambiguous one is uncertain, so the
 * connection is closed.
 */
export function rejectAmbiguousHeaders(request: FastifyRequest, reply: FastifyReply): void {
  const fault = headerFault(request.raw);
  if (fault === undefined) return;
  reply.raw.shouldKeepAlive = false;
  throw malformed(fault);
}

/** Whether the client is a browser that opens an address: it alone names the type. */
export function acceptsPage({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes('text/html') === true;
}

/** RFC 9110 §15.5.5 and §15.5.6: the path has an endpoint, and the endpoint has the method. */
export function requireMethod(endpoint: Endpoint | undefined, method: string): asserts endpoint is Endpoint {
  if (endpoint === undefined) throw new TransportError('not_found');
  const known =
    method === 'GET' || method === 'POST' ? endpoint.handlers[method] !== undefined : isHead(endpoint, method);
  if (!known) throw methodNotAllowed(endpoint);
}

/** The error of a method that the endpoint does not have. */
export function methodNotAllowed(endpoint: Endpoint): TransportError {
  return new TransportError('method_not_allowed', allowedMethods(endpoint));
}

function isHead(endpoint: Endpoint, method: string): boolean {
  return method === 'HEAD' && endpoint.head;
}

/** The value of `Allow`. */
export function allowedMethods(endpoint: Endpoint): string {
  const methods = Object.keys(endpoint.handlers);
  return (endpoint.head ? [...methods, 'HEAD'] : methods).join(', ');
}

/** Whether neither a body nor a media type is announced (RFC 9112 §6.3); a body of no bytes is none. */
export function hasNoBody({ headers }: FastifyRequest): boolean {
  const { 'content-type': contentType, 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return contentType === undefined && encoding === undefined && Number(length) === 0;
}

/** RFC 6749 §3.2: a POST carries a form in UTF-8 and nothing else; an encoded body is not one (RFC 9110 §8.4). */
export function requireForm(request: FastifyRequest): void {
  if (!isForm(request)) throw new TransportError('unsupported_media_type');
}

/** Whether the body is announced as a form in UTF-8 that is not encoded. */
export function isForm({ headers }: FastifyRequest): boolean {
  const { 'content-type': contentType, 'content-encoding': encoding } = headers;
  return isFormMediaType(contentType) && (encoding === undefined || encoding.toLowerCase() === 'identity');
}

/** The same for a JSON body, on the admin port only. */
export function requireJson(request: FastifyRequest): void {
  const { 'content-type': contentType, 'content-encoding': encoding } = request.headers;
  if (contentType !== JSON_MEDIA_TYPE || encoding !== undefined) throw new TransportError('unsupported_media_type');
}

/** RFC 9110 §15.5.14: refused by its announced length, before a byte of it is read. */
export function rejectTooMuch(request: FastifyRequest): void {
  if (announcesTooMuch(request.raw)) throw new TransportError('content_too_large');
}

/** Credentials must not be in any query, which ends up in logs and histories (RFC 9700 §4.3.2). */
const NEVER_IN_QUERY = [
  ...['client_secret', 'client_assertion', 'code_verifier', 'refresh_token', 'access_token', 'token', 'assertion'],
  ...['username', 'password', 'subject_token', 'actor_token'],
];

/**
 * The parameters that must not be in the query of a POST: those of this server's forms and of any OAuth request.
 */
const FORM_ONLY: ReadonlySet<string> = new Set([
  ...NEVER_IN_QUERY,
  ...TOKEN_PARAMETERS,
  ...REVOCATION_PARAMETERS,
  ...INTROSPECTION_PARAMETERS,
  ...['response_type', 'state', 'code_challenge', 'code_challenge_method', 'request', 'request_uri', 'device_code'],
  ...['csrf', 'decision'],
]);

/** The parameters of a GET. */
export function queryParameters(request: FastifyRequest): Parameters {
  const query = new Parameters(parsed(queryOf(request.url)));
  rejectCredentials(query);
  return query;
}

/** @throws OAuthError invalid_request for parameters that must not be in any query */
export function rejectCredentials(query: Parameters): void {
  if (NEVER_IN_QUERY.some((name) => query.has(name))) throw malformed('credential_in_query');
}

/** The parameters of a POST body. Its query must hold none of {@link FORM_ONLY} and none of the body's. */
export function formParameters(request: FastifyRequest): Parameters {
  const query = parsed(queryOf(request.url));
  for (const name of query.keys()) {
    if (FORM_ONLY.has(name)) throw malformed('parameter_in_query');
  }
  const body = parsed(request.body instanceof Uint8Array ? request.body : undefined);
  for (const name of query.keys()) {
    if (body.has(name)) throw malformed('parameter_in_query_and_body');
  }
  return new Parameters(body);
}

const NOTHING: RawParameters = new Map();

function parsed(bytes: Uint8Array | undefined): RawParameters {
  if (bytes === undefined) return NOTHING;
  const form: RawParameters | FormFault = parseForm(bytes);
  if (typeof form === 'string') throw malformed(form);
  return form;
}

function malformed(reason: string): OAuthError {
  return new OAuthError('invalid_request', 'The request is malformed.', { reason });
}
