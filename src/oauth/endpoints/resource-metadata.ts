// Protected resource metadata (RFC 9728): the document of a ProtectedResource and its address. The well-known path of the API
// itself is a rewrite to it.

import { PROOF_ALGORITHM_NAMES } from '../dpop/proof.ts';
import type { Resource, Text } from '../registry/resource.ts';

/**
 * The address of the document of a resource, by the issuer. Undefined where there is none: its owner wants none, or its
 * identifier is a URN (RFC 9728 §1.2 knows https addresses only; http on loopback is for development).
 */
export function resourceMetadataUrl(
  issuer: string,
  {
    namespace,
    name,
    identifier,
    isDiscoverable,
  }: Pick<Resource, 'namespace' | 'name' | 'identifier' | 'isDiscoverable'>,
): string | undefined {
  return isDiscoverable && /^https?:/.test(identifier) ? `${issuer}/resources/${namespace}/${name}` : undefined;
}

/**
 * The members of RFC 9728 §2 that apply; empty ones are left out (§3.2). `jwks_uri` is about keys of the API itself, of which
 * nothing is known here.
 */
export function protectedResourceMetadata(issuer: string, resource: Resource): object {
  const { identifier, displayName, scopes, documentationUri, policyUri, tosUri } = resource;
  return {
    resource: identifier,
    authorization_servers: [issuer],
    ...(scopes.length > 0 && { scopes_supported: scopes.map(({ name }) => name) }),
    bearer_methods_supported: ['header'],
    ...inLanguages('resource_name', displayName),
    ...(documentationUri !== undefined && { resource_documentation: documentationUri }),
    ...(policyUri !== undefined && { resource_policy_uri: policyUri }),
    ...(tosUri !== undefined && { resource_tos_uri: tosUri }),
    ...senderConstraintMembers(resource),
  };
}

/** RFC 9728 §2.1: the member, and one for each translation with its language tag after a `#`. */
function inLanguages(member: string, { text, translations }: Text): object {
  return {
    ...(text !== undefined && { [member]: text }),
    ...Object.fromEntries(Object.entries(translations).map(([tag, translated]) => [`${member}#${tag}`, translated])),
  };
}

/** What the tokens of the API have to be bound to. One that demands nothing promises nothing either. */
function senderConstraintMembers({ senderConstraint }: Resource): object {
  const proofs = { dpop_signing_alg_values_supported: PROOF_ALGORITHM_NAMES };
  const certificates = { tls_client_certificate_bound_access_tokens: true };
  switch (senderConstraint) {
    case 'None':
      return {};
    case 'DPoP':
      return { ...proofs, dpop_bound_access_tokens_required: true };
    case 'MutualTLS':
      return certificates;
    case 'Any':
      return { ...proofs, ...certificates };
  }
}
