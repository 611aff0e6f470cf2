// An accepted ProtectedResource as the protocol core reads it, and what its owner grants of it.
// Immutable; a changed manifest becomes a new object in new resources.

import type { SenderConstraint } from './client.ts';

/** A text in the language of the manifest, and its translations by language tag (RFC 5646). */
export interface Text {
  /** Undefined where the manifest has none. */
  readonly text: string | undefined;
  readonly translations: Readonly<Record<string, string>>;
}

/** A scope that a resource declares. */
export interface DeclaredScope {
  readonly name: string;
  readonly description: Text;
}

/** Clients that an owner lets in. */
export interface AllowedClients {
  /** Selectors are resolved to the namespaces that have the labels now. */
  readonly namespaces: 'all' | ReadonlySet<string>;
  /** Names of OAuthClients; undefined for all. */
  readonly clients: readonly string[] | undefined;
  /** Undefined for all that the resource declares. */
  readonly scopes: readonly string[] | undefined;
}

/** An API with its own scopes, whose owner decides which clients get tokens for it. */
export interface Resource {
  readonly namespace: string;
  readonly name: string;
  /** The `aud` of its tokens (RFC 8707, RFC 9068 §3). */
  readonly identifier: string;
  readonly displayName: Text;
  readonly documentationUri: string | undefined;
  readonly policyUri: string | undefined;
  readonly tosUri: string | undefined;
  /** Whether its metadata may be read by anyone (RFC 9728). */
  readonly isDiscoverable: boolean;
  readonly scopes: readonly DeclaredScope[];
  readonly allowedClients: readonly AllowedClients[];
  /** The longest life of its access tokens, seconds; undefined: as long as each client's. */
  readonly maxLifetimeSeconds: number | undefined;
  /** What its access tokens have to be bound to; `Any` for either binding. */
  readonly senderConstraint: SenderConstraint | 'Any';
}

/** The part of a resource that decides who is granted what. */
export interface Grantor extends Pick<Resource, 'namespace' | 'allowedClients'> {
  readonly scopes: readonly Pick<DeclaredScope, 'name'>[];
}

/** The OAuthClient that a grant is for. */
export interface Grantee {
  readonly namespace: string;
  readonly name: string;
}

/**
 * The scopes that the owner of a resource grants to a client, in the order of the resource: all of them in its own
 * namespace, elsewhere those of the entries that let the client in. Undefined where it is not let in.
 */
export function grantedScopes(
  { namespace, scopes, allowedClients }: Grantor,
  client: Grantee,
): readonly string[] | undefined {
  const declared = scopes.map(({ name }) => name);
  if (namespace === client.namespace) return declared;
  const entries = allowedClients.filter((entry) => includes(entry, client));
  if (entries.length === 0) return undefined;
  return declared.filter((scope) => entries.some((entry) => entry.scopes?.includes(scope) ?? true));
}

function includes({ namespaces, clients }: AllowedClients, { namespace, name }: Grantee): boolean {
  if (namespaces !== 'all' && !namespaces.has(namespace)) return false;
  return clients?.includes(name) ?? true;
}
