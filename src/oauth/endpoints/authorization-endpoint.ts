// The authorization endpoint (RFC 6749 §3.1, §4.1): validates a request, once more when the person returns from
// login and consent, and makes the answer to the client. Sign-in and consent are in `login/` and `http/sign-in`; the
// single checks are in `authorization-checks.ts`.

import type { ClientAccess } from '../access/client-access.ts';
import { resolveAuthorizedScope, withoutVainOfflineAccess } from '../access/offline-access.ts';
import { accessForScope } from '../access/openid-access.ts';
import { checkResources, resolveResources } from '../access/resource-indicator.ts';
import { checkScope, formatScope } from '../access/scope.ts';
import { CODE_LIFETIME, retentionOf } from '../grants/retention.ts';
import type { PersonLimiter } from '../limits/person-rate.ts';
import type { Audit } from '../ports/audit.ts';
import { attributeTo, type ErrorCode, OAuthError, StoreUnavailableError } from '../ports/error.ts';
import type { GrantStore } from '../ports/grant-store.ts';
import type { AuthorizationSnapshot } from '../ports/login-stores.ts';
import type { Clock, ReplayStore } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';
import type { Registry } from '../registry/registry.ts';
import type { Handles } from '../tokens/handles.ts';
import { requireNotRevokedUntil } from '../tokens/revocation-checks.ts';
import type { Parameters } from '../values/parameters.ts';
import { appendParameters, matchRedirectUri } from '../values/redirect-uri.ts';
import { findAddressee, type RefusedAuthorization, refused } from './addressee.ts';
import {
  keyOfCode,
  readableState,
  rejectDuplicates,
  rejectUnauthorizedClient,
  rejectUnreadableState,
  rejectUnsupportedParameters,
  requireChallenge,
  requireResponseModeQuery,
  requireResponseTypeCode,
  requireStateWhereDemanded,
} from './authorization-checks.ts';
import { readOpenidRequest } from './openid-request.ts';
import { readUiLocales } from './ui-locales.ts';

/** How long a code challenge is remembered to notice its reuse. */
const CHALLENGE_MEMORY = 3_600_000;

/** The request is answered with an error at the client's own address. */
export interface RedirectedAuthorization {
  readonly kind: 'redirect';
  /** With error, state (if readable) and iss. */
  readonly location: string;
  readonly error: ErrorCode;
  readonly reason: string;
  /** See {@link OAuthErrorDetails.detail}. */
  readonly detail: string | undefined;
  readonly clientId: string;
  readonly admittedBy: Client['admittedBy'];
}

/** The request is valid; a person may be asked now. */
export interface AcceptedAuthorization {
  readonly kind: 'accepted';
  readonly client: Client;
  /** What the client may have by the registry that the request was validated by. */
  readonly access: ClientAccess;
  readonly request: AuthorizationSnapshot;
}

/** The result of the validation of an authorization request. */
export type AuthorizationCheck = RefusedAuthorization | RedirectedAuthorization | AcceptedAuthorization;

const LOGIN_REQUIRED = { code: 'login_required', description: 'A sign-in is required.' } as const;

/** Why an accepted request gets an error; the key is the reason. */
const AUTHORIZATION_ERRORS = {
  not_signed_in: LOGIN_REQUIRED,
  sign_in_needed: LOGIN_REQUIRED,
  other_person_signed_in: LOGIN_REQUIRED,
  consent_needed: { code: 'consent_required', description: 'A consent is required.' },
  person_not_permitted: { code: 'access_denied', description: 'The request is denied.' },
} as const satisfies Readonly<Record<string, { readonly code: ErrorCode; readonly description: string }>>;

export type AuthorizationErrorReason = keyof typeof AUTHORIZATION_ERRORS;

/** The signed-in person a code is issued for. */
export interface AuthorizingPerson {
  readonly subject: string;
  readonly sessionId: string;
  /** The name of the session towards clients. */
  readonly sid: string;
  /** Epoch milliseconds of the sign-in. */
  readonly authTime: number;
  /** Epoch milliseconds of that at the identity provider. */
  readonly upstreamAuthTime?: number | undefined;
}

export interface AuthorizationEndpointOptions {
  readonly issuer: string;
  readonly clock: Clock;
  readonly grants: GrantStore;
  readonly replays: ReplayStore;
  readonly handles: Handles;
  readonly audit: Audit;
  readonly people: PersonLimiter;
}

