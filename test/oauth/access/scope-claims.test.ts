import { describe, expect, it } from 'vitest';
import { OPENID_SCOPES, personClaims } from '../../../src/oauth/access/scope-claims.ts';
import type { Person } from '../../../src/oauth/ports/ports.ts';

const ADA: Person = {
  subject: 'usr_ada',
  username: 'ada',
  displayName: 'Ada Lovelace',
  email: 'ada@example.com',
  groups: ['editors', 'team-a'],
};
const UNKNOWN: Person = { subject: 'usr_x', username: 'x', displayName: undefined, email: undefined, groups: [] };
const EVERY = { groups: ['*'] };

it('the scopes of OpenID Connect are these five, and openid and offline_access disclose nothing', () => {
  expect(OPENID_SCOPES).toEqual(['openid', 'profile', 'email', 'groups', 'offline_access']);
  expect(personClaims(['openid', 'offline_access'], ADA, EVERY)).toEqual({});
});

describe('the claims about a person', () => {
  it.each<[scope: readonly string[], claims: object]>([
    [['openid'], {}],
    [['profile'], { name: 'Ada Lovelace', preferred_username: 'ada' }],
    [['email'], { email: 'ada@example.com', email_verified: true }],
    [['groups'], { groups: ['editors', 'team-a'] }],
    [['email', 'groups'], { email: 'ada@example.com', email_verified: true, groups: ['editors', 'team-a'] }],
    [['offline_access', 'shop/read', 'Profile'], {}],
    [['constructor', '__proto__', 'toString'], {}],
  ])('of the scope %j', (scope, claims) => {
    expect(personClaims(scope, ADA, EVERY)).toEqual(claims);
  });

  it('that is unknown is left out, but the list of groups is empty', () => {
    const scope = ['profile', 'email', 'groups'];
    expect(personClaims(scope, UNKNOWN, EVERY)).toEqual({ preferred_username: 'x', groups: [] });
  });

  it('holds the groups that the client may know', () => {
    expect(personClaims(['groups'], ADA, { groups: ['team-*'] })).toEqual({ groups: ['team-a'] });
    expect(personClaims(['groups'], ADA, { groups: ['none'] })).toEqual({ groups: [] });
  });
});
