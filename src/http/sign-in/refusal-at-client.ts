// The error answer to an authorization request that is good in itself, but that this browser may not get a page or a code
// for (OpenID Connect Core §3.1.2.6).

import type { AcceptedAuthorization, Refusal } from '../../oauth/endpoints/authorization-endpoint.ts';
import type { Exchange } from '../server/endpoint.ts';
import { noteError, redirectsBeforeSignIn, sendErrorLink } from './error-link.ts';
import type { SignInFlow } from './sign-in-flow.ts';

/** Redirects to the client with the error; before a sign-in at a client that only the baseline admits: the page with a link. */
export function refuseAtClient(
  flow: SignInFlow,
  exchange: Exchange,
  check: AcceptedAuthorization,
  reason: Refusal,
): void {
  const { authorization, metrics } = flow;
  const { request, reply, log } = exchange;
  const refusal = authorization.refuse(check, reason);
  metrics.tokenErrors.inc({ endpoint: 'authorize', error: refusal.error, reason });
  if (reason === 'not_signed_in' && !redirectsBeforeSignIn(request, refusal)) {
    sendErrorLink(flow, exchange, refusal);
    return;
  }
  noteError(log, refusal);
  reply.redirect(refusal.location, request.method === 'POST' ? 303 : 302);
}
