// The access of a client with OpenID Connect: the issuer is one more audience, which alone has the scopes of OpenID
// Connect (Core §5.3). A token for an API has the scopes of the API, and is no key to what is known of the person.

import type { Client } from '../registry/client.ts';
import type { Registry } from '../registry/registry.ts';
import type { Resource } from '../registry/resource.ts';
import { type ClientAccess, clientAccess } from './client-access.ts';
import { parseScope } from './scope.ts';
import { OPENID_SCOPES } from './scope-claims.ts';

/**
 * The access for a grant of a person.
 * @param scope that of the request: its text, or the scope of a request that was validated before; undefined where it has
 *   none, and stands for the default one. Without `openid` the access is that of {@link clientAccess}
 */
export function accessForScope(
  scope: string | readonly string[] | undefined,
  client: Client,
  { registry, issuer }: { readonly registry: Registry; readonly issuer: string },
): ClientAccess {
  const access = clientAccess(client, registry, issuer);
  const asked = typeof scope === 'string' ? (parseScope(scope) ?? []) : (scope ?? client.defaultScopes);
  return asked.includes('openid') ? withOpenid(access, client, { issuer, isApart: true }) : access;
}

/**
 * The access for a token of a grant, which may be with OpenID Connect or not: only where the grant covers the issuer are the
 * scopes of OpenID Connect those of the issuer alone (`access.ts`).
 */
export function accessForGrants(
  client: Client,
  { registry, issuer }: { readonly registry: Registry; readonly issuer: string },
): ClientAccess {
  return withOpenid(clientAccess(client, registry, issuer), client, { issuer, isApart: false });
}

interface OpenidRules {
  readonly issuer: string;
  /** Whether no other audience has the scopes of the issuer. */
  readonly isApart: boolean;
}

function withOpenid(access: ClientAccess, client: Client, rules: OpenidRules): ClientAccess {
  return client.scopes.includes('openid') ? new OpenidAccess(access, client, rules) : access;
}

class OpenidAccess implements ClientAccess {
  readonly audiences: readonly string[];
  readonly scopes: readonly string[];
  readonly defaultAudience: string | undefined;
  readonly defaultAudiences: readonly string[];
  readonly issuer: string;
  readonly defaultScopes: readonly string[];
  readonly #access: ClientAccess;
  readonly #ofIssuer: readonly string[];
  readonly #isApart: boolean;

  constructor(access: ClientAccess, client: Client, { issuer, isApart }: OpenidRules) {
    this.#access = access;
    this.#isApart = isApart;
    this.issuer = issuer;
    this.#ofIssuer = client.scopes.filter((scope) => OPENID_SCOPES.includes(scope));
    this.audiences = [...access.audiences, issuer];
    // Audiences that have owners have scopes of those alone.
    this.scopes = [...new Set([...access.scopes, ...this.#ofIssuer])];
    this.defaultScopes = access.defaultScopes;
    const isDefault = client.defaultAudience === issuer;
    this.defaultAudience = isDefault || hasDerivedAudience(client) ? issuer : (access.defaultAudience ?? issuer);
    this.defaultAudiences = [...new Set([...(isDefault ? [] : access.defaultAudiences), issuer])];
  }

  scopesAt(audience: string): readonly string[] {
    if (audience === this.issuer) return this.#ofIssuer;
    const scopes = this.#access.scopesAt(audience);
    return this.#isApart ? scopes.filter((scope) => !this.#ofIssuer.includes(scope)) : scopes;
  }

  ownerOf(audience: string): Resource | undefined {
    return this.#access.ownerOf(audience);
  }
}

/** Whether the manifest names neither audiences nor resources: the one audience is derived from the namespace. */
function hasDerivedAudience({ audiences, resources, namespace }: Client): boolean {
  const [only] = audiences;
  return resources.length === 0 && audiences.length === 1 && only === `urn:grantry:ns:${namespace}:default`;
}
