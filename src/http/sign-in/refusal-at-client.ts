// The error answer to an authorization request that is good in itself, but that this browser may not get a page or a code
// for (OpenID Connect Core §3.1.2.6).

import type {
  AcceptedAuthorization,
  AuthorizationErrorReason,
  RedirectedAuthorization,
} from '../../oauth/endpoints/authorization-endpoint.ts';
import type { Exchange } from '../server/endpoint.ts';
import { noteError, redirectsBeforeSignIn, sendErrorLink } from './error-link.ts';
import type { SignInFlow } from './sign-in-flow.ts';

/** Redirects a signed-in person to the client with the error. */
export function refuseAtClient(
  flow: SignInFlow,
  exchange: Exchange,
  check: AcceptedAuthorization,
  reason: AuthorizationErrorReason,
): void {
  const refusal = counted(flow, check, reason);
  noteError(exchange.log, refusal);
  exchange.reply.redirect(refusal.location, exchange.request.method === 'POST' ? 303 : 302);
}

/**
 * The same for a person who may have seen no page of this server: one who is not signed in, or who comes back from an identity
 * provider. For a client that only the baseline admits it is a page with a link.
 */
export function refuseUnseen(
  flow: SignInFlow,
  exchange: Exchange,
  check: AcceptedAuthorization,
  reason: AuthorizationErrorReason,
): void {
  if (redirectsBeforeSignIn(exchange.request, check.client)) refuseAtClient(flow, exchange, check, reason);
  else sendErrorLink(flow, exchange, counted(flow, check, reason));
}

function counted(
  { authorization, metrics }: SignInFlow,
  check: AcceptedAuthorization,
  reason: AuthorizationErrorReason,
): RedirectedAuthorization {
  const refusal = authorization.refuse(check, reason);
  metrics.tokenErrors.inc({ endpoint: 'authorize', error: refusal.error, reason });
  return refusal;
}
