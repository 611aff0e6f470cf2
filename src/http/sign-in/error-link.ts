// Errors of clients that only the baseline admitted, for a person who is not signed in: a page with a link instead of a
// redirect, so that an editor of a namespace cannot make this server send people anywhere (docs/adr/0032).

import type { FastifyRequest } from 'fastify';
import type { RedirectedAuthorization } from '../../oauth/endpoints/authorization-endpoint.ts';
import { readUiLocales } from '../../oauth/endpoints/ui-locales.ts';
import type { Client } from '../../oauth/registry/client.ts';
import { errorPage } from '../pages/error-page.ts';
import { type PageSite, pageFrame } from '../pages/page-frame.ts';
import type { Exchange, RequestFacts } from '../server/endpoint.ts';
import { PAGE_HEADERS } from '../server/security-headers.ts';

/**
 * Whether errors of this client redirect also before a sign-in. In a frame they always do: its address is not shown,
 * and an application that renews its tokens there waits for the answer.
 */
export function redirectsBeforeSignIn(
  { headers }: FastifyRequest,
  { admittedBy }: Pick<Client, 'admittedBy'>,
): boolean {
  return admittedBy === 'policy' || headers['sec-fetch-dest'] === 'iframe';
}

/** The log line of an error that goes to the client, by itself or by a link. */
export function noteError(log: RequestFacts, { clientId, reason, detail }: RedirectedAuthorization): void {
  Object.assign(log, { clientId, reason, outcome: 'refused', ...(detail !== undefined && { detail }) });
}

/** Answers a 400 page that names the host of the client and links to its answer. */
export function sendErrorLink(
  site: PageSite,
  { reply, log, request, parameters }: Exchange,
  check: RedirectedAuthorization,
): void {
  const { reason, location } = check;
  noteError(log, check);
  const page = errorPage({
    frame: pageFrame(site, request.headers, readUiLocales(parameters)),
    status: 400,
    reason,
    requestId: request.id,
    answer: location,
  });
  reply.code(400).headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(page);
}
