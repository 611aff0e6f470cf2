// What the consent page shows of a request: resource by resource the scopes that are new and those allowed before, in the words
// of their owners; and what the client learns of the person.

import { consentNeeded, requestedAccess } from '../../oauth/access/consent.ts';
import { personClaims } from '../../oauth/access/scope-claims.ts';
import type { AcceptedAuthorization } from '../../oauth/endpoints/authorization-endpoint.ts';
import type { Consent } from '../../oauth/ports/login-stores.ts';
import type { Person } from '../../oauth/ports/ports.ts';
import type { Resource } from '../../oauth/registry/resource.ts';
import { type DisclosedPerson, personName, type ShownAccess, type ShownScope } from '../pages/consent-page.ts';
import { type PageLanguage, textIn } from '../pages/page-language.ts';

/** What the words of a page depend on. */
export interface ShownTo {
  /** What the person let the client do before. */
  readonly given: Consent | undefined;
  readonly language: PageLanguage;
  /** No place of its own: its scopes are about the person. */
  readonly issuer: string;
}

/** One entry for each resource with an owner, and one for all others together: at those a client may have the same scopes. */
export function shownAccess(
  check: AcceptedAuthorization,
  { given, language, issuer }: ShownTo,
): readonly ShownAccess[] {
  const requested = requestedAccess(check);
  const { newAccess } = consentNeeded(check, given);
  const groups = Map.groupBy(requested.keys(), (audience) => check.access.ownerOf(audience));
  return [...groups].map(([owner, audiences]) => {
    const scopesIn = (access: Consent) => new Set(audiences.flatMap((audience) => access.get(audience) ?? []));
    const asked = scopesIn(newAccess);
    const before = [...scopesIn(requested)].filter((scope) => !asked.has(scope));
    return {
      resources: audiences
        .filter((identifier) => identifier !== issuer)
        .map((identifier) => ({ identifier, name: owner && textIn(language, owner.displayName) })),
      asked: [...asked].map((name) => shownScope(name, owner, language)),
      given: before.map((name) => shownScope(name, owner, language)),
    };
  });
}

function shownScope(name: string, owner: Resource | undefined, language: PageLanguage): ShownScope {
  const declared = owner?.scopes.find((scope) => scope.name === name);
  return { name, description: declared && textIn(language, declared.description) };
}

/** A page is no list: the person sees which kind of groups they are. */
const MOST_SHOWN_GROUPS = 20;

/**
 * What ID tokens and userinfo disclose of a person to this client; undefined where that is nothing.
 * @param person as of now; undefined for one who may hold nothing now
 */
export function shownPerson(
  { client, request: { scope } }: AcceptedAuthorization,
  person: Person | undefined,
): DisclosedPerson | undefined {
  if (person === undefined || !scope.includes('openid')) return undefined;
  const { name, preferred_username: username, email, groups } = personClaims(scope, person, client);
  const disclosedGroups = Array.isArray(groups) ? (groups as readonly string[]) : [];
  const disclosed: DisclosedPerson = {
    name:
      username === undefined
        ? undefined
        : personName({ displayName: String(name ?? username), username: String(username) }),
    address: email === undefined ? undefined : String(email),
    groups: disclosedGroups.slice(0, MOST_SHOWN_GROUPS),
    moreGroups: Math.max(0, disclosedGroups.length - MOST_SHOWN_GROUPS),
  };
  const isNothing = disclosed.name === undefined && disclosed.address === undefined && disclosedGroups.length === 0;
  return isNothing ? undefined : disclosed;
}
