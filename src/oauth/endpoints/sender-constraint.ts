// What the access token of a request is bound to (RFC 8705 §3, RFC 9449 §5), by the client's sender constraint and what
// the request proves to hold.

import { hash } from 'node:crypto';
import type { Credentials } from '../client-auth/method.ts';
import { OAuthError } from '../ports/error.ts';
import type { Confirmation } from '../ports/token-stores.ts';
import type { Client } from '../registry/client.ts';
import { certificateConfirmation } from '../values/confirmation.ts';

/**
 * The confirmation of the token that a request will get; undefined for a bearer token.
 * @throws OAuthError invalid_request, invalid_dpop_proof
 */
export function confirmationOf(client: Client, { certificate, proof }: Credentials): Confirmation | undefined {
  switch (client.senderConstraint) {
    case 'None':
      return undefined;
    case 'DPoP':
      throw new OAuthError('invalid_dpop_proof', 'A DPoP proof is required.', { reason: 'dpop_proof_missing' });
    case 'MutualTLS':
      // A certificate binds only where the manifest says so: beside another constraint it authenticates at most.
      if (proof !== undefined) throw refuse('dpop_proof_unexpected');
      if (certificate === undefined) throw refuse('certificate_missing');
      return certificateConfirmation(hash('sha256', certificate.der, 'base64url'));
  }
}

function refuse(reason: string): OAuthError {
  return new OAuthError('invalid_request', 'The request does not prove what the token is bound to.', { reason });
}
