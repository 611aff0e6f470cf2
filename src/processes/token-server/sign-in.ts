// Assembles the parts of a sign-in: cookies, sealed requests, form tokens and limits, over the stores. The endpoints
// that use them are in `http/sign-in/`.

import { BrowserSessions, type BrowserSessionsOptions } from '../../http/cookies/browser-session.ts';
import { InteractionTaker } from '../../http/cookies/interaction-taker.ts';
import { KnownBrowsers } from '../../http/cookies/known-browsers.ts';
import { PendingSignIns } from '../../http/cookies/pending-sign-ins.ts';
import { SealedRequests } from '../../http/cookies/sealed-request.ts';
import type { Metrics } from '../../http/metrics/metrics.ts';
import type { Brand } from '../../http/pages/brand.ts';
import type { SignInOrder } from '../../http/pages/login-page.ts';
import { FormTokens } from '../../http/sign-in/form-origin.ts';
import { LoginLimit, UNLIMITED_LOGINS } from '../../http/sign-in/login-limit.ts';
import type { SignInFlow } from '../../http/sign-in/sign-in-flow.ts';
import type { AuthorizationEndpoint } from '../../oauth/endpoints/authorization-endpoint.ts';
import type { Audit } from '../../oauth/ports/audit.ts';
import type { Clock, People, Random, Stores } from '../../oauth/ports/ports.ts';
import type { RegistryRef } from '../../oauth/registry/registry.ts';
import type { UpstreamProviders } from '../../oauth/registry/upstream-providers.ts';
import { issuerPath } from '../../oauth/values/issuer.ts';

export interface SignInOptions {
  readonly issuer: string;
  readonly brand: Brand;
  /** The first one makes new values, all are accepted; at least one. */
  readonly peppers: readonly [Uint8Array, ...Uint8Array[]];
  /** False turns the limits on sign-in off. */
  readonly rateLimits: boolean;
  readonly order: SignInOrder;
  readonly authorization: AuthorizationEndpoint;
  readonly registry: RegistryRef;
  readonly stores: Stores;
  readonly owners: People;
  readonly providers: UpstreamProviders;
  readonly clock: Clock;
  readonly random: Random;
  readonly audit: Audit;
  readonly metrics: Metrics;
  readonly onPendingLogouts: BrowserSessionsOptions['onPendingLogouts'];
  readonly onRedirectMismatch: SignInFlow['onRedirectMismatch'];
}

/** The parts of a sign-in, made once. */
export function assembleSignIn(options: SignInOptions): SignInFlow {
  const {
    issuer,
    brand,
    peppers,
    rateLimits,
    order,
    authorization,
    registry,
    stores,
    owners,
    providers,
    clock,
    random,
    audit,
    metrics,
  } = options;
  const { onRedirectMismatch, onPendingLogouts } = options;
  return {
    issuer,
    basePath: issuerPath(issuer),
    brand,
    order,
    authorization,
    registry,
    owners,
    providers,
    clock,
    random,
    audit,
    metrics,
    onRedirectMismatch,
    sessions: new BrowserSessions({ issuer, sessions: stores.sessions, owners, random, audit, onPendingLogouts }),
    sealedRequests: new SealedRequests({ issuer, peppers, clock, random }),
    formTokens: new FormTokens({ issuer, peppers }),
    loginLimit: rateLimits
      ? new LoginLimit({ issuer, pepper: peppers[0], store: stores.rateLimits, clock })
      : UNLIMITED_LOGINS,
    knownBrowsers: new KnownBrowsers({ issuer, peppers, clock, random }),
    pendingSignIns: new PendingSignIns({ issuer, peppers, clock, random }),
    interactions: stores.interactions,
    taker: new InteractionTaker({ issuer, interactions: stores.interactions, random }),
    consents: stores.consents,
    watermarks: stores.watermarks,
  };
}
