// What the sources of all types share: what they are made with, what they report, and what a fault becomes.

import type { IdentitySource, SourceAnswer } from '../../oauth/ports/identity-source.ts';
import type { IdentityProvider, ProviderCredentials } from '../../oauth/registry/identity-provider.ts';
import { UpstreamUnavailableError } from './upstream-fetch.ts';

export interface SourceOptions {
  readonly credentials: ProviderCredentials;
  /** Whether another provider lists a domain among those that it lets in. */
  readonly isClaimedElsewhere: (domain: string) => boolean;
}

/** What came of an attempt to reach a provider; the reasons of its condition `Reachable`. */
export type Reach = 'Reachable' | 'DiscoveryFailed' | 'IssuerMismatch';

/** A source with what its directory does to it. */
export interface Source extends IdentitySource {
  /** Learns what has to be known of the provider before anyone can be sent there; never throws. */
  discover(): Promise<Reach>;
  /** Judges by another revision of the provider, of the same type, issuer and credentials, and keeps what it learnt. */
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

/** The answer to an `error` of the provider (RFC 6749 §4.1.2.1, OpenID Connect Core §3.1.2.6). */
export function answerOfError(error: string): SourceAnswer {
  if (CANCELLED.includes(error)) return { outcome: 'cancelled' };
  return { outcome: UNAVAILABLE.includes(error) ? 'unavailable' : 'invalid' };
}

/** The answer to what a call has thrown. */
export function answerOfFault(fault: unknown): SourceAnswer {
  for (let cause = fault; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof UpstreamUnavailableError) return { outcome: 'unavailable' };
  }
  return { outcome: 'invalid' };
}
