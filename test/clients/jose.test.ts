// jose, unmodified, as an API: it verifies access tokens by the key set that grantry publishes (docs/scope.md: 9068-1).

import { createRemoteJWKSet, errors, jwtVerify } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { basic, type Grantry, readJson, startGrantry } from '../grantry.ts';
import { API, WEB, WITH_CLIENTS } from './registered-clients.ts';

describe('jose', () => {
  let grantry: Grantry;
  let keys: ReturnType<typeof createRemoteJWKSet>;
  let token: string;
  beforeAll(async () => {
    grantry = await startGrantry(WITH_CLIENTS);
    keys = createRemoteJWKSet(new URL(grantry.url('/.well-known/jwks.json')));
    const headers = { authorization: basic(WEB.clientId, WEB.secret) };
    const form = { grant_type: 'client_credentials', scope: 'read' };
    token = (await readJson(await grantry.post('/token', form, { headers }))).access_token;
  });

  const verify = (changes: object = {}, presented = token) =>
    jwtVerify(presented, keys, {
      issuer: grantry.issuer,
      audience: API,
      typ: 'at+jwt',
      currentDate: new Date(grantry.clock.now()),
      requiredClaims: ['exp', 'iat', 'sub', 'client_id', 'jti'],
      ...changes,
    });

  it('verifies an access token by the key set (RFC 9068 §4)', async () => {
    const { payload, protectedHeader } = await verify();
    expect(payload).toMatchObject({ sub: WEB.clientId, client_id: WEB.clientId, scope: 'read' });
    expect(protectedHeader).toMatchObject({ typ: 'at+jwt', alg: 'ES256' });
  });

  it.each([
    ['for another API', { audience: 'https://other.example/' }, errors.JWTClaimValidationFailed],
    ['of another issuer', { issuer: 'https://other.example' }, errors.JWTClaimValidationFailed],
    ['where an ID token is due', { typ: 'JWT' }, errors.JWTClaimValidationFailed],
    ['after its life', { currentDate: new Date('2100-01-01') }, errors.JWTExpired],
  ])('refuses one %s', async (_, changes, error) => {
    await expect(verify(changes)).rejects.toThrow(error);
  });

  it('refuses one that was changed', async () => {
    const [header, , signature] = token.split('.');
    const payload = Buffer.from(JSON.stringify({ scope: 'read write' })).toString('base64url');
    const changed = verify({}, `${header}.${payload}.${signature}`);
    await expect(changed).rejects.toThrow(errors.JWSSignatureVerificationFailed);
  });
});
