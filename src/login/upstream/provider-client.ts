// What the clients of all types of provider share: what they are made with, what they report, and what a fault becomes.

import type { ProviderAnswer, UpstreamProvider } from '../../oauth/ports/upstream-provider.ts';
import type { IdentityProvider, ProviderCredentials } from '../../oauth/registry/identity-provider.ts';
import { type EndpointName, faultDetail } from './fault-detail.ts';
import { UpstreamUnavailableError } from './upstream-fetch.ts';

export interface ProviderClientOptions {
  readonly credentials: ProviderCredentials;
  /** Whether another provider lists a domain among those that it lets in. */
  readonly isClaimedElsewhere: (domain: string) => boolean;
}

/** What came of an attempt to reach a provider; the reasons of its condition `Reachable`. */
export type Reach = 'Reachable' | 'DiscoveryFailed' | 'IssuerMismatch';

/** What came of an attempt, and why it failed. */
export interface Discovery {
  readonly reach: Reach;
  /** A phrase for the log; undefined when all is well. */
  readonly detail?: string | undefined;
}

/** An upstream provider, with what `ProviderClients` does to it. */
export interface ProviderClient extends UpstreamProvider {
  /** Learns what has to be known of the provider before anyone can be sent there; never throws. */
  discover(): Promise<Discovery>;
  /**
   * Redeems a made-up code: whether the provider authenticates this client, before a person tries. Only after a discovery.
   * @returns what is wrong, a phrase for the log; undefined when the client is accepted
   */
  verifyCredentials(callbackUrl: string): Promise<string | undefined>;
  /** Validates by another revision of the provider, of the same type, issuer and credentials, and keeps what it learnt. */
  follow(provider: IdentityProvider): void;
  /** Forgets it. */
  forget(): void;
  /** Closes its connections. */
  close(): void;
}

const CANCELLED = [
  'access_denied',
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
];
const UNAVAILABLE = ['temporarily_unavailable', 'server_error'];
/** The others of RFC 6749 §4.1.2.1 and OpenID Connect Core §3.1.2.6 that a fault of the manifest leads to. */
const KNOWN = [...UNAVAILABLE, 'invalid_request', 'unauthorized_client', 'unsupported_response_type', 'invalid_scope'];

/** The answer to an `error` of the provider (RFC 6749 §4.1.2.1, OpenID Connect Core §3.1.2.6). */
export function answerOfError(error: string): ProviderAnswer {
  if (CANCELLED.includes(error)) return { outcome: 'cancelled' };
  const detail = KNOWN.includes(error) ? `the authorization endpoint answered ${error}` : undefined;
  return { outcome: UNAVAILABLE.includes(error) ? 'unavailable' : 'invalid', detail };
}

/** The answer to what a call has thrown. */
export function answerOfFault(fault: unknown, nameOf: EndpointName): ProviderAnswer {
  const detail = faultDetail(fault, nameOf);
  for (let cause = fault; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof UpstreamUnavailableError) return { outcome: 'unavailable', detail };
  }
  return { outcome: 'invalid', detail };
}
