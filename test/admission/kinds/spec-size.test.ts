// How large an OAuthClient may be: the bounds of its spec, of its keys and of the literals of its Secret.

import { describe, expect, it } from 'vitest';
import { readManifest } from '../../../src/admission/kinds/manifest.ts';
import { OAUTH_CLIENT } from '../../../src/admission/kinds/oauth-client.ts';
import { boundedSpec, OversizedSpec } from '../../../src/admission/kinds/spec-size.ts';
import { admitAll, clientDocument } from '../world.ts';

const KIBIBYTE = 1024;
const MACHINE = { grantTypes: ['client_credentials'] };

/** A spec of so many bytes as JSON, most of them in this character; no field is beyond its own bound. */
function specOf(bytes: number, character = 'x'): Readonly<Record<string, unknown>> {
  const literal = character.repeat(4000 / Buffer.byteLength(character));
  const literals = Array.from({ length: 16 }, (_, index) => [`literal-${index}`, literal]);
  const withRest = (rest: string) => {
    const extraData = { ...Object.fromEntries(literals), rest };
    return { ...MACHINE, auth: { clientSecret: { extraData } } };
  };
  return withRest('x'.repeat(bytes - Buffer.byteLength(JSON.stringify(withRest('')))));
}

/** A key set of so many bytes as JSON. */
function keysOf(bytes: number): object {
  const withChain = (...x5c: readonly string[]) => ({ keys: [{ kty: 'RSA', x5c }] });
  const chain = ['1', '2', '3', '4'].map((first) => first.repeat(8000));
  return withChain(...chain, 'x'.repeat(bytes - JSON.stringify(withChain(...chain, '')).length));
}

describe.each(['refuse', 'ignore'] as const)('where unknown fields are %sd', (unknownFields) => {
  const faultsOf = (spec: unknown) => readManifest(OAUTH_CLIENT[unknownFields], { ...clientDocument({}), spec }).faults;

  it.each(['x', 'ü', '語'])('a spec of 64 KiB of %s as JSON → accepted; a byte more → InvalidManifest', (character) => {
    const [most, more] = [specOf(64 * KIBIBYTE, character), specOf(64 * KIBIBYTE + 1, character)];
    expect(Buffer.byteLength(JSON.stringify(most))).toBe(64 * KIBIBYTE);
    expect(faultsOf(most)).toEqual([]);
    expect(faultsOf(more)).toEqual([expect.objectContaining({ reason: 'InvalidManifest', path: ['spec'] })]);
  });

  it.each(['privateKeyJwt', 'tls'])('keys of 32 KiB in %s → accepted; a byte more → InvalidManifest', (block) => {
    const withKeys = (bytes: number) => ({ ...MACHINE, auth: { [block]: { jwks: keysOf(bytes) } } });
    expect(faultsOf(withKeys(32 * KIBIBYTE))).toEqual([]);
    const path = ['spec', 'auth', block, 'jwks'];
    expect(faultsOf(withKeys(32 * KIBIBYTE + 1))).toEqual([
      expect.objectContaining({ reason: 'InvalidManifest', path }),
    ]);
  });

  it('a cache that keeps no oversized spec → the faults of the spec itself', () => {
    const document = clientDocument({ ...specOf(70 * KIBIBYTE), className: 'team' });
    const spec = boundedSpec(document);
    expect(spec).toEqual(new OversizedSpec('team'));
    expect(faultsOf(spec)).toEqual(faultsOf(document.spec));
    const small = clientDocument(MACHINE);
    expect(boundedSpec(small)).toBe(small.spec);
  });
});

it('literals of 64 KiB, each variable counted as 256 bytes → accepted; a byte more → InvalidSecretTemplate', async () => {
  const faultsOf = async (extraData: object, scopes: readonly string[] = []) => {
    const { clients } = await admitAll([clientDocument({ ...MACHINE, scopes, auth: { clientSecret: { extraData } } })]);
    return clients.flatMap(({ faults }) => faults.map(({ reason, path }) => [reason, ...path.slice(3)]));
  };
  const most = { one: `\${ISSUER}`.repeat(200), other: `\${JWKS_URI}`.repeat(56) };
  expect(await faultsOf(most)).toEqual([]);
  expect(await faultsOf({ ...most, more: 'x' })).toEqual([['InvalidSecretTemplate', 'extraData']]);
  // The scopes count as they are, where that is more.
  const scopes = Array.from({ length: 8 }, (_, index) => `team/${index}${'x'.repeat(121)}`);
  const withScopes = { scopes: `\${SCOPES}`.repeat(64), rest: 'x'.repeat(64 * KIBIBYTE - 64 * (8 * 128 - 1)) };
  expect(await faultsOf(withScopes, scopes)).toEqual([]);
  expect(await faultsOf({ ...withScopes, more: 'x' }, scopes)).toEqual([['InvalidSecretTemplate', 'extraData']]);
});
