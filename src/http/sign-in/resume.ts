// GET /authorize/resume/:interaction: the last step of a sign-in. It takes the decided interaction, once, and sends the
// browser back to the client with a code or with access_denied. A second request gets the page that asks to start
// again; only a browser whose attempt to take it got no answer may retry.

import { isCovered } from '../../oauth/access/consent.ts';
import { maySignIn } from '../../oauth/access/sign-in-limits.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';
import { refusePerson } from './refused-person.ts';
import {
  acceptedStill,
  answerFaultsAtClient,
  interactionIdOf,
  isOutdated,
  type SignInFlow,
  startAgain,
} from './sign-in-flow.ts';

/** The redirect to the client. */
export function resumeEndpoint(flow: SignInFlow): Endpoint {
  return {
    route: 'resume',
    path: '/authorize/resume/:interaction',
    handlers: { GET: (exchange) => resume(flow, exchange) },
    answers: 'html',
    cors: 'none',
    head: false,
  };
}

async function resume(flow: SignInFlow, exchange: Exchange): Promise<void> {
  const { request, reply, log } = exchange;
  // 1. The interaction, by the session that opened it
  const interactionId = interactionIdOf(flow, exchange);
  const signedIn = await flow.sessions.current(request);
  if (!signedIn) throw startAgain('interaction_not_signed_in');
  const { session, person } = signedIn;
  const interaction = await flow.taker.take(exchange, interactionId, session.sessionId);
  if (!interaction) throw startAgain('interaction_unknown');

  // 2. The client as it is now
  const check = acceptedStill(flow, exchange, { request: interaction.request, endpoint: 'resume' });
  if (!check) return;
  answerFaultsAtClient(flow, exchange, check);
  if (interaction.decision === 'deny') {
    log.outcome = 'denied';
    reply.redirect(flow.authorization.deny(check), 302);
    return;
  }

  // 3. The person may use it, and nothing was withdrawn or revoked meanwhile
  if (!maySignIn(check.client, person)) return refusePerson(flow, exchange, check, person);
  if (await isOutdated(flow, session, check.client.uid)) throw startAgain('interaction_outdated');
  const given = await flow.consents.read(session.subject, check.client.uid);
  if (!isCovered(check, given)) throw startAgain('interaction_consent_gone');

  // 4. One code
  const location = await flow.authorization.issue(check, session);
  if (location === undefined) throw startAgain('interaction_outdated');
  log.outcome = 'issued';
  reply.redirect(location, 302);
}
