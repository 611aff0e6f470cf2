// The dependencies and the shared steps of the four endpoints of a sign-in (`authorize`, `login`, `consent`, `resume`).
// The order of steps of each endpoint is in its own file.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { consentNeeded } from '../../oauth/access/consent.ts';
import type {
  AcceptedAuthorization,
  AuthorizationCheck,
  AuthorizationEndpoint,
} from '../../oauth/endpoints/authorization-endpoint.ts';
import type { Audit } from '../../oauth/ports/audit.ts';
import { attributeTo, OAuthError } from '../../oauth/ports/error.ts';
import type { AuthorizationSnapshot, ConsentStore, InteractionStore, Session } from '../../oauth/ports/login-stores.ts';
import type { Clock, People, Random } from '../../oauth/ports/ports.ts';
import type { WatermarkStore } from '../../oauth/ports/token-stores.ts';
import type { RegistryRef } from '../../oauth/registry/registry.ts';
import type { UpstreamProviders } from '../../oauth/registry/upstream-providers.ts';
import type { BrowserSessions } from '../cookies/browser-session.ts';
import type { InteractionTaker } from '../cookies/interaction-taker.ts';
import type { KnownBrowsers } from '../cookies/known-browsers.ts';
import type { PendingSignIns } from '../cookies/pending-sign-ins.ts';
import type { OwnPath, SealedRequests } from '../cookies/sealed-request.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { SignInOrder } from '../pages/login-page.ts';
import type { PageSite } from '../pages/page-frame.ts';
import type { Exchange, Handler } from '../server/endpoint.ts';
import { LEAVING_PAGE_HEADERS, PAGE_HEADERS } from '../server/security-headers.ts';
import { noteError, redirectsBeforeSignIn, sendErrorLink } from './error-link.ts';
import { type FormTokens, isOwnForm } from './form-origin.ts';
import type { LoginLimiter } from './login-limit.ts';

const INTERACTION_LIFETIME = 600_000;
const INTERACTION_ID_BYTES = 32;

/** The dependencies, made once. */
export interface SignInFlow extends PageSite {
  readonly issuer: string;
  /** Of the login page. */
  readonly order: SignInOrder;
  readonly authorization: AuthorizationEndpoint;
  readonly registry: RegistryRef;
  readonly sessions: BrowserSessions;
  readonly sealedRequests: SealedRequests;
  readonly formTokens: FormTokens;
  readonly loginLimit: LoginLimiter;
  readonly knownBrowsers: KnownBrowsers;
  readonly pendingSignIns: PendingSignIns;
  readonly providers: UpstreamProviders;
  readonly owners: People;
  readonly interactions: InteractionStore;
  readonly taker: InteractionTaker;
  readonly consents: ConsentStore;
  readonly watermarks: WatermarkStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly audit: Audit;
  readonly metrics: Metrics;
  /** Called when a request names a registered client with a redirect URI that is not registered for it. */
  readonly onRedirectMismatch: (clientId: string) => void;
}

/** The person must start again at the application: a 400 page that says so (docs/scope.md, R11). */
export function startAgain(reason: `interaction_${string}`): OAuthError {
  return new OAuthError('invalid_request', 'The interaction is over or belongs to another browser.', { reason });
}

/**
 * The accepted request; undefined after an error that was sent to the client by redirect.
 * @throws OAuthError when no verified address to redirect to is known (RFC 6749 §4.1.2.1)
 */
export function accepted(
  check: AuthorizationCheck,
  { reply, log }: Exchange,
  redirectStatus: 302 | 303,
): AcceptedAuthorization | undefined {
  if (check.kind === 'refused') {
    const { reason, clientId, detail } = check;
    const refusal = new OAuthError('invalid_request', 'The authorization request cannot be answered.', {
      reason,
      detail,
    });
    throw clientId === undefined ? refusal : attributeTo(clientId, refusal);
  }
  if (check.kind === 'accepted') {
    log.clientId = check.client.clientId;
    log.scope = check.request.scope.join(' ');
    return check;
  }
  noteError(log, check);
  reply.redirect(check.location, redirectStatus);
  return undefined;
}

/**
 * Validates an accepted request again. A refusal, because the client changed meanwhile, is counted under
 * the endpoint that found it.
 * @returns as {@link accepted} @throws as it
 */
