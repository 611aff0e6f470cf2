// The issuer for the tests of an API: the tests below are such tests.

import { describe, expect, it } from 'vitest';
import { createVerifier, protect, type VerifierOptions } from '../../src/resource-server/index.ts';
import { createTestIssuer } from '../../src/resource-server/testing.ts';

const issuer = createTestIssuer();

describe.each(['local', 'introspection'] as const)('an API under test, %s', (mode) => {
  const client = { introspection: { clientId: 'api', clientSecret: 'secret' } };
  const common = { issuer: issuer.issuer, audience: issuer.audience, fetch: issuer.fetch, mode };
  const verifier = createVerifier(Object.assign(common, mode === 'local' ? {} : client) as VerifierOptions);
  const api = protect(verifier, (_request, { subject }) => new Response(subject), { scope: 'read' });

  async function statusWith(token: string): Promise<number> {
    return (await api(new Request('https://api.test/', { headers: { authorization: `Bearer ${token}` } }))).status;
  }

  it('admits the tokens of the issuer and refuses what is changed in them', async () => {
    expect(await statusWith(issuer.token({ claims: { scope: ['read', 'write'] } }))).toBe(200);
    expect(await statusWith(issuer.token())).toBe(403);
    expect(await statusWith(issuer.forgedToken({ claims: { scope: 'read' } }))).toBe(401);
    expect(await statusWith(issuer.token({ claims: { scope: 'read', aud: 'urn:other' } }))).toBe(401);
    expect(await statusWith(issuer.token({ claims: { scope: 'read', sub: undefined } }))).toBe(401);
  });

  it('knows opaque and revoked tokens where it asks about them', async () => {
    const [opaque, revoked] = [issuer.opaqueToken({ scope: 'read' }), issuer.token({ claims: { scope: 'read' } })];
    issuer.revoke(revoked);
    const expected = mode === 'local' ? [401, 200] : [200, 401];
    expect([await statusWith(opaque), await statusWith(revoked)]).toEqual(expected);
  });
});
