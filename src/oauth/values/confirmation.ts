// What a token is bound to (RFC 7800): the key of a DPoP proof or a client certificate. One string everywhere inside; the
// `cnf` claim and the token type on the wire.

import type { Confirmation } from '../ports/token-stores.ts';

/** The `cnf` claim of a token. */
export type ConfirmationClaim = { readonly jkt: string } | { readonly 'x5t#S256': string };

/** @param thumbprint base64url of the SHA-256 thumbprint of the key (RFC 7638) */
export function keyConfirmation(thumbprint: string): Confirmation {
  return `jkt.${thumbprint}`;
}

/** @param thumbprint base64url of the SHA-256 of the certificate in DER */
export function certificateConfirmation(thumbprint: string): Confirmation {
  return `x5t.${thumbprint}`;
}

/** The thumbprint that a confirmation was made of. */
export function thumbprintOf(confirmation: Confirmation): string {
  return confirmation.slice(4);
}

export function confirmationClaim(confirmation: Confirmation): ConfirmationClaim {
  const thumbprint = thumbprintOf(confirmation);
  return confirmation.startsWith('jkt.') ? { jkt: thumbprint } : { 'x5t#S256': thumbprint };
}

/** RFC 9449 §5: a token that is bound to a DPoP key is no bearer token; one bound to a certificate is (RFC 8705 §3). */
export function tokenTypeOf(confirmation: Confirmation | undefined): 'DPoP' | 'Bearer' {
  return confirmation?.startsWith('jkt.') ? 'DPoP' : 'Bearer';
}

/** The token type by the `cnf` claim of a token. */
export function tokenTypeOfClaim(claim: ConfirmationClaim | undefined): 'DPoP' | 'Bearer' {
  return claim !== undefined && 'jkt' in claim ? 'DPoP' : 'Bearer';
}
