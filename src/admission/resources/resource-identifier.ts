// The identifier of a ProtectedResource: the value that is `aud` of its tokens and `resource` of a request (RFC 8707).
// One API has one spelling of it, so that no identifier can be mistaken for another one.

import { isResourceIndicator } from '../../oauth/access/resource-indicator.ts';
import { withoutFinalSlash } from '../../oauth/registry/resources.ts';
import { isLoopback } from '../../oauth/values/redirect-uri.ts';

const NAMESPACE_URN = 'urn:grantry:ns:';
/** RFC 8141 §2: the namespace is case-insensitive, so only one spelling of it is accepted. */
const URN = /^urn:[a-z0-9][a-z0-9-]{0,30}[a-z0-9]:[^?%]+$/;

/** The identifier of a resource whose manifest gives none. */
export function derivedIdentifier({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${NAMESPACE_URN}${namespace}:${name}`;
}

/**
 * How an identifier breaks the rules, as the end of a sentence; undefined when it breaks none.
 * @param place.namespace of the resource
 * @param place.issuer undefined where it is not known
 */
export function identifierFault(
  identifier: string,
  { namespace, issuer }: { readonly namespace: string; readonly issuer: string | undefined },
): string | undefined {
  if (!isResourceIndicator(identifier)) return 'is not an absolute URI without fragment (RFC 8707 section 2)';
  if (/[%?]/.test(identifier)) return 'has a query or an escape; a resource is compared letter by letter';
  // The endpoints of the issuer would accept a token of any tenant.
  if (issuer !== undefined && withoutFinalSlash(identifier) === withoutFinalSlash(issuer)) {
    return 'is the issuer, which is the audience of its own endpoints only';
  }
  if (identifier.startsWith('urn:')) return urnFault(identifier, namespace);
  return addressFault(identifier);
}

function urnFault(identifier: string, namespace: string): string | undefined {
  if (!URN.test(identifier)) return 'is not a URN with a lower-case namespace (RFC 8141)';
  const isForeign = identifier.startsWith(NAMESPACE_URN) && !identifier.startsWith(`${NAMESPACE_URN}${namespace}:`);
  return isForeign ? `is kept for another namespace; here it begins with ${NAMESPACE_URN}${namespace}:` : undefined;
}

function addressFault(identifier: string): string | undefined {
  const url = URL.parse(identifier);
  const isSecure = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(identifier));
  if (url === null || !isSecure) return 'is neither https, nor http on a loopback address, nor a URN';
  if (url.username !== '' || url.password !== '' || identifier.includes('@')) return 'has a user name';
  const isAsShown = url.href === identifier || url.href === `${identifier}/`;
  if (!isAsShown || url.hostname.endsWith('.')) return 'is not written as browsers show it';
  return undefined;
}
