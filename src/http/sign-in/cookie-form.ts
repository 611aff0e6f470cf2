// What all our cookies have in common: no script reads them, no other site sends them along with a POST, and under an https
// issuer no neighbour of the host can set them.

import type { CookieSerializeOptions } from '@fastify/cookie';

/** How a cookie is named and written. */
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
