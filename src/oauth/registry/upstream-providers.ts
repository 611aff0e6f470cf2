// The identity providers of now, as the sign-in reads them.

import type { Person } from '../ports/ports.ts';
import type { AssertedPerson, UpstreamProvider } from '../ports/upstream-provider.ts';
import type { IdentityProvider } from './identity-provider.ts';

export interface UpstreamProviders {
  /** Those that are not suspended, in the order of the login page. */
  list(): readonly IdentityProvider[];
  /** Suspended ones too; undefined where there is none of this name. */
  provider(name: string): IdentityProvider | undefined;
  /** Where people of a provider sign in; undefined while it is suspended or has no credentials, and for an unknown name. */
  upstream(name: string): UpstreamProvider | undefined;
  /** Why a provider was not reached at the last attempt, for the log line only; undefined where it was. */
  faultOf(name: string): string | undefined;
  /**
   * Records what a provider asserts of a person now.
   * @returns the person; undefined for one who may hold nothing now
   * @throws StoreUnavailableError
   */
  remember(person: AssertedPerson, provider: IdentityProvider): Promise<Person | undefined>;
}

/** The identity of a provider: its issuer, or the host of a GitHub. */
export function issuerOf(provider: IdentityProvider): string {
  return provider.type === 'OIDC' ? provider.issuer : provider.host;
}