/** Validates authorization requests and answers them. */
export class AuthorizationEndpoint {
  readonly #issuer: string;
  readonly #clock: Clock;
  readonly #grants: GrantStore;
  readonly #replays: ReplayStore;
  readonly #handles: Handles;
  readonly #audit: Audit;
  readonly #people: PersonLimiter;

  constructor({ issuer, clock, grants, replays, handles, audit, people }: AuthorizationEndpointOptions) {
    this.#issuer = issuer;
    this.#clock = clock;
    this.#grants = grants;
    this.#replays = replays;
    this.#handles = handles;
    this.#audit = audit;
    this.#people = people;
  }

  /** Validates a request; creates no state. The first check that fails decides. */
  check(parameters: Parameters, registry: Registry): AuthorizationCheck {
    const addressee = findAddressee(parameters, registry);
    if (addressee.kind === 'refused') return addressee;
    const { client, redirectUri } = addressee;
    const state = readableState(parameters);
    const access = accessForScope(parameters.get('scope'), client, { registry, issuer: this.#issuer });
    return this.#answerErrors({ client, access, redirectUri, state }, () => {
      rejectDuplicates(parameters);
      rejectUnreadableState(parameters);
      rejectUnsupportedParameters(parameters);
      rejectUnauthorizedClient(client);
      requireNotRevokedUntil(client, this.#clock.now());
      requireResponseTypeCode(parameters);
      requireResponseModeQuery(parameters);
      const codeChallenge = requireChallenge(parameters);
      const confirmation = keyOfCode(parameters);
      const resources = resolveResources(parameters.all('resource'), access);
      const scope = resolveAuthorizedScope(parameters.get('scope'), resources, { client, access });
      const audiences = withScope(resources, scope, access);
      requireStateWhereDemanded(state, client);
      const openid = readOpenidRequest(parameters, scope, { client, issuer: this.#issuer, keys: registry.keys });
      const uiLocales = readUiLocales(parameters);
      const { uid: clientUid, clientId } = client;
      return {
        clientUid,
        clientId,
        redirectUri,
        scope,
        audiences,
        codeChallenge,
        confirmation,
        state,
        uiLocales,
        openid,
      };
    });
  }

  /**
   * Counts a request of a signed-in person, which may become a code. Before anything of it is stored.
   * @throws OAuthError temporarily_unavailable when this person asks too often at this client
   */
  limit({ client }: AcceptedAuthorization, { subject }: Pick<AuthorizingPerson, 'subject'>): void {
    const retryAfterSeconds = this.#people.take(client.uid, subject);
    if (retryAfterSeconds === 0) return;
    const details = { reason: 'person_rate_limited', retryAfterSeconds };
    throw attributeTo(client.clientId, new OAuthError('temporarily_unavailable', 'Too many requests.', details));
  }

  /** Validates an accepted request again: the client may have changed while the person was asked. */
  recheck(request: AuthorizationSnapshot, registry: Registry): AuthorizationCheck {
    const { clientId, redirectUri, state } = request;
    const client = registry.findByUid(request.clientUid);
    if (client === undefined || client.clientId !== clientId) return refused('client_gone', clientId);
    if (!matchRedirectUri(redirectUri, client.redirectUris)) return refused('redirect_uri_gone', clientId);
    const access = accessForScope(request.scope, client, { registry, issuer: this.#issuer });
    return this.#answerErrors({ client, access, redirectUri, state }, () => {
      rejectUnauthorizedClient(client);
      requireNotRevokedUntil(client, this.#clock.now());
      checkResources(request.audiences, access);
      const scope = withoutVainOfflineAccess(request.scope, { client, access });
      checkScope(scope, request.audiences, access);
      requireStateWhereDemanded(state, client);
      return { ...request, scope };
    });
  }

  /**
   * Issues the one code of an accepted request (RFC 6749 §4.1.2).
   * @returns the address to redirect to; undefined if the person has to sign in again: by a revocation, or because the session has ended
   * @throws StoreUnavailableError when no code could be stored
   */
  async issue({ client, request }: AcceptedAuthorization, person: AuthorizingPerson): Promise<string | undefined> {
    const { subject, sessionId, sid, authTime, upstreamAuthTime } = person;
    const { code, grantId, secretHash } = this.#handles.newCode(subject);
    const { scope, audiences, redirectUri, codeChallenge, confirmation } = request;
    const { uid: clientUid, clientId, namespace } = client;
    const offline = scope.includes('offline_access');
    const login = scope.includes('openid') ? { sessionId, sid, offline, namespace } : undefined;
    const issued = await this.#grants.issue(
      {
        grantId,
        clientUid,
        clientId,
        subject,
        sessionId,
        authTime,
        upstreamAuthTime,
        scope,
        audiences,
        redirectUri,
        codeChallenge,
        confirmation,
        openid: request.openid && { sid, nonce: request.openid.nonce },
        login,
      },
      secretHash,
      CODE_LIFETIME,
      retentionOf(client),
    );
    if (issued.outcome !== 'issued') return undefined;
    for (const evicted of issued.evicted) {
      this.#audit.record({ type: 'grant.evicted', clientId, subject, grantId: evicted });
    }
    if (issued.forgotten !== undefined) {
      this.#audit.record({ type: 'grant.evicted', reason: 'login_forgotten', subject, grantId: issued.forgotten });
    }
    this.#audit.record({
      type: 'authorization_code.issued',
      clientId,
      subject,
      grantId,
      scope: formatScope(scope),
      audience: audiences.join(' '),
    });
    await this.#noticeRepeatedChallenge(client, codeChallenge, grantId);
    return this.#location(request, { code });
  }

  /** The address to redirect to when the person denied the request (RFC 6749 §4.1.2.1). */
  deny({ request }: AcceptedAuthorization): string {
    const denial = new OAuthError('access_denied', 'The resource owner denied the request.', { reason: 'denied' });
    return this.#errorLocation(request, denial);
  }

  /** The answer to an accepted request that may not be answered by a page, or not to this person (Core §3.1.2.6). */
  refuse({ client, request }: AcceptedAuthorization, reason: AuthorizationErrorReason): RedirectedAuthorization {
    const { code, description } = AUTHORIZATION_ERRORS[reason];
    const { redirectUri, state } = request;
    return this.#refusal({ client, redirectUri, state }, new OAuthError(code, description, { reason }));
  }

  /** The address to redirect to when a server fault prevents the answer to an accepted request (RFC 6749 §4.1.2.1). */
  fail({ request }: AcceptedAuthorization, code: 'server_error' | 'temporarily_unavailable'): string {
    return this.#errorLocation(request, new OAuthError(code, 'The server cannot answer now.', { reason: code }));
  }

  // RFC 9700 §2.1.1: a challenge belongs to one transaction. A reload repeats one innocently, so it is recorded, not
  // refused, and an unavailable store must not fail the login.
  async #noticeRepeatedChallenge(client: Client, challenge: string, grantId: string): Promise<void> {
    try {
      const until = this.#clock.now() + CHALLENGE_MEMORY;
      const answer = await this.#replays.claim('code_challenge', `${client.uid}.${challenge}`, until);
      if (answer === 'seen') {
        this.#audit.record({ type: 'code_challenge.repeated', clientId: client.clientId, grantId });
      }
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error;
    }
  }

