// Authorization server metadata (RFC 8414), which is OpenID Connect Discovery's too: the document, made from the tables of
// grants, client authentication, proofs and claims, and the paths that serve it. Of the scopes those of OpenID Connect are
// listed: others are per client and team.

import { OPENID_SCOPES, PERSON_CLAIMS } from '../access/scope-claims.ts';
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
  /** The JWS algorithms that ID tokens can have now. */
  readonly idTokenAlgorithms: readonly string[];
  /** The https origin where the endpoints are reached by mutual TLS; undefined where that is off. */
  readonly mtlsUrl?: string | undefined;
}

/**
 * The members of RFC 8414 §2 and OpenID Connect Discovery §3 that apply; empty arrays are left out. Built from the issuer,
 * never from a Host header.
 */
export function authorizationServerMetadata(options: MetadataOptions): object {
  const { issuer, grantTypes, authMethods, mtlsUrl } = options;
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
    ...openidMembers(options),
    ...(mtlsUrl !== undefined && {
      tls_client_certificate_bound_access_tokens: true,
      mtls_endpoint_aliases: aliases(`${mtlsUrl}${issuerPath(issuer)}`),
    }),
  };
  return Object.fromEntries(
    Object.entries(document).filter(([, value]) => !(Array.isArray(value) && value.length === 0)),
  );
}

/** The claims of an ID token beside those about the person (Core §2). */
const PROTOCOL_CLAIMS = ['iss', 'sub', 'aud', 'exp', 'iat', 'auth_time', 'nonce', 'at_hash', 'sid', 'jti'];

/** The members of OpenID Connect Discovery §3 and the specifications beside it. */
function openidMembers({
  issuer,
  idTokenAlgorithms,
}: MetadataOptions): Readonly<Record<string, string | boolean | object>> {
  return {
    userinfo_endpoint: `${issuer}/userinfo`,
    end_session_endpoint: `${issuer}/logout`,
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
    scopes_supported: OPENID_SCOPES,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: idTokenAlgorithms,
    claims_supported: [...PROTOCOL_CLAIMS, ...PERSON_CLAIMS],
    prompt_values_supported: ['none', 'login', 'consent', 'select_account'],
    claims_parameter_supported: false,
    // Absent, it would be supported.
    request_uri_parameter_supported: false,
  };
}

/** RFC 8705 §5: where a client with a certificate goes in place of the endpoints of the same names. */
function aliases(base: string): object {
  return {
    token_endpoint: `${base}/token`,
    revocation_endpoint: `${base}/revoke`,
    introspection_endpoint: `${base}/introspect`,
    userinfo_endpoint: `${base}/userinfo`,
  };
}

const WELL_KNOWN = ['/.well-known/oauth-authorization-server', '/.well-known/openid-configuration'];

/**
 * The absolute paths that answer the document, under both of its well-known names. With a path in the issuer each is inserted
 * before it (RFC 8414 §3.1), and appended to it (Discovery §4): clients request either.
 */
export function metadataPaths(issuer: string): readonly string[] {
  const path = issuerPath(issuer);
  return path === '' ? WELL_KNOWN : WELL_KNOWN.flatMap((name) => [`${name}${path}`, `${path}${name}`]);
}
