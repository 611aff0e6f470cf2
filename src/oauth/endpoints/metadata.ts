// Authorization server metadata (RFC 8414): the document, made from the tables of grants, client authentication and proofs,
// and the paths that serve it. Scopes are per client and team, so they are not listed.

import { PROOF_ALGORITHM_NAMES } from '../dpop/proof.ts';
import { issuerPath } from '../values/issuer.ts';

/** The part of a client authentication method that the document depends on. */
export interface OfferedAuthMethod {
  readonly confidential: boolean;
  /** The JWS algorithms of its assertions; empty where it has none. */
  readonly signingAlgorithms: readonly string[];
}

/** The inputs of the document. */
export interface MetadataOptions {
  /** The configured issuer: no trailing slash, query or fragment. */
  readonly issuer: string;
  /** Wire names of the grants. */
  readonly grantTypes: readonly string[];
  /** The client authentication methods by wire name. */
  readonly authMethods: ReadonlyMap<string, OfferedAuthMethod>;
  /** The https origin where the endpoints are reached by mutual TLS; undefined where that is off. */
  readonly mtlsUrl?: string | undefined;
}

/** The members of RFC 8414 §2 that apply; empty arrays are left out. Built from the issuer, never from a Host header. */
export function authorizationServerMetadata({ issuer, grantTypes, authMethods, mtlsUrl }: MetadataOptions): object {
  const methods = [...authMethods.keys()];
  // A set: methods may sign by the same algorithms. Every method that signs is confidential.
  const signingAlgorithms = [...new Set([...authMethods.values()].flatMap((method) => method.signingAlgorithms))];
  const document: Readonly<Record<string, string | boolean | object>> = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: grantTypes,
    token_endpoint_auth_methods_supported: methods,
    token_endpoint_auth_signing_alg_values_supported: signingAlgorithms,
    revocation_endpoint: `${issuer}/revoke`,
    revocation_endpoint_auth_methods_supported: methods,
    revocation_endpoint_auth_signing_alg_values_supported: signingAlgorithms,
    introspection_endpoint: `${issuer}/introspect`,
    // RFC 7662 §2.1: the caller must be authorized, and a public client proves nothing.
    introspection_endpoint_auth_methods_supported: methods.filter((method) => authMethods.get(method)?.confidential),
    introspection_endpoint_auth_signing_alg_values_supported: signingAlgorithms,
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    dpop_signing_alg_values_supported: PROOF_ALGORITHM_NAMES,
    ...(mtlsUrl !== undefined && {
      tls_client_certificate_bound_access_tokens: true,
      mtls_endpoint_aliases: aliases(`${mtlsUrl}${issuerPath(issuer)}`),
    }),
  };
  return Object.fromEntries(
    Object.entries(document).filter(([, value]) => !(Array.isArray(value) && value.length === 0)),
  );
}

/** RFC 8705 §5: where a client with a certificate goes in place of the endpoints of the same names. */
function aliases(base: string): object {
  return {
    token_endpoint: `${base}/token`,
    revocation_endpoint: `${base}/revoke`,
    introspection_endpoint: `${base}/introspect`,
  };
}

/**
 * The absolute paths that answer the document. With a path in the issuer, the well-known path is inserted before it
 * (RFC 8414 §3.1); the same document is also below the issuer, where many clients request it first.
 */
export function metadataPaths(issuer: string): readonly string[] {
  const wellKnown = '/.well-known/oauth-authorization-server';
  const path = issuerPath(issuer);
  return path === '' ? [wellKnown] : [`${wellKnown}${path}`, `${path}${wellKnown}`];
}
