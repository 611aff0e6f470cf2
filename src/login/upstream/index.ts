// The table of upstream sign-in: one client for each type of identity provider.

import type { IdentityProvider } from '../../oauth/registry/identity-provider.ts';
import { GitHubProviderClient } from './github.ts';
import { OidcProviderClient } from './oidc.ts';
import type { ProviderClient, ProviderClientOptions } from './provider-client.ts';

type ClientOf<Type extends IdentityProvider['type']> = (
  provider: Extract<IdentityProvider, { readonly type: Type }>,
  options: ProviderClientOptions,
) => ProviderClient;

const CLIENTS: { readonly [Type in IdentityProvider['type']]: ClientOf<Type> } = {
  OIDC: (provider, options) => new OidcProviderClient(provider, options),
  GitHub: (provider, options) => new GitHubProviderClient(provider, options),
};

/** The client of a provider. */
export function providerClient(provider: IdentityProvider, options: ProviderClientOptions): ProviderClient {
  const make = CLIENTS[provider.type] as ClientOf<IdentityProvider['type']>;
  return make(provider as never, options);
}
