import { describe, expect, it } from 'vitest';
import { isOpenTo, maySignIn } from '../../../src/oauth/access/sign-in-limits.ts';
import type { SignInLimits } from '../../../src/oauth/registry/client.ts';

const by = (name: string | undefined, groups: readonly string[] = []) => ({
  provider: name === undefined ? undefined : { name, issuer: 'https://id.example', type: 'OIDC', verifiedAt: 0 },
  groups,
});
const LOCAL = by(undefined, ['ops']);
const CORP = by('corp', ['corp:dev', 'corp:ops']);
const limits = (identityProviders: readonly string[], groups: readonly string[] = []): SignInLimits => ({
  identityProviders,
  groups,
});

describe('a person at a client', () => {
  it.each<[string, SignInLimits | undefined, typeof CORP, boolean]>([
    ['without limits', undefined, CORP, true],
    ['without limits', undefined, LOCAL, true],
    ['of empty limits', limits([]), LOCAL, true],
    ['for the provider of the person', limits(['corp']), CORP, true],
    ['for several, among them that of the person', limits(['partner', 'corp']), CORP, true],
    ['for another provider', limits(['partner']), CORP, false],
    ['for a provider of a longer name', limits(['corp-2']), CORP, false],
    ['for providers', limits(['corp']), LOCAL, false],
    ['for local users', limits(['local']), LOCAL, true],
    ['for local users', limits(['local']), CORP, false],
    ['for both', limits(['local', 'corp']), LOCAL, true],
    ['for a group of the person', limits([], ['corp:dev']), CORP, true],
    ['for several groups, the last one of the person', limits([], ['x', 'y', 'corp:ops']), CORP, true],
    ['for a group of another provider', limits([], ['partner:dev']), CORP, false],
    ['for the group without its prefix', limits([], ['dev']), CORP, false],
    ['for the group in upper case', limits([], ['CORP:DEV']), CORP, false],
    ['for what is no glob', limits([], ['corp:*']), CORP, false],
    ['for a group, and the person has none', limits([], ['corp:dev']), by('corp'), false],
    ['for provider and group of the person', limits(['corp'], ['corp:dev']), CORP, true],
    ['for the provider, but another group', limits(['corp'], ['corp:boss']), CORP, false],
    ['for the group, but another provider', limits(['partner'], ['corp:dev']), CORP, false],
    ['for local users of a group', limits(['local'], ['ops']), LOCAL, true],
    ['for local users of another group', limits(['local'], ['dev']), LOCAL, false],
  ])('%s %o: %o → %s', (_case, signIn, person, expected) => {
    expect(maySignIn({ signIn }, person)).toBe(expected);
  });

  it('may use it where one of the lists is empty as the other one alone says, and each one only narrows', () => {
    const sources = [[], ['local'], ['corp'], ['local', 'corp'], ['partner']];
    const groups = [[], ['ops'], ['corp:dev'], ['ops', 'corp:dev'], ['none']];
    for (const person of [LOCAL, CORP, by('corp'), by(undefined), by('partner', ['ops'])]) {
      for (const identityProviders of sources) {
        for (const names of groups) {
          const bySource = maySignIn({ signIn: limits(identityProviders) }, person);
          const byGroup = maySignIn({ signIn: limits([], names) }, person);
          expect(maySignIn({ signIn: limits(identityProviders, names) }, person)).toBe(bySource && byGroup);
        }
      }
    }
  });
});

describe('a source at a client', () => {
  it.each<[SignInLimits | undefined, string, boolean]>([
    [undefined, 'local', true],
    [undefined, 'corp', true],
    [limits([], ['ops']), 'corp', true],
    [limits(['corp']), 'corp', true],
    [limits(['corp']), 'local', false],
    [limits(['local']), 'local', true],
    [limits(['local']), 'corp', false],
  ])('%o and %s → open: %s', (signIn, source, expected) => {
    expect(isOpenTo({ signIn }, source)).toBe(expected);
  });
});
