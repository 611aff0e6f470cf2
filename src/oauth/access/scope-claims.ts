// THE TABLE of what a scope discloses to a client of the person who signed in (OpenID Connect Core §5.4): a scope is one line.
// ID tokens and userinfo have the same claims.

import type { Person } from '../ports/ports.ts';
import { matchingGroups } from './group-filter.ts';

/** The value of a claim; undefined leaves it out. */
type Claim = (person: Person) => string | boolean | readonly string[] | undefined;

const CLAIMS_OF_SCOPE: Readonly<Record<string, Readonly<Record<string, Claim>>>> = {
  profile: { name: ({ displayName }) => displayName, preferred_username: ({ username }) => username },
  // Only a verified address is known of a person.
  email: { email: ({ email }) => email, email_verified: ({ email }) => (email === undefined ? undefined : true) },
  // An empty list in place of none: rules of API servers over an absent claim fail.
  groups: { groups: ({ groups }) => groups },
};

/** The scopes of OpenID Connect that this issuer serves (Core §5.4, §11): they are no scopes of an API. */
export const OPENID_SCOPES: readonly string[] = ['openid', ...Object.keys(CLAIMS_OF_SCOPE), 'offline_access'];

/** The names of all claims about a person. */
export const PERSON_CLAIMS: readonly string[] = Object.values(CLAIMS_OF_SCOPE).flatMap((claims) => Object.keys(claims));

/** The claims about a person, by name; none of them is of the protocol. */
export type PersonClaims = Readonly<Record<string, string | boolean | readonly string[]>>;

/**
 * The claims of a scope about a person as of now.
 * @param groups the globs of the client, which filter the groups
 */
export function personClaims(
  scope: readonly string[],
  person: Person,
  { groups }: { readonly groups: readonly string[] },
): PersonClaims {
  const disclosed: Person = { ...person, groups: matchingGroups(person.groups, groups) };
  const claims: Record<string, string | boolean | readonly string[]> = {};
  for (const token of scope) {
    for (const [name, claim] of Object.entries(ownClaims(token))) {
      const value = claim(disclosed);
      if (value !== undefined) claims[name] = value;
    }
  }
  return claims;
}

/** A scope is any text: none may find a member that each object has. */
function ownClaims(scope: string): Readonly<Record<string, Claim>> {
  return Object.hasOwn(CLAIMS_OF_SCOPE, scope) ? (CLAIMS_OF_SCOPE[scope] ?? {}) : {};
}
