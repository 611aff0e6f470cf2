import { describe, expect, it } from 'vitest';
import { admitOne, clientDocument, MACHINE, policyDocument, type WorldSettings } from '../world.ts';

const SETTINGS: WorldSettings = { supportedAuthMethods: ['private_key_jwt'] };
const EVERY_HOST = policyDocument({ allow: { jwksHosts: ['**'] } });

function verdictOn(jwksUri: string) {
  const auth = { method: 'private_key_jwt', privateKeyJwt: { jwksUri } };
  return admitOne([clientDocument({ ...MACHINE, auth }), EVERY_HOST], SETTINGS);
}

describe('the address of the keys of a client', () => {
  it.each(['https://keys.example.com/jwks.json', 'https://keys.team.svc:8443/?a=b', 'https://localhost/'])(
    'given %s → no fault',
    (jwksUri) => {
      expect(verdictOn(jwksUri).faults).toEqual([]);
    },
  );

  it.each([
    ...['http://keys.example.com/', 'keys.example.com', 'https://user:password@keys.example.com/'],
    ...['https://keys.example.com/#keys', 'https://127.0.0.1/', 'https://0x7f.1/', 'https://[fd00::1]/'],
    ...['https://Keys.example.com/', 'https://keys.example.com./', 'https://'],
  ])('given %s → InvalidJwks alone, and the references do not resolve', (jwksUri) => {
    const { faults, conditions, client } = verdictOn(jwksUri);
    expect(faults.map(({ path, reason }) => [reason, path.join('.')])).toEqual([
      ['InvalidJwks', 'spec.auth.privateKeyJwt.jwksUri'],
    ]);
    expect(conditions).toContainEqual(
      expect.objectContaining({ type: 'ResolvedRefs', status: 'False', reason: 'InvalidJwks' }),
    );
    expect(client).toBeUndefined();
  });
});
