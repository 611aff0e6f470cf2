// Whether the sender of a request holds what its access token is bound to: the key of a DPoP proof (RFC 9449 §7), a client
// certificate (RFC 8705 §3), or nothing.

import { hash } from 'node:crypto';
import type { ProofNonces } from '../dpop/nonces.ts';
import { isNonceFault, type ProofVerifier, type VerifiedProof } from '../dpop/proof.ts';
import type { JsonObject } from '../values/jws.ts';
import type { BearerError } from './bearer-error.ts';
import type { PresentedCredentials } from './credentials.ts';
import { normalizedPath } from './request-target.ts';

/** What tokens have to be bound to; `None` takes bearer tokens as well as bound ones. */
export type BindingRule = 'None' | 'DPoP' | 'MutualTLS' | 'Any';

/** A request beside its access token. */
export interface SenderFacts {
  readonly method: string;
  /** The addresses of the request, as configured and never by its Host; empty where the API takes no proofs. */
  readonly urls: readonly string[];
  /** Each DPoP header, as sent. */
  readonly proofs: readonly string[];
  /** The DER of the client certificate; undefined without one. */
  readonly certificate: Uint8Array | undefined;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** How senders are verified. */
export interface SenderRules {
  readonly verifier: ProofVerifier;
  readonly nonces: ProofNonces;
  readonly requireBinding: BindingRule;
}

/** A sender that holds what the token is bound to. */
export interface ProvenSender {
  /** Undefined without DPoP. Its mark is still to be claimed. */
  readonly proof: VerifiedProof | undefined;
}

/** What a `cnf` claim names (RFC 7800 §3.1). */
interface Bindings {
  readonly jkt: string | undefined;
  readonly x5t: string | undefined;
}

/** Verifies the sender of a token with these claims. The token itself is verified before. */
export function verifySender(
  credentials: PresentedCredentials,
  { cnf }: JsonObject,
  facts: SenderFacts,
  rules: SenderRules,
): ProvenSender | BearerError {
  const { scheme } = credentials;
  const refuse = (reason: string): BearerError => ({ code: 'invalid_token', reason, scheme });
  const bindings = bindingsOf(cnf);
  if (bindings === undefined) return refuse('confirmation_unknown');
  const { jkt, x5t } = bindings;
  if (!isBoundAsRequired(bindings, rules.requireBinding)) return refuse('binding_required');
  if (scheme === 'Bearer' && jkt !== undefined) return refuse('bound_token_as_bearer');
  if (scheme === 'DPoP' && jkt === undefined) return refuse('unbound_token_under_dpop');
  if (x5t !== undefined && !isCertificateOf(x5t, facts.certificate)) {
    return refuse(facts.certificate === undefined ? 'certificate_missing' : 'certificate_mismatch');
  }
  return jkt === undefined ? { proof: undefined } : verifyProof({ token: credentials.token, jkt }, facts, rules);
}

function verifyProof(
  { token, jkt }: { readonly token: string; readonly jkt: string },
  { method, urls, proofs, now }: SenderFacts,
  { verifier, nonces }: SenderRules,
): ProvenSender | BearerError {
  const scheme = 'DPoP';
  if (urls.length === 0) return { code: 'invalid_token', reason: 'dpop_not_taken', scheme };
  const [header, ...more] = proofs;
  if (header === undefined) return { code: 'invalid_dpop_proof', reason: 'dpop_proof_missing', scheme };
  if (more.length > 0) return { code: 'invalid_dpop_proof', reason: 'dpop_proof_repeated', scheme };
  const expected = { method, urls, spelled: normalizedPath, now, nonces, accessToken: token, thumbprint: jkt };
  const proof = verifier.verify(header, expected);
  if (typeof proof !== 'string') return { proof };
  if (isNonceFault(proof)) return { code: 'use_dpop_nonce', reason: proof, scheme, dpopNonce: nonces.make(now) };
  // With another key the proof may be right: it is the token that is not its sender's.
  return { code: proof === 'dpop_key_mismatch' ? 'invalid_token' : 'invalid_dpop_proof', reason: proof, scheme };
}

/** Undefined for a claim with a member that is not understood: what it demands cannot be checked. */
function bindingsOf(cnf: unknown): Bindings | undefined {
  if (cnf === undefined) return { jkt: undefined, x5t: undefined };
  if (typeof cnf !== 'object' || cnf === null || Array.isArray(cnf)) return undefined;
  const entries = Object.entries(cnf);
  const isUnderstood = entries.every(
    ([name, value]) => (name === 'jkt' || name === 'x5t#S256') && typeof value === 'string' && value !== '',
  );
  if (!isUnderstood || entries.length === 0) return undefined;
  const members = new Map<string, string>(entries);
  return { jkt: members.get('jkt'), x5t: members.get('x5t#S256') };
}

function isBoundAsRequired({ jkt, x5t }: Bindings, rule: BindingRule): boolean {
  switch (rule) {
    case 'None':
      return true;
    case 'DPoP':
      return jkt !== undefined;
    case 'MutualTLS':
      return x5t !== undefined;
    case 'Any':
      return jkt !== undefined || x5t !== undefined;
  }
}

/** Both are public: nothing is revealed by the time of the comparison. */
function isCertificateOf(thumbprint: string, der: Uint8Array | undefined): boolean {
  return der !== undefined && hash('sha256', der, 'base64url') === thumbprint;
}
