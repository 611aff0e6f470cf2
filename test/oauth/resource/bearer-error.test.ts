// The answers to refused requests, letter by letter (docs/scope.md: 6750-1 to 6750-4, 9449-5).

import { describe, expect, it } from 'vitest';
import {
  type BearerError,
  bearerErrorAnswer,
  type ChallengeFacts,
  isQuotable,
  type Scheme,
  wellKnownMetadataUrl,
} from '../../../src/oauth/resource/bearer-error.ts';

const BOTH: ChallengeFacts = {
  audience: 'https://notes.example/api',
  schemes: ['Bearer', 'DPoP'],
  metadataUrl: 'https://notes.example/.well-known/oauth-protected-resource/api',
  proofAlgorithms: ['ES256', 'EdDSA'],
};
const REALM = 'realm="https://notes.example/api"';
const METADATA = 'resource_metadata="https://notes.example/.well-known/oauth-protected-resource/api"';

function answer(
  error: Partial<BearerError>,
  scope: readonly string[] = [],
  schemes: readonly Scheme[] = ['Bearer', 'DPoP'],
) {
  const facts = { ...BOTH, schemes };
  return bearerErrorAnswer({ code: undefined, reason: 'a_reason', ...error }, scope, facts);
}

const challenge = (...args: Parameters<typeof answer>) => answer(...args).headers['www-authenticate'];

describe('a refusal', () => {
  it('without credentials → 401, challenges without an error, no body', () => {
    expect(answer({})).toEqual({
      status: 401,
      headers: {
        'cache-control': 'no-store',
        'www-authenticate': `Bearer ${REALM}, ${METADATA}, DPoP algs="ES256 EdDSA"`,
      },
      body: '',
    });
  });

  it('of a bearer token → the error in the challenge of Bearer', () => {
    const invalid = 'error="invalid_token", error_description="The access token is not valid for this request."';
    expect(challenge({ code: 'invalid_token', scheme: 'Bearer' })).toBe(
      `Bearer ${REALM}, ${invalid}, ${METADATA}, DPoP algs="ES256 EdDSA"`,
    );
  });

  it('of a bound token → the error in the challenge of DPoP', () => {
    const invalid = 'error="invalid_token", error_description="The access token is not valid for this request."';
    expect(challenge({ code: 'invalid_token', scheme: 'DPoP' })).toBe(
      `Bearer ${REALM}, ${METADATA}, DPoP ${invalid}, algs="ES256 EdDSA"`,
    );
  });

  it('by an API that takes one scheme → one challenge, which has the error whatever the request used', () => {
    const error =
      /^DPoP realm="[^"]+", error="invalid_token", error_description="[^"]+", resource_metadata="[^"]+", algs="[^"]+"$/;
    expect(challenge({ code: 'invalid_token', scheme: 'Bearer' }, [], ['DPoP'])).toMatch(error);
    expect(challenge({ code: 'invalid_token', scheme: 'DPoP' }, [], ['Bearer'])).toMatch(/^Bearer (?!.*DPoP).*error=/);
  });

  it('for its scope → 403 with the scope', () => {
    const refused = answer({ code: 'insufficient_scope', scheme: 'Bearer' }, ['notes.read', 'notes.write']);
    expect(refused.status).toBe(403);
    expect(refused.headers['www-authenticate']).toContain('error="insufficient_scope"');
    expect(refused.headers['www-authenticate']).toContain('scope="notes.read notes.write"');
  });

  it('for the nonce → 401 with the nonce', () => {
    const refused = answer({ code: 'use_dpop_nonce', scheme: 'DPoP', dpopNonce: 'a-nonce' });
    expect(refused).toMatchObject({ status: 401, headers: { 'dpop-nonce': 'a-nonce' } });
    expect(refused.headers['www-authenticate']).toContain('DPoP error="use_dpop_nonce"');
  });

  it('because nothing can be checked → 503 with Retry-After and no challenge', () => {
    const { status, headers, body } = answer({ code: 'unavailable' });
    expect(status).toBe(503);
    expect(headers).toEqual({ 'cache-control': 'no-store', 'retry-after': '5', 'content-type': 'application/json' });
    expect(JSON.parse(body)).toMatchObject({ error: 'temporarily_unavailable' });
  });

  it.each([
    ['invalid_request', 400],
    ['invalid_token', 401],
    ['invalid_dpop_proof', 401],
    ['insufficient_scope', 403],
  ] as const)('%s → %i, not stored, the code in the body and the reason nowhere', (code, status) => {
    const refused = answer({ code, scheme: 'Bearer' });
    expect(refused).toMatchObject({ status, headers: { 'cache-control': 'no-store' } });
    expect(JSON.parse(refused.body)).toMatchObject({ error: code });
    expect(JSON.stringify(refused)).not.toContain('a_reason');
  });
});

it('the well-known address of an identifier is that of RFC 9728 §3.1', () => {
  expect(wellKnownMetadataUrl('https://a.example')).toBe('https://a.example/.well-known/oauth-protected-resource');
  expect(wellKnownMetadataUrl('https://a.example/b/')).toBe('https://a.example/.well-known/oauth-protected-resource/b');
  expect(wellKnownMetadataUrl('urn:grantry:ns:shop:default')).toBeUndefined();
});

it('a text with quotes, backslashes, line ends or other letters is not quotable', () => {
  expect(isQuotable('https://a.example/b')).toBe(true);
  for (const text of ['', 'a"b', 'a\\b', 'a\r\nb', 'ä']) expect(isQuotable(text)).toBe(false);
});
