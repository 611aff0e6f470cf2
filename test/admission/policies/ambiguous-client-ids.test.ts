import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CLIENT_POLICY } from '../../../src/admission/kinds/client-policy.ts';
import { expandNamespace, globMatches } from '../../../src/admission/kinds/glob.ts';
import { ambiguousClientIds } from '../../../src/admission/policies/ambiguous-client-ids.ts';
import { policyOf } from '../../../src/admission/policies/policy.ts';
import { policyDocument } from '../world.ts';

const V = '$' + '{namespace}';
const NAME = 'kubernetes.io/metadata.name';

function ambiguous(clientIds: readonly string[], namespaceSelector: object, namespaces = 2): readonly string[] {
  const document = policyDocument({ namespaceSelector, allow: { clientIds } });
  // As a server reads it, with entries that match no id.
  const found = ambiguousClientIds(policyOf(CLIENT_POLICY.ignore.parse(document)), namespaces);
  return found.map(({ pattern }) => pattern);
}

describe('an entry of allow.clientIds in a policy for several namespaces', () => {
  it.each([
    'shared',
    'billing-*',
    'legacy.app',
    `${V}-*`,
    `${V}*`,
    `${V}**`,
    `x_${V}-*`,
    `*-${V}`,
    `*${V}_*`,
    `*_${V}_*`,
    `${V}-${V}-*`,
  ])('%s → ambiguous', (pattern) => {
    expect(ambiguous([pattern], { matchLabels: { tier: 'gold' } })).toEqual([pattern]);
  });

  it.each([V, `${V}-web`, `${V}_*`, `${V}~*`, `${V}-x_*`, `x-${V}_*-y`, `*_${V}`, `*~web-${V}`, `${V}_*_${V}`])(
    '%s → not ambiguous',
    (pattern) => {
      expect(ambiguous([pattern], { matchLabels: { tier: 'gold' } })).toEqual([]);
    },
  );

  it('that matches no id at all, as a glob with a dot → not ambiguous', () => {
    expect(ambiguous(['shared.*', `${V}.*`, `${V}.app`], {})).toEqual([]);
  });

  it('two namespaces may claim one id → the entry is ambiguous', () => {
    const namespaces = ['a', 'b', 'aa', 'a-a', 'a-b', 'a-a-a', 'b-a'];
    const pattern = fc
      .array(fc.constantFrom(V, '*', 'a', '-', '_', 'b'), { minLength: 1, maxLength: 6 })
      .map((parts) => parts.join(''));
    const filling = fc.string({ unit: fc.constantFrom('a', 'b', '-', '_'), maxLength: 4 });
    fc.assert(
      fc.property(pattern, fc.constantFrom(...namespaces), fc.infiniteStream(filling), (written, own, fillings) => {
        const id = expandNamespace(written, own).replaceAll('*', () => fillings.next().value ?? '');
        const claimants = namespaces.filter((each) => globMatches(expandNamespace(written, each), id, ''));
        if (claimants.length > 1) expect(ambiguous([written], {})).toEqual([written]);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('the entries of a policy', () => {
  const entries = ['shared', `${V}-*`];

  it.each([
    ['one namespace by its name', { matchLabels: { [NAME]: 'team' } }, 1, []],
    ['one of a list of names', { matchExpressions: [{ key: NAME, operator: 'In', values: ['team'] }] }, 1, []],
    ['two names', { matchExpressions: [{ key: NAME, operator: 'In', values: ['team', 'other'] }] }, 0, entries],
    ['every namespace', {}, 0, entries],
    ['a label that one namespace has so far', { matchLabels: { tier: 'gold' } }, 1, [`${V}-*`]],
    ['a label that two namespaces have', { matchLabels: { tier: 'gold' } }, 2, entries],
  ])('that selects %s', (_, selector, namespaces, expected) => {
    expect(ambiguous(entries, selector, namespaces)).toEqual(expected);
  });

  it('are named by their index, as a warning shows it', () => {
    const document = policyDocument({ namespaceSelector: {}, allow: { clientIds: [`${V}_*`, 'shared'] } });
    const policy = policyOf(CLIENT_POLICY.refuse.parse(document));
    expect(ambiguousClientIds(policy, 0)).toEqual([{ index: 1, pattern: 'shared' }]);
    expect(ambiguousClientIds({ ...policy, permissions: undefined }, 0)).toEqual([]);
  });
});