export function acceptedStill(
  flow: SignInFlow,
  exchange: Exchange,
  { request, endpoint }: { readonly request: AuthorizationSnapshot; readonly endpoint: 'login' | 'consent' | 'resume' },
): AcceptedAuthorization | undefined {
  const { authorization, registry, metrics } = flow;
  const check = authorization.recheck(request, registry.current);
  if (check.kind !== 'accepted') {
    const error = check.kind === 'redirect' ? check.error : 'invalid_request';
    metrics.tokenErrors.inc({ endpoint, error, reason: check.reason });
  }
  if (check.kind === 'redirect' && endpoint === 'login' && !redirectsBeforeSignIn(exchange.request, check)) {
    sendErrorLink(flow, exchange, check);
    return undefined;
  }
  return accepted(check, exchange, exchange.request.method === 'POST' ? 303 : 302);
}

/**
 * From here on server faults are reported to the client by redirect and not on a page (RFC 6749 §4.1.2.1). Only for a
 * GET without a page of its own; a person in front of a form can submit it again.
 */
export function answerFaultsAtClient(
  { authorization }: SignInFlow,
  { request }: Exchange,
  check: AcceptedAuthorization,
): void {
  request.visit.faultLocation = (error) => authorization.fail(check, error);
}

/**
 * Refuses a form that another site posted.
 * @throws OAuthError as {@link startAgain}
 */
export function requireOwnForm({ issuer }: SignInFlow, request: FastifyRequest): void {
  if (!isOwnForm(request.headers, new URL(issuer).origin)) throw startAgain('interaction_foreign_origin');
}

/** The uid of no client: no watermark of it is ever raised. */
const NO_CLIENT = '';

/**
 * Whether a revocation demands that the person signs in again: by a user, global, client or consent watermark.
 * @param clientUid undefined for a page of ours
 */
export async function isOutdated(
  { watermarks }: Pick<SignInFlow, 'watermarks'>,
  { authTime, subject }: Pick<Session, 'authTime' | 'subject'>,
  clientUid: string | undefined,
): Promise<boolean> {
  return authTime <= (await watermarks.read(clientUid ?? NO_CLIENT, subject));
}

/**
 * Stores a request of a signed-in person. Where no consent is needed, the interaction is decided here: `allow`.
 * @returns the path of the next step: the consent page or resume
 */
export async function openInteraction(
  flow: SignInFlow,
  check: AcceptedAuthorization,
  { sessionId, subject, authTime }: Session,
): Promise<string> {
  const { client, request } = check;
  const interactionId = Buffer.from(flow.random.bytes(INTERACTION_ID_BYTES)).toString('base64url');
  await flow.interactions.create({ interactionId, sessionId, subject, authTime, request }, INTERACTION_LIFETIME);
  const { ask } = consentNeeded(check, await flow.consents.read(subject, client.uid));
  if (ask) return `${flow.basePath}/consent/${interactionId}?client=${client.clientId}`;
  await flow.interactions.decide(interactionId, sessionId, 'allow');
  return resumePath(flow, interactionId, client.clientId);
}

/** The path that resumes a decided interaction. @param clientId as {@link interactionIdOf} reads it */
export function resumePath({ basePath }: SignInFlow, interactionId: string, clientId: string): string {
  return `${basePath}/authorize/resume/${interactionId}?client=${clientId}`;
}

/**
 * The interaction named by the path. Beside it is the id of the client, for no more than the link of an error page: the
 * interaction alone says what is decided. Anyone can write the address, so a client that only the baseline admitted has no
 * link (docs/adr/0032).
 */
export function interactionIdOf(flow: SignInFlow, { request, parameters }: Exchange): string {
  const client = flow.registry.current.find(parameters.get('client') ?? '');
  if (client?.admittedBy === 'policy') request.visit.start = client.clientUri;
  return (request.params as { readonly interaction: string }).interaction;
}

/** The website of a client that is served now, where it has one: people start again there. */
export function websiteOf({ registry }: SignInFlow, clientId: string): string | undefined {
  return registry.current.find(clientId)?.clientUri;
}

/** The GET of an address without a page, which people open by hand or from the history: a page of ours. */
export function leadingTo({ basePath }: PageSite, path: OwnPath | '/logout'): Handler {
  return async ({ reply, log }) => {
    log.outcome = 'redirected';
    reply.redirect(`${basePath}${path}`, 302);
  };
}

/** Sends a page with a form that may end at a client or an identity provider. */
export function sendLeavingPage(reply: FastifyReply, page: string): void {
  reply.headers(LEAVING_PAGE_HEADERS).type('text/html; charset=utf-8').send(page);
}

/** Sends a page whose forms end at pages of ours. */
export function sendOwnPage(reply: FastifyReply, page: string): void {
  reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8').send(page);
}
