// The access that a client may have now: which audiences, and which scopes at each (RFC 6749 §3.3, RFC 8707). The manifest
// of the client names both by leave of an administrator; the owners of resources grant theirs.

import type { Client } from '../registry/client.ts';
import type { Registry } from '../registry/registry.ts';
import { grantedScopes, type Resource } from '../registry/resource.ts';

/** The access of one client by one registry. */
export interface ClientAccess {
  /** The audiences that the client may have tokens for; may be empty. */
  readonly audiences: readonly string[];
  /** Every scope that the client may have at any of them. */
  readonly scopes: readonly string[];
  /** The audience of a token request that names none; undefined where a request has to name one. */
  readonly defaultAudience: string | undefined;
  /** The audiences of a grant whose request names none; empty where a request has to name one. */
  readonly defaultAudiences: readonly string[];
  /** With OpenID Connect the issuer: each grant covers it. */
  readonly issuer: string | undefined;
  readonly defaultScopes: readonly string[];
  /** The scopes that the client may have at one audience; empty for one that it may not have. */
  scopesAt(audience: string): readonly string[];
  /** The resource whose owner decides on an audience; undefined where it has no owner. */
  ownerOf(audience: string): Resource | undefined;
}

/**
 * The access of a client without OpenID Connect. Where no audience of it has an owner that is its manifest alone.
 * @param issuer of this server: as `defaultAudience` it is the default with OpenID Connect alone (`openid-access.ts`)
 */
export function clientAccess(
  client: Client,
  { resources }: Pick<Registry, 'resources'>,
  issuer?: string,
): ClientAccess {
  const { audiences } = client;
  const defaultAudience = client.defaultAudience === issuer ? undefined : client.defaultAudience;
  const isGranted = client.resources.length > 0;
  if (!isGranted && (resources.size === 0 || !audiences.some((audience) => resources.ownerOf(audience)))) {
    return new ManifestAccess(client, defaultAudience);
  }
  const at = new Map(audiences.map((audience) => [audience, permittedAt(resources.ownerOf(audience), client)]));
  for (const { namespace = client.namespace, name, scopes } of client.resources) {
    const resource = resources.find(namespace, name);
    const granted = resource && grantedScopes(resource, client);
    if (resource === undefined || granted === undefined) continue;
    const listed = scopes && new Set(scopes);
    const wanted = listed === undefined ? granted : granted.filter((scope) => listed.has(scope));
    const { identifier } = resource;
    at.set(identifier, [...new Set([...(at.get(identifier) ?? []), ...wanted])]);
  }
  return new OwnedAccess({ at, resources, defaultAudience, defaultScopes: client.defaultScopes });
}

/** An administrator who permits an audience that has an owner permits the scopes that the owner declares. */
function permittedAt(owner: Resource | undefined, { scopes }: Client): readonly string[] {
  if (owner === undefined) return scopes;
  const declared = new Set(owner.scopes.map(({ name }) => name));
  return scopes.filter((scope) => declared.has(scope));
}

class ManifestAccess implements ClientAccess {
  readonly audiences: readonly string[];
  readonly scopes: readonly string[];
  readonly defaultAudience: string | undefined;
  readonly defaultAudiences: readonly string[];
  readonly issuer = undefined;
  readonly defaultScopes: readonly string[];

  constructor({ audiences, scopes, defaultScopes }: Client, defaultAudience: string | undefined) {
    this.audiences = audiences;
    this.scopes = scopes;
    this.defaultAudience = defaultOf(audiences, defaultAudience);
    this.defaultAudiences = this.defaultAudience === undefined ? [] : [this.defaultAudience];
    this.defaultScopes = defaultScopes;
  }

  scopesAt(audience: string): readonly string[] {
    return this.audiences.includes(audience) ? this.scopes : [];
  }

  ownerOf(): undefined {
    return undefined;
  }
}

interface OwnedAccessParts extends Pick<Client, 'defaultAudience' | 'defaultScopes'> {
  /** The scopes at each audience. */
  readonly at: ReadonlyMap<string, readonly string[]>;
  readonly resources: Registry['resources'];
}

class OwnedAccess implements ClientAccess {
  readonly audiences: readonly string[];
  readonly scopes: readonly string[];
  readonly defaultAudience: string | undefined;
  readonly defaultAudiences: readonly string[];
  readonly issuer = undefined;
  readonly defaultScopes: readonly string[];
  readonly #at: ReadonlyMap<string, readonly string[]>;
  readonly #resources: Registry['resources'];

  constructor({ at, resources, defaultAudience, defaultScopes }: OwnedAccessParts) {
    this.#at = at;
    this.#resources = resources;
    this.audiences = [...at.keys()];
    this.scopes = [...new Set([...at.values()].flat())];
    this.defaultAudience = defaultOf(this.audiences, defaultAudience);
    this.defaultAudiences = this.defaultAudience === undefined ? [] : [this.defaultAudience];
    this.defaultScopes = defaultScopes;
  }

  scopesAt(audience: string): readonly string[] {
    return this.#at.get(audience) ?? [];
  }

  ownerOf(audience: string): Resource | undefined {
    return this.#resources.ownerOf(audience);
  }
}

// Admission demands a default where there are several.
function defaultOf(audiences: readonly string[], given: string | undefined): string | undefined {
  return given ?? (audiences.length === 1 ? audiences[0] : undefined);
}
