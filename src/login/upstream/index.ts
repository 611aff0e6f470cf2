// The table of upstream sign-in: one source for each type of identity provider.

import type { IdentityProvider } from '../../oauth/registry/identity-provider.ts';
import { GitHubSource } from './github.ts';
import { OidcSource } from './oidc.ts';
import type { Source, SourceOptions } from './source.ts';

type SourceOf<Type extends IdentityProvider['type']> = (
  provider: Extract<IdentityProvider, { readonly type: Type }>,
  options: SourceOptions,
) => Source;

const SOURCES: { readonly [Type in IdentityProvider['type']]: SourceOf<Type> } = {
  OIDC: (provider, options) => new OidcSource(provider, options),
  GitHub: (provider, options) => new GitHubSource(provider, options),
};

/** The source of a provider. */
export function sourceOf(provider: IdentityProvider, options: SourceOptions): Source {
  const make = SOURCES[provider.type] as SourceOf<IdentityProvider['type']>;
  return make(provider as never, options);
}
