// `spec.signIn` of a client limits which people may use it. Its names are no references that a client waits for: where an
// IdentityProvider does not exist, no person signs in through it.

import type { SignInLimits } from '../../oauth/registry/client.ts';
import { LOCAL_USERS } from '../../oauth/registry/identity-provider.ts';
import type { Fault } from '../kinds/conditions.ts';
import type { CommonSpec } from '../kinds/oauth-client.ts';

/** The limits of a manifest; undefined where they leave no person out. */
export function signInLimits({ signIn }: Pick<CommonSpec, 'signIn'>): SignInLimits | undefined {
  if (signIn === undefined || (signIn.identityProviders.length === 0 && signIn.groups.length === 0)) return undefined;
  return signIn;
}

/**
 * One warning for each name that no IdentityProvider has.
 * @param providers all their names; where there are none, they are assumed to be elsewhere
 */
export function missingProviders(
  { signIn }: Pick<CommonSpec, 'signIn'>,
  providers: ReadonlySet<string>,
): readonly Fault<'IdentityProviderNotFound'>[] {
  if (signIn === undefined || providers.size === 0) return [];
  return signIn.identityProviders.flatMap((name, index) => {
    if (name === LOCAL_USERS || providers.has(name)) return [];
    const message = 'No IdentityProvider has this name: until one has, no person signs in to this client by it.';
    return [{ path: ['spec', 'signIn', 'identityProviders', index], reason: 'IdentityProviderNotFound', message }];
  });
}
