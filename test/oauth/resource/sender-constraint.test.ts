// Which senders may use a bound token (docs/scope.md: 9449-5).

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ProofNonces } from '../../../src/oauth/dpop/nonces.ts';
import { ProofVerifier } from '../../../src/oauth/dpop/proof.ts';
import type { Scheme } from '../../../src/oauth/resource/bearer-error.ts';
import { type BindingRule, type SenderFacts, verifySender } from '../../../src/oauth/resource/sender-constraint.ts';
import { DpopHolder } from '../../dpop-holder.ts';

const URL = 'https://notes.example/api/notes';
const NOW = 1_800_000_000_000;
const TOKEN = 'an-access-token';
const nonces = new ProofNonces({ issuer: 'https://auth.example', peppers: [Buffer.alloc(32, 1)], rule: 'on-demand' });
const verifier = new ProofVerifier();
const holder = new DpopHolder();
const der = Buffer.from('a certificate');
const x5t = createHash('sha256').update(der).digest('base64url');
const ath = createHash('sha256').update(TOKEN).digest('base64url');

interface Sent extends Partial<SenderFacts> {
  readonly scheme?: Scheme;
  readonly cnf?: unknown;
  readonly requireBinding?: BindingRule;
}

function outcome({ scheme = 'Bearer', cnf, requireBinding = 'None', ...facts }: Sent) {
  const credentials = { token: TOKEN, scheme, transport: 'header' } as const;
  const sent = { method: 'GET', urls: [URL], proofs: [], certificate: undefined, now: NOW, ...facts };
  const result = verifySender(credentials, { cnf }, sent, { verifier, nonces, requireBinding });
  return 'reason' in result ? `${result.code} ${result.reason}` : 'passes';
}

const proof = (claims = {}, by = holder) => by.proof(URL, NOW, { claims: { htm: 'GET', ath, ...claims } });
const bound = { scheme: 'DPoP', cnf: { jkt: holder.thumbprint } } as const;

describe('a token', () => {
  it.each([
    ['that is not bound, as Bearer', {}, 'passes'],
    ['that is not bound, under DPoP', { scheme: 'DPoP', proofs: [proof()] }, 'invalid_token unbound_token_under_dpop'],
    ['of a key, with its proof', { ...bound, proofs: [proof()] }, 'passes'],
    ['of a key, as Bearer', { ...bound, scheme: 'Bearer', proofs: [proof()] }, 'invalid_token bound_token_as_bearer'],
    ['of a key, without a proof', bound, 'invalid_dpop_proof dpop_proof_missing'],
    ['of a key, with two proofs', { ...bound, proofs: [proof(), proof()] }, 'invalid_dpop_proof dpop_proof_repeated'],
    [
      'of a key, with the proof of another',
      { ...bound, proofs: [proof({}, new DpopHolder())] },
      'invalid_token dpop_key_mismatch',
    ],
    [
      'of a key, with a proof for another token',
      { ...bound, proofs: [proof({ ath: 'x' })] },
      'invalid_dpop_proof dpop_token_mismatch',
    ],
    [
      'of a key, with a proof for another method',
      { ...bound, proofs: [proof({ htm: 'POST' })] },
      'invalid_dpop_proof dpop_method_mismatch',
    ],
    [
      'of a key, with a proof of another time',
      { ...bound, proofs: [proof({ iat: NOW / 1000 - 100 })] },
      'use_dpop_nonce dpop_clock_skewed',
    ],
    ['of a key, at an API without proofs', { ...bound, urls: [], proofs: [proof()] }, 'invalid_token dpop_not_taken'],
    ['of a certificate, with it', { cnf: { 'x5t#S256': x5t }, certificate: der }, 'passes'],
    ['of a certificate, without', { cnf: { 'x5t#S256': x5t } }, 'invalid_token certificate_missing'],
    [
      'of a certificate, with another',
      { cnf: { 'x5t#S256': x5t }, certificate: Buffer.from('other') },
      'invalid_token certificate_mismatch',
    ],
    [
      'of both, with the proof alone',
      { ...bound, cnf: { ...bound.cnf, 'x5t#S256': x5t }, proofs: [proof()] },
      'invalid_token certificate_missing',
    ],
    ['of what is not understood', { cnf: { jwk: {} } }, 'invalid_token confirmation_unknown'],
    [
      'of a key and what is not understood, with its proof',
      { ...bound, cnf: { ...bound.cnf, jwk: {} }, proofs: [proof()] },
      'invalid_token confirmation_unknown',
    ],
    [
      'of a certificate and what is not understood, with it',
      { cnf: { x5t, 'x5t#S256': x5t }, certificate: der },
      'invalid_token confirmation_unknown',
    ],
    [
      'of a certificate and a key that is no text, with both',
      { ...bound, cnf: { jkt: [holder.thumbprint], 'x5t#S256': x5t }, certificate: der, proofs: [proof()] },
      'invalid_token confirmation_unknown',
    ],
    [
      'of a certificate and an empty key, with it',
      { cnf: { jkt: '', 'x5t#S256': x5t }, certificate: der },
      'invalid_token confirmation_unknown',
    ],
    ['of nothing', { cnf: {} }, 'invalid_token confirmation_unknown'],
    ['of a text', { cnf: 'x' }, 'invalid_token confirmation_unknown'],
    ['of null', { cnf: null }, 'invalid_token confirmation_unknown'],
  ] as readonly (readonly [string, Sent, string])[])('%s → %s', (_, sent, expected) => {
    expect(outcome(sent)).toBe(expected);
  });

  it.each([
    ['None', 'passes', 'passes', 'passes'],
    ['DPoP', 'invalid_token binding_required', 'passes', 'invalid_token binding_required'],
    ['MutualTLS', 'invalid_token binding_required', 'invalid_token binding_required', 'passes'],
    ['Any', 'invalid_token binding_required', 'passes', 'passes'],
  ] as const)('where %s is required: bearer %s, key %s, certificate %s', (requireBinding, bearer, key, certificate) => {
    expect(outcome({ requireBinding })).toBe(bearer);
    expect(outcome({ ...bound, requireBinding, proofs: [proof()] })).toBe(key);
    expect(outcome({ requireBinding, cnf: { 'x5t#S256': x5t }, certificate: der })).toBe(certificate);
  });
});
