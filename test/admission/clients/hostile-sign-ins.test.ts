// A tenant with full rights in its namespace asks for more of the people who sign in than its policy gives, or has the server
// call what is not its own.

import { describe, expect, it } from 'vitest';
import { admitOne, clientDocument, policyDocument, WEB } from '../world.ts';

type Fields = Readonly<Record<string, unknown>>;

const ISSUER = 'https://id.example.com';
const OPENID = { ...WEB, scopes: ['openid'] };
const GROUPS = { ...WEB, scopes: ['openid', 'groups'] };
/** With all that this policy gives. */
const POLICY = policyDocument({
  allow: { scopes: ['openid', 'groups'], groups: ['team-*'], logoutHosts: ['*.team.example'] },
});
const PERMITTED = { ...GROUPS, groups: ['team-a*'], backchannelLogoutUri: 'https://app.team.example/bye?from=grantry' };

/** The faults of a client: reason and field. */
function faultsOf(spec: Fields, ...policies: readonly unknown[]): readonly string[] {
  const { faults, client } = admitOne([clientDocument(spec), ...policies], { issuer: ISSUER });
  expect(client === undefined).toBe(faults.length > 0);
  return faults.map(({ reason, path }) => `${reason} ${path.slice(1).join('.')}`);
}

describe('a hostile tenant that no policy selects', () => {
  it.each<[what: string, spec: Fields, faults: readonly string[]]>([
    ['its people', OPENID, []],
    ['their groups', GROUPS, ['PolicyViolation scopes.1']],
    ['one of their groups', { ...GROUPS, groups: ['team'] }, ['PolicyViolation scopes.1']],
    ['no consent page', { ...OPENID, consent: 'Skip' }, ['PolicyViolation consent']],
    [
      'notices at its own host',
      { ...OPENID, backchannelLogoutUri: 'https://app.example.com/bye' },
      ['PolicyViolation backchannelLogoutUri'],
    ],
  ])('and that asks for %s', (_, spec, faults) => {
    expect(faultsOf(spec)).toEqual(faults);
  });
});

describe('a hostile tenant beyond its policy', () => {
  it('given what the policy gives → admitted', () => {
    expect(faultsOf(PERMITTED, POLICY)).toEqual([]);
  });

  it.each<[string, Fields, string]>([
    ['without a list of groups', { groups: undefined }, 'groups'],
    ['with all groups', { groups: ['*'] }, 'groups.0'],
    ['with a glob that is shorter by a character', { groups: ['team*'] }, 'groups.0'],
    ['with one group more', { groups: ['team-a', 'admins'] }, 'groups.1'],
    ['with a glob of two stars', { groups: ['**team-*'] }, 'groups.0'],
    ['without the consent page', { consent: 'Skip' }, 'consent'],
    ['to the API server by name', { backchannelLogoutUri: 'https://kubernetes.default.svc/' }, 'backchannelLogoutUri'],
    [
      'to the metadata server by name',
      { backchannelLogoutUri: 'https://metadata.google.internal/' },
      'backchannelLogoutUri',
    ],
    [
      'to a host that begins as its own',
      { backchannelLogoutUri: 'https://app.team.example.evil.example/' },
      'backchannelLogoutUri',
    ],
    [
      'to a host that ends as its own',
      { backchannelLogoutUri: 'https://app.evilteam.example/' },
      'backchannelLogoutUri',
    ],
  ])('%s → PolicyViolation', (_, changes, field) => {
    expect(faultsOf({ ...PERMITTED, ...changes }, POLICY)).toEqual([`PolicyViolation ${field}`]);
  });

  it.each([
    ...['https://10.96.0.1/', 'https://169.254.169.254/', 'https://2852039166/', 'https://[fd00:ec2::254]/'],
    ...['https://[::ffff:169.254.169.254]/', 'https://app.team.example@10.96.0.1/', 'https://app.team.example/#x'],
    ...[
      'http://169.254.169.254/',
      'http://127.0.0.1:8080/',
      'http://localhost/',
      'https://APP.team.example/',
      'file:///etc',
    ],
  ])('to %s, whatever hosts its policy permits → InvalidManifest', (backchannelLogoutUri) => {
    const anyHost = policyDocument({ allow: { scopes: ['openid'], logoutHosts: ['**'] } });
    const faults = faultsOf({ ...OPENID, backchannelLogoutUri }, anyHost);
    expect(faults).toContain('InvalidManifest backchannelLogoutUri');
  });
});
