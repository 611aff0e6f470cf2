// Bound tokens at an API, beside what the adapters show: certificates, what has to be bound, and the records of proofs
// (docs/scope.md: 9449-5).

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { AccessDenied, createVerifier, type VerifierOptions } from '../../src/resource-server/index.ts';
import { MemoryReplays } from '../../src/resource-server/replays.ts';
import { createTestIssuer } from '../../src/resource-server/testing.ts';
import { DpopHolder } from '../dpop-holder.ts';
import { TestClock } from '../grantry.ts';

const AUDIENCE = 'https://notes.example/api';
const clock = new TestClock();
const issuer = createTestIssuer({ audience: AUDIENCE, clock });
const holder = new DpopHolder();
const der = Buffer.from('a certificate');
const x5t = createHash('sha256').update(der).digest('base64url');

function verifier(options: Partial<VerifierOptions> = {}) {
  const common = { issuer: issuer.issuer, audience: AUDIENCE, mode: 'local', clock, fetch: issuer.fetch };
  return createVerifier(Object.assign(common, options) as VerifierOptions);
}

async function refusal(of: ReturnType<typeof verifier>, headers: Record<string, string>, path = '/notes') {
  try {
    await of.verify({ method: 'GET', url: path, rawHeaders: Object.entries(headers).flat() });
    return undefined;
  } catch (error) {
    if (error instanceof AccessDenied) return error;
    throw error;
  }
}

function boundRequest(
  { htu = 'https://notes.example/notes', ...more }: Record<string, string | undefined> = {},
  madeAt = clock.now(),
) {
  const token = issuer.token({ claims: { cnf: { jkt: holder.thumbprint } } });
  const ath = createHash('sha256').update(token).digest('base64url');
  const dpop = holder.proof(htu, madeAt, { claims: { htm: 'GET', ath, ...more } });
  return { authorization: `DPoP ${token}`, dpop };
}

describe('a token of a certificate', () => {
  const headers = { authorization: `Bearer ${issuer.token({ claims: { cnf: { 'x5t#S256': x5t } } })}` };

  it('with it → passes; with another, without one, or where the API reads none → 401', async () => {
    expect(await refusal(verifier({ certificate: () => der }), headers)).toBeUndefined();
    const other = verifier({ certificate: () => Buffer.from('other') });
    expect(await refusal(other, headers)).toMatchObject({ status: 401, reason: 'certificate_mismatch' });
    for (const api of [verifier({ certificate: () => undefined }), verifier()]) {
      expect(await refusal(api, headers)).toMatchObject({ status: 401, reason: 'certificate_missing' });
    }
  });
});

describe('an API that demands bound tokens', () => {
  const bearer = { authorization: `Bearer ${issuer.token()}` };

  it.each(['DPoP', 'MutualTLS', 'Any'] as const)('%s → a bearer token is refused', async (requireBinding) => {
    const api = verifier({ requireBinding, certificate: () => der });
    expect(await refusal(api, bearer)).toMatchObject({ status: 401, reason: 'binding_required' });
  });

  it('DPoP → offers no other scheme', async () => {
    const api = verifier({ requireBinding: 'DPoP' });
    expect((await refusal(api, {}))?.headers['www-authenticate']).toMatch(
      /^DPoP realm="[^"]+", resource_metadata="[^"]+", algs="[^"]+"$/,
    );
    expect(await refusal(api, boundRequest())).toBeUndefined();
  });

  it('without an origin → offers no DPoP', async () => {
    const refused = await refusal(verifier({ origins: [] }), boundRequest());
    expect(refused).toMatchObject({ status: 401, reason: 'dpop_not_taken' });
    expect(refused?.headers['www-authenticate']).not.toContain('DPoP');
  });
});

it('a proof names a path in any spelling of one meaning', async () => {
  const api = verifier();
  expect(await refusal(api, boundRequest({ htu: 'https://notes.example/~a/b' }), '/%7ea/./b?x=1')).toBeUndefined();
  expect(await refusal(api, boundRequest({ htu: 'https://NOTES.example:443/%7ea' }), '/%7ea')).toBeUndefined();
  // A proxy between them has normalised the path.
  expect(await refusal(api, boundRequest({ htu: 'https://notes.example/%c3%a4/%7Ea' }), '/%C3%A4/~a')).toBeUndefined();
  expect(await refusal(api, boundRequest({ htu: 'https://notes.example/a' }), '/b')).toMatchObject({
    code: 'invalid_dpop_proof',
  });
});

it('a nonce of one replica counts at another with the secret of it, in the first place or after a newer one, and at no other', async () => {
  const [old, current, strange] = [1, 2, 3].map((byte) => new Uint8Array(32).fill(byte)) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ];
  const replica = (...secrets: readonly Uint8Array[]) => verifier({ dpopNonce: { rule: 'required', secrets } });
  const first = replica(old);
  const refused = await refusal(first, boundRequest());
  expect(refused).toMatchObject({ status: 401, code: 'use_dpop_nonce' });
  const withNonce = () => boundRequest({ nonce: refused?.headers['dpop-nonce'] });
  for (const api of [first, replica(old), replica(current, old)]) {
    expect(await refusal(api, withNonce())).toBeUndefined();
  }
  for (const api of [replica(current), replica(strange, current)]) {
    expect(await refusal(api, withNonce())).toMatchObject({ status: 401, code: 'use_dpop_nonce' });
  }
});

it.each([-3_600_000, 3_600_000])('a proof of a clock that is %i ms off, with a nonce → passes, once', async (off) => {
  const api = verifier();
  const refused = await refusal(api, boundRequest({}, clock.now() + off));
  expect(refused).toMatchObject({ status: 401, code: 'use_dpop_nonce' });
  const again = boundRequest({ nonce: refused?.headers['dpop-nonce'] }, clock.now() + off);
  expect(await refusal(api, again)).toBeUndefined();
  expect(await refusal(api, again)).toMatchObject({ code: 'invalid_dpop_proof', reason: 'dpop_proof_replayed' });
});

describe('the records of proofs', () => {
  it('full → 503, and nothing is forgotten before its time', async () => {
    const api = verifier({ replays: new MemoryReplays({ clock, capacity: 2 }) });
    const first = boundRequest();
    expect(await refusal(api, first)).toBeUndefined();
    expect(await refusal(api, boundRequest())).toBeUndefined();
    expect(await refusal(api, boundRequest())).toMatchObject({ status: 503, reason: 'replays_full' });
    expect(await refusal(api, first)).toMatchObject({ status: 401, reason: 'dpop_proof_replayed' });
    clock.advance(70_000);
    expect(await refusal(api, boundRequest())).toBeUndefined();
  });

  it('expire in any order', () => {
    const replays = new MemoryReplays({ clock, capacity: 2 });
    const now = clock.now();
    expect([replays.claim('a', now + 2000), replays.claim('b', now + 1000)]).toEqual([true, true]);
    clock.advance(1000);
    expect([replays.claim('c', now + 9000), replays.claim('a', now + 9000)]).toEqual([true, false]);
  });
});
