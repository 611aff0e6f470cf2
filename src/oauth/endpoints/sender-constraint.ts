// What the access token of a request is bound to (RFC 8705 §3, RFC 9449 §5), by the client's sender constraint and what
// the request proves to hold.

import { hash } from 'node:crypto';
import { isPublic } from '../client-auth/index.ts';
import type { Credentials, ReplayMark } from '../client-auth/method.ts';
import type { ProofNonces } from '../dpop/nonces.ts';
import { isNonceFault, type ProofFault, type ProofVerifier, type VerifiedProof } from '../dpop/proof.ts';
import { OAuthError } from '../ports/error.ts';
import type { Clock } from '../ports/ports.ts';
import type { Confirmation } from '../ports/token-stores.ts';
import type { Client } from '../registry/client.ts';
import { certificateConfirmation } from '../values/confirmation.ts';

/** How the proofs of a POST endpoint are verified. */
export interface EndpointProofs {
  readonly verifier: ProofVerifier;
  readonly nonces: ProofNonces;
  /** The addresses of the endpoint: below the issuer, and its alias for mutual TLS if there is one. */
  readonly urls: readonly string[];
}

/** What a request proves to hold. */
export interface ProvenHolding {
  /** The marks of further credentials that count once. */
  readonly marks: readonly ReplayMark[];
  /** Undefined for a bearer token. */
  readonly confirmation: Confirmation | undefined;
  /** The nonce for the next proof, where the client needs another one (RFC 9449 §8.2). */
  readonly dpopNonce: string | undefined;
}

/**
 * What the token that a request will get is bound to.
 * @throws OAuthError invalid_request; invalid_dpop_proof; use_dpop_nonce, with a nonce
 */
export function provenHolding(
  client: Client,
  { certificate, proof }: Credentials,
  { clock, proofs }: { readonly clock: Clock; readonly proofs: EndpointProofs },
): ProvenHolding {
  if (client.senderConstraint === 'MutualTLS') {
    // A certificate binds only where the manifest says so: beside another constraint it authenticates at most.
    if (proof !== undefined) throw refuse('dpop_proof_unexpected');
    if (certificate === undefined) throw refuse('certificate_missing');
    const confirmation = certificateConfirmation(hash('sha256', certificate.der, 'base64url'));
    return { confirmation, marks: [], dpopNonce: undefined };
  }
  if (proof === undefined) {
    if (client.senderConstraint === 'DPoP') throw invalidProof('dpop_proof_missing');
    return { confirmation: undefined, marks: [], dpopNonce: undefined };
  }
  const now = clock.now();
  const { verifier, nonces, urls } = proofs;
  const verified = verifier.verify(proof, { method: 'POST', urls, now, nonces });
  if (typeof verified === 'string')
    throw isNonceFault(verified) ? nonceNeeded(verified, nonces.make(now)) : invalidProof(verified);
  return {
    confirmation: verified.confirmation,
    marks: marksOf(verified, client),
    dpopNonce: nonces.rule === 'required' && verified.nonce?.isCurrent === false ? nonces.make(now) : undefined,
  };
}

/**
 * A public client's proof leaves no mark: its code or refresh token can be used once itself, and strangers could fill the store
 * under its id.
 */
function marksOf({ mark }: VerifiedProof, client: Client): ProvenHolding['marks'] {
  return isPublic(client) ? [] : [{ kind: 'dpop_proof', ...mark }];
}

function invalidProof(reason: ProofFault | 'dpop_proof_missing'): OAuthError {
  return new OAuthError('invalid_dpop_proof', 'A valid DPoP proof is required.', { reason });
}

function nonceNeeded(reason: ProofFault, dpopNonce: string): OAuthError {
  return new OAuthError('use_dpop_nonce', 'The DPoP proof needs the nonce of this answer.', { reason, dpopNonce });
}

function refuse(reason: string): OAuthError {
  return new OAuthError('invalid_request', 'The request does not prove what the token is bound to.', { reason });
}
