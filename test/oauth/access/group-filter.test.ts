import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { globMatches } from '../../../src/admission/kinds/glob.ts';
import { matchingGroups } from '../../../src/oauth/access/group-filter.ts';

const GROUPS = ['team-a', 'team-b', 'acme:team-a', 'admins', 'a*b', '', '/dev/team-a'];

describe('the groups that are disclosed to a client', () => {
  it.each<[globs: readonly string[], disclosed: readonly string[]]>([
    [['*'], GROUPS],
    [['team-*'], ['team-a', 'team-b']],
    [['*team-a'], ['team-a', 'acme:team-a', '/dev/team-a']],
    [
      ['*team*', 'admins'],
      ['team-a', 'team-b', 'acme:team-a', 'admins', '/dev/team-a'],
    ],
    [['a*:*-a'], ['acme:team-a']],
    [['admin'], []],
    [['team-a*a'], []],
    [['.*'], []],
    [[], []],
  ])('by %j → those that one glob matches as a whole, in their order', (globs, disclosed) => {
    expect(matchingGroups(GROUPS, globs)).toEqual(disclosed);
  });

  it('by any glob → as the matcher of policies with ** decides', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '/', '*'), maxLength: 8 });
    fc.assert(
      fc.property(text, text, (glob, group) => {
        expect(matchingGroups([group], [glob]).length === 1).toBe(globMatches(glob.replaceAll('*', '**'), group, ''));
      }),
      { numRuns: 2000 },
    );
  });
});
