import { describe, expect, it } from 'vitest';
import { admitOne, clientDocument, MACHINE } from '../world.ts';

type Fields = Readonly<Record<string, unknown>>;

const NOTES = { name: 'notes', scopes: ['team/notes.read'] };
const TASKS = { namespace: 'other', name: 'tasks' };

/** The faults of a client with these fields: reason and field. */
function faultsOf(spec: Fields): readonly string[] {
  const { faults } = admitOne([clientDocument({ grantTypes: ['client_credentials'], ...spec })]);
  return faults.map(({ reason, path }) => `${reason} ${path.slice(1).join('.')}`);
}

describe('the scopes of a client that refers to resources', () => {
  it('given none of its own → accepted', () => {
    expect(faultsOf({ resources: [NOTES] })).toEqual([]);
  });

  it.each<[string, Fields, readonly string[]]>([
    ['a reference lists', { resources: [NOTES], defaultScopes: ['team/notes.read'] }, []],
    ['a reference without a list may give', { resources: [TASKS], defaultScopes: ['other/tasks.any'] }, []],
    [
      'no reference lists',
      { resources: [NOTES], defaultScopes: ['team/notes.read', 'team/notes.write'] },
      ['InvalidScope defaultScopes.1'],
    ],
    ['no owner may declare', { resources: [TASKS], defaultScopes: ['a"b'] }, ['InvalidScope defaultScopes.0']],
    [
      'is in neither list without a reference',
      { ...MACHINE, defaultScopes: ['team/other'] },
      ['InvalidScope defaultScopes.0'],
    ],
  ])('a default scope that %s', (_, spec, faults) => {
    expect(faultsOf(spec)).toEqual(faults);
  });
});

describe('the audiences of a client that refers to resources', () => {
  const OWN = 'urn:grantry:ns:team:api';
  const UNKNOWN = 'https://tasks.example.com/api';
  const given = (fields: Fields) => ({ ...MACHINE, resources: [NOTES], ...fields });

  it.each<[string, Fields, readonly string[]]>([
    ['one reference and no audience → needs no default', given({}), []],
    ['an audience and a reference → needs one', given({ audiences: [OWN] }), ['InvalidAudience defaultAudience']],
    ['two references → need one', given({ resources: [NOTES, TASKS] }), ['InvalidAudience defaultAudience']],
    ['a default among the audiences', given({ audiences: [OWN], defaultAudience: OWN }), []],
    ['a default that may be an identifier', given({ audiences: [OWN], defaultAudience: UNKNOWN }), []],
    ['a default of no identifier', given({ defaultAudience: 'tasks' }), ['InvalidAudience defaultAudience']],
    [
      'an unknown default without a reference',
      { ...MACHINE, audiences: [OWN], defaultAudience: UNKNOWN },
      ['InvalidAudience defaultAudience'],
    ],
  ])('%s', (_, spec, faults) => {
    expect(faultsOf(spec)).toEqual(faults);
  });

  it('are those of its manifest: no default one of its namespace beside the resources', () => {
    const audiencesOf = (spec: Fields) => admitOne([clientDocument({ ...MACHINE, ...spec })]).client?.audiences;
    expect(audiencesOf({ resources: [NOTES] })).toEqual([]);
    expect(audiencesOf({})).toEqual(['urn:grantry:ns:team:default']);
  });

  it('are referred to as the manifest does', () => {
    const { client } = admitOne([clientDocument(given({ resources: [NOTES, TASKS], defaultAudience: UNKNOWN }))]);
    expect([client?.namespace, client?.name]).toEqual(['team', 'app']);
    expect(client?.resources).toEqual([
      { namespace: undefined, name: 'notes', scopes: ['team/notes.read'] },
      { namespace: 'other', name: 'tasks', scopes: undefined },
    ]);
  });
});
