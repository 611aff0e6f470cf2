import { describe, expect, it } from 'vitest';
import { missingProviders, signInLimits } from '../../../src/admission/clients/sign-in-limits.ts';
import { admitAll, clientDocument, WEB } from '../world.ts';

const NAMES = Array.from({ length: 32 }, (_, index) => `provider-${index}`);

async function admitted(signIn: unknown) {
  const { clients } = await admitAll([clientDocument({ ...WEB, signIn })]);
  const [verdict] = clients;
  return { faults: verdict?.faults.map(({ path, reason }) => `${reason} ${path.join('.')}`), client: verdict?.client };
}

describe('which people may use a client', () => {
  it.each([undefined, null, {}, { identityProviders: [] }, { groups: [], identityProviders: [] }])(
    'given %o → all',
    async (signIn) => {
      const { faults, client } = await admitted(signIn);
      expect(faults).toEqual([]);
      expect(client?.signIn).toBeUndefined();
    },
  );

  it.each([
    [{ identityProviders: ['local'] }, { identityProviders: ['local'], groups: [] }],
    [{ groups: ['corp:Dev Ops', '{x}*'] }, { identityProviders: [], groups: ['corp:Dev Ops', '{x}*'] }],
    [
      { identityProviders: NAMES, groups: NAMES },
      { identityProviders: NAMES, groups: NAMES },
    ],
  ])('given %o → those', async (signIn, expected) => {
    const { faults, client } = await admitted(signIn);
    expect(faults).toEqual([]);
    expect(client?.signIn).toEqual(expected);
  });

  it.each([
    [{ identityProviders: ['Corp'] }, 'identityProviders.0'],
    [{ identityProviders: ['corp', ''] }, 'identityProviders.1'],
    [{ identityProviders: ['x'.repeat(64)] }, 'identityProviders.0'],
    [{ identityProviders: ['corp', 'corp'] }, 'identityProviders'],
    [{ identityProviders: [...NAMES, 'corp'] }, 'identityProviders'],
    [{ identityProviders: 'corp' }, 'identityProviders'],
    [{ groups: [''] }, 'groups.0'],
    [{ groups: ['a\tb'] }, 'groups.0'],
    [{ groups: ['x'.repeat(321)] }, 'groups.0'],
    [{ groups: [...NAMES, 'ops'] }, 'groups'],
    [{ provider: ['corp'] }, 'provider'],
  ])('given %o → refused there', async (signIn, path) => {
    expect((await admitted(signIn)).faults).toEqual([`InvalidManifest spec.signIn.${path}`]);
  });
});

describe('names of providers', () => {
  const signIn = { identityProviders: ['local', 'corp', 'crop'], groups: [] };

  it.each<[readonly string[], readonly string[]]>([
    [[], []],
    [['corp'], ['crop']],
    [['corp', 'crop'], []],
    [['partner'], ['corp', 'crop']],
  ])('given the providers %o → missing: %o', (known, missing) => {
    const found = missingProviders({ signIn }, new Set(known));
    expect(found.map(({ path }) => signIn.identityProviders[Number(path.at(-1))])).toEqual(missing);
    expect(found.every(({ reason }) => reason === 'IdentityProviderNotFound')).toBe(true);
  });

  it('of a client that names none → none is missing', () => {
    expect(missingProviders({ signIn: undefined }, new Set(['corp']))).toEqual([]);
    expect(signInLimits({ signIn: undefined })).toBeUndefined();
  });
});
