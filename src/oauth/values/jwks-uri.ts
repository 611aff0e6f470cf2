// The addresses of published key sets (`jwks_uri`, RFC 7591 §2): which may be registered, and therefore fetched. Whether
// the policy of a client permits the host is validated in `admission/`, where the host may lie in `outbound/`.

import { redirectUriFault } from './redirect-uri.ts';

/** Why an address may not be registered; each has a sentence for people in `admission/`. */
export type JwksUriFault = 'not_https' | 'userinfo' | 'fragment' | 'address_literal' | 'malformed';

// As URL parsers show hosts: `0x7f.1` and `2130706433` are 127.0.0.1 to them.
const ADDRESS_LITERAL = /^\[|^\d+(?:\.\d+){3}$/;

/**
 * Why no key set may be fetched from this address, undefined when one may: https, the host a name in lower case, without
 * userinfo and fragment. An address literal is in no certificate of a public authority, and is looked up nowhere: no
 * check of looked-up addresses would see it.
 */
export function jwksUriFault(uri: string): JwksUriFault | undefined {
  if (!uri.startsWith('https://')) return 'not_https';
  const fault = redirectUriFault(uri);
  if (fault === 'userinfo' || fault === 'fragment') return fault;
  if (ADDRESS_LITERAL.test(URL.parse(uri)?.hostname ?? '')) return 'address_literal';
  // What is left beside form is about the parameters of an authorization response.
  return fault === undefined || fault === 'response_parameter' ? undefined : 'malformed';
}
