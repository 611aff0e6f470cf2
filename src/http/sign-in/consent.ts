// GET and POST /consent/:interaction: the person is asked once, about a request that was stored when it was checked
// (security row U9). The form carries the decision only, never what it allows.

import { requestedAccess } from '../../oauth/access/consent.ts';
import type { AcceptedAuthorization } from '../../oauth/endpoints/authorization-endpoint.ts';
import { isAboutAnyone, openidParameters } from '../../oauth/endpoints/openid-request.ts';
import type { AuthorizationSnapshot, Interaction } from '../../oauth/ports/login-stores.ts';
import { thumbprintOf } from '../../oauth/values/confirmation.ts';
import type { SignedIn } from '../cookies/browser-session.ts';
import { consentPage } from '../pages/consent-page.ts';
import { pageFrame } from '../pages/page-frame.ts';
import type { Endpoint, Exchange } from '../server/endpoint.ts';
import { shownAccess, shownPerson } from './shown-access.ts';
import {
  acceptedStill,
  interactionIdOf,
  requireOwnForm,
  resumePath,
  type SignInFlow,
  sendLeavingPage,
  startAgain,
} from './sign-in-flow.ts';

const CONSENT_LIFETIME = 365 * 24 * 3_600_000;

/** The consent page and its form. */
export function consentEndpoint(flow: SignInFlow): Endpoint {
  return {
    route: 'consent',
    path: '/consent/:interaction',
    handlers: { GET: (exchange) => ask(flow, exchange), POST: (exchange) => submitDecision(flow, exchange) },
    answers: 'html',
    cors: 'none',
    head: false,
  };
}

interface Opened {
  readonly signedIn: SignedIn;
  readonly interaction: Interaction;
}

/** The interaction of the path, if this browser's session opened it (security row U8). */
async function open(flow: SignInFlow, exchange: Exchange): Promise<Opened> {
  const interactionId = interactionIdOf(flow, exchange);
  const signedIn = await flow.sessions.current(exchange.request);
  if (!signedIn) throw startAgain('interaction_not_signed_in');
  const interaction = await flow.interactions.read(interactionId, signedIn.session.sessionId);
  if (!interaction) throw startAgain('interaction_unknown');
  return { signedIn, interaction };
}

async function ask(flow: SignInFlow, exchange: Exchange): Promise<void> {
  const { signedIn, interaction } = await open(flow, exchange);
  const check = acceptedStill(flow, exchange, { request: interaction.request, endpoint: 'consent' });
  if (!check) return;
  const { client, request } = check;
  const given = await flow.consents.read(interaction.subject, client.uid);
  const frame = pageFrame(flow, exchange.request.headers, request.uiLocales);
  exchange.log.outcome = 'consent_page';
  const page = consentPage({
    frame,
    interactionId: interaction.interactionId,
    csrf: flow.formTokens.make(signedIn.cookie, interaction.interactionId),
    person: signedIn.session,
    maySwitch: isAboutAnyone(request),
    client: {
      id: client.clientId,
      name: client.displayName,
      redirectUri: request.redirectUri,
      website: client.clientUri,
      privacyPolicy: client.policyUri,
      termsOfService: client.tosUri,
    },
    access: shownAccess(check, { given, language: frame.language, issuer: flow.issuer }),
    disclosed: shownPerson(check, await flow.owners.find(interaction.subject)),
    isLimited: client.signIn !== undefined,
    lastsUntil: lastsUntil(check),
  });
  sendLeavingPage(exchange.reply.code(200), page);
}

/** The end of a session revokes the grants of OpenID Connect but those with `offline_access` (Core §11). */
function lastsUntil({ client, request: { scope } }: AcceptedAuthorization): 'sign_out' | 'revocation' | undefined {
  if (!client.grantTypes.includes('refresh_token')) return undefined;
  return scope.includes('openid') && !scope.includes('offline_access') ? 'sign_out' : 'revocation';
}

async function submitDecision(flow: SignInFlow, exchange: Exchange): Promise<void> {
  const { request, reply, parameters, log } = exchange;
  requireOwnForm(flow, request);
  const opened = await open(flow, exchange);
  const { signedIn, interaction } = opened;
  log.clientId = interaction.request.clientId;
  if (!flow.formTokens.check(parameters.get('csrf'), signedIn.cookie, interaction.interactionId)) {
    throw startAgain('interaction_bad_csrf');
  }
  parameters.rejectDuplicates(['csrf', 'decision']);
  const decision = parameters.get('decision');
  switch (decision) {
    case 'allow':
    case 'deny':
      await decide(flow, opened, decision);
      log.outcome = decision === 'allow' ? 'consent_given' : 'consent_denied';
      reply.redirect(resumePath(flow, interaction.interactionId, interaction.request.clientId), 303);
      return;
    case 'other_account':
      if (!isAboutAnyone(interaction.request)) throw startAgain('interaction_odd_decision');
      await flow.sessions.end(reply, signedIn, 'other_account');
      log.outcome = 'signed_out';
      reply.redirect(`${flow.basePath}/authorize?${requestQuery(interaction.request)}`, 303);
      return;
    default:
      throw startAgain('interaction_odd_decision');
  }
}

async function decide(flow: SignInFlow, { interaction }: Opened, decision: 'allow' | 'deny'): Promise<void> {
  const { interactionId, sessionId, subject, request } = interaction;
  const { clientId, scope, audiences } = request;
  const answer = await flow.interactions.decide(interactionId, sessionId, decision);
  if (answer !== 'decided')
    throw startAgain(answer === 'gone' ? 'interaction_unknown' : 'interaction_decided_otherwise');
  // The first click or a repeat of it: consent is written either way (a repeat may follow a store that failed here).
  if (decision === 'allow') await give(flow, interaction);
  if (interaction.decision !== undefined) return;
  flow.audit.record({
    type: decision === 'allow' ? 'consent.given' : 'consent.denied',
    subject,
    clientId,
    scope: scope.join(' '),
    audience: audiences.join(' '),
  });
}

/** Records at each resource the scope that is asked for there; nothing for a request that resume refuses. */
async function give(
  { authorization, registry, consents }: SignInFlow,
  { subject, request }: Interaction,
): Promise<void> {
  const check = authorization.recheck(request, registry.current);
  if (check.kind !== 'accepted') return;
  await consents.give(subject, check.client.uid, requestedAccess(check), CONSENT_LIFETIME);
}

/** The stored request as a query of /authorize: its login page continues the request for another person. */
function requestQuery(request: AuthorizationSnapshot): URLSearchParams {
  const { clientId, redirectUri, scope, audiences, codeChallenge, confirmation, state, uiLocales, openid } = request;
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: scope.join(' '),
    code_challenge: codeChallenge,
    code_challenge_method: 'S256',
    ...(openid && openidParameters(openid)),
  });
  // A provider would sign in the same person again.
  const prompt = new Set([...(openid?.prompt ?? []), 'select_account']);
  query.set('prompt', [...prompt].join(' '));
  for (const audience of audiences) query.append('resource', audience);
  if (confirmation !== undefined) query.set('dpop_jkt', thumbprintOf(confirmation));
  if (state !== undefined) query.set('state', state);
  if (uiLocales !== undefined) query.set('ui_locales', uiLocales.join(' '));
  return query;
}
