// A form that is posted where a GET belongs (OpenID Connect Core §3.1.2.1): answered by 303 to the GET.

import type { FastifyRequest } from 'fastify';
import { Parameters } from '../../oauth/values/parameters.ts';
import type { Endpoint, Handler } from './endpoint.ts';
import { TransportError } from './errors.ts';
import { parseForm } from './form.ts';
import { queryOf } from './raw-request.ts';
import { isForm, methodNotAllowed, rejectCredentials } from './request-checks.ts';

/** The largest such form, and the largest query that is made of one, in bytes: a browser has to send that as an address. */
export const POSTED_QUERY_BYTE_LIMIT = 8 * 1024;

/** An endpoint that takes such forms. */
export interface PostedQuery {
  readonly endpoint: Endpoint;
  readonly isPostedQuery: NonNullable<Endpoint['isPostedQuery']>;
}

/** Refuses by its headers what can be no such form. @throws TransportError method_not_allowed */
export function admitPostedQuery(endpoint: Endpoint, request: FastifyRequest): void {
  // Parameters in two places are two requests.
  if (!isForm(request) || queryOf(request.url) !== undefined) throw methodNotAllowed(endpoint);
}

/** The parameters of the form. @throws TransportError method_not_allowed where the body is none that the endpoint takes */
export function postedParameters({ endpoint, isPostedQuery }: PostedQuery, request: FastifyRequest): Parameters {
  const form = request.body instanceof Uint8Array ? parseForm(request.body) : undefined;
  const parameters = typeof form === 'object' ? new Parameters(form) : undefined;
  if (parameters === undefined || !isPostedQuery(parameters)) throw methodNotAllowed(endpoint);
  return parameters;
}

/** The redirect. Its parameters are encoded again, doubled ones stay doubled: the GET rejects them. */
export function redirectToGet({ endpoint }: PostedQuery): Handler {
  return async ({ reply, parameters, log }) => {
    rejectCredentials(parameters);
    const query = new URLSearchParams(parameters.pairs()).toString();
    if (query.length > POSTED_QUERY_BYTE_LIMIT) throw new TransportError('content_too_large');
    log.outcome = 'redirected';
    reply.redirect(`${endpoint.path}?${query}`, 303);
  };
}
