// Which people may use a client: by the party that asserts them, and by their groups. All people may, unless the manifest
// of the client says otherwise.

import type { Person } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';
import { LOCAL_USERS } from '../registry/identity-provider.ts';

/** Whether this person, as known now, may use the client. */
export function maySignIn(
  client: Pick<Client, 'signIn'>,
  { provider, groups: held }: Pick<Person, 'provider' | 'groups'>,
): boolean {
  if (client.signIn === undefined) return true;
  const { groups } = client.signIn;
  return (
    isOpenTo(client, provider?.name ?? LOCAL_USERS) && (groups.length === 0 || groups.some((one) => held.includes(one)))
  );
}

/**
 * Whether people of a source may use the client, as far as that decides it.
 * @param source the name of an identity provider, or {@link LOCAL_USERS}
 */
export function isOpenTo({ signIn }: Pick<Client, 'signIn'>, source: string): boolean {
  if (signIn === undefined || signIn.identityProviders.length === 0) return true;
  return signIn.identityProviders.includes(source);
}
