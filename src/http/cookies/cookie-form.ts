// The attributes of every cookie of this server: no script reads it, no other site sends it along with a POST, and
// under an https issuer no sibling domain can set it.

import type { CookieSerializeOptions } from '@fastify/cookie';

/** The name prefix and the attributes of a cookie. */
export interface CookieForm {
  readonly prefix: string;
  readonly attributes: Readonly<CookieSerializeOptions>;
}

/** By the issuer's scheme: an http issuer is on loopback, and browsers refuse `__Host-` without TLS. */
export function cookieForm(issuer: string): CookieForm {
  const secure = issuer.startsWith('https:');
  // Path=/ also under an issuer with a path: `__Host-` demands it.
  return { prefix: secure ? '__Host-' : '', attributes: { path: '/', httpOnly: true, secure, sameSite: 'lax' } };
}