  #answerErrors(addressee: ValidatedAddressee, validate: () => AuthorizationSnapshot): AuthorizationCheck {
    const { client, access } = addressee;
    try {
      return { kind: 'accepted', client, access, request: validate() };
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      return this.#refusal(addressee, error);
    }
  }

  #refusal(addressee: Omit<ValidatedAddressee, 'access'>, error: OAuthError): RedirectedAuthorization {
    const { code, reason, detail } = error;
    const { clientId, admittedBy } = addressee.client;
    const location = this.#errorLocation(addressee, error);
    return { kind: 'redirect', location, error: code, reason, detail, clientId, admittedBy };
  }

  #errorLocation(answerTo: AnswerTo, { code, description }: OAuthError): string {
    return this.#location(answerTo, { error: code, error_description: description });
  }

  // RFC 9207 §2: iss is in every response, success or error.
  #location({ redirectUri, state }: AnswerTo, answer: Readonly<Record<string, string>>): string {
    return appendParameters(redirectUri, { ...answer, state, iss: this.#issuer });
  }
}

interface AnswerTo {
  readonly redirectUri: string;
  readonly state: string | undefined;
}

interface ValidatedAddressee extends AnswerTo {
  readonly client: Client;
  readonly access: ClientAccess;
}

/** With OpenID Connect a grant covers no audience that has nothing of its scope: a sign-in alone is for no API. */
function withScope(audiences: readonly string[], scope: readonly string[], access: ClientAccess): readonly string[] {
  if (access.issuer === undefined) return audiences;
  return audiences.filter((audience) => access.scopesAt(audience).some((token) => scope.includes(token)));
}
