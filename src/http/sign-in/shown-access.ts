// What the consent page shows of a request: resource by resource the scopes that are new and those allowed before, in the words
// of their owners.

import { consentNeeded, requestedAccess } from '../../oauth/access/consent.ts';
import type { AcceptedAuthorization } from '../../oauth/endpoints/authorization-endpoint.ts';
import type { Consent } from '../../oauth/ports/login-stores.ts';
import type { Resource } from '../../oauth/registry/resource.ts';
import type { ShownAccess, ShownScope } from '../pages/consent-page.ts';
import { type PageLanguage, textIn } from '../pages/page-language.ts';

/**
 * One entry for each resource with an owner, and one for all others together: at those a client may have the same scopes.
 * @param given what the person let the client do before
 */
export function shownAccess(
  check: AcceptedAuthorization,
  given: Consent | undefined,
  language: PageLanguage,
): readonly ShownAccess[] {
  const requested = requestedAccess(check);
  const { newAccess } = consentNeeded(check, given);
  const groups = Map.groupBy(requested.keys(), (audience) => check.access.ownerOf(audience));
  return [...groups].map(([owner, audiences]) => {
    const scopesIn = (access: Consent) => new Set(audiences.flatMap((audience) => access.get(audience) ?? []));
    const asked = scopesIn(newAccess);
    const before = [...scopesIn(requested)].filter((scope) => !asked.has(scope));
    return {
      resources: audiences.map((identifier) => ({ identifier, name: owner && textIn(language, owner.displayName) })),
      asked: [...asked].map((name) => shownScope(name, owner, language)),
      given: before.map((name) => shownScope(name, owner, language)),
    };
  });
}

function shownScope(name: string, owner: Resource | undefined, language: PageLanguage): ShownScope {
  const declared = owner?.scopes.find((scope) => scope.name === name);
  return { name, description: declared && textIn(language, declared.description) };
}
