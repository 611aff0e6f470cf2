import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clientAccess } from '../../../src/oauth/access/client-access.ts';
import type { Client, ResourceReference } from '../../../src/oauth/registry/client.ts';
import type { Resource } from '../../../src/oauth/registry/resource.ts';
import { Resources } from '../../../src/oauth/registry/resources.ts';
import { aClient } from '../a-client.ts';
import { aResource, declared } from '../a-resource.ts';

const NOTES = 'https://notes.example/api';
const MAIL = 'https://mail.example/';
const OWN = 'https://own.example/';

const to = (name: string, reference: Partial<ResourceReference> = {}): ResourceReference => ({
  namespace: undefined,
  name,
  scopes: undefined,
  ...reference,
});

function access(client: Partial<Client>, ...resources: readonly Resource[]) {
  return clientAccess(aClient({ audiences: [], scopes: [], defaultScopes: [], ...client }), {
    resources: new Resources(resources),
  });
}

const atEach = (of: ReturnType<typeof access>) => of.audiences.map((audience) => [audience, of.scopesAt(audience)]);

describe('the access of a client', () => {
  it('without owned audiences is its manifest: every scope at each audience', () => {
    const plain = access({ audiences: [OWN, MAIL], scopes: ['a', 'b'] }, aResource());
    expect(atEach(plain)).toEqual([
      [OWN, ['a', 'b']],
      [MAIL, ['a', 'b']],
    ]);
    expect(plain.scopesAt(NOTES)).toEqual([]);
  });

  it('has at a resource of its own namespace every declared scope', () => {
    const granted = access({ resources: [to('notes')] }, aResource());
    expect(atEach(granted)).toEqual([[NOTES, ['notes.read', 'notes.write']]]);
    expect(granted.defaultAudience).toBe(NOTES);
  });

  it('has no more there than its reference lists', () => {
    const reader = access({ resources: [to('notes', { scopes: ['notes.read', 'admin'] })] }, aResource());
    expect(atEach(reader)).toEqual([[NOTES, ['notes.read']]]);
  });

  it('has the scopes of its manifest at its own audiences only, and granted ones at the resource only', () => {
    const both = access(
      { audiences: [OWN], scopes: ['own.read'], defaultAudience: NOTES, resources: [to('notes')] },
      aResource(),
    );
    expect(atEach(both)).toEqual([
      [OWN, ['own.read']],
      [NOTES, ['notes.read', 'notes.write']],
    ]);
    expect(both.scopes).toEqual(['own.read', 'notes.read', 'notes.write']);
    expect(both.defaultAudience).toBe(NOTES);
  });

  it('has at an owned audience of its manifest only scopes that the owner declares', () => {
    const permitted = access({ audiences: [NOTES, OWN], scopes: ['notes.read', 'own.read'] }, aResource());
    expect(atEach(permitted)).toEqual([
      [NOTES, ['notes.read']],
      [OWN, ['notes.read', 'own.read']],
    ]);
  });

  it('takes an audience that differs in a final slash for an owned one', () => {
    const alike = access({ audiences: [`${NOTES}/`], scopes: ['own.read'] }, aResource());
    expect(alike.scopesAt(`${NOTES}/`)).toEqual([]);
  });

  it('joins what an administrator permits and what the owner grants at one audience', () => {
    const elsewhere = aResource({
      namespace: 'team-a',
      allowedClients: [{ namespaces: new Set(['shop']), clients: ['web'], scopes: ['notes.write'] }],
    });
    const joined = access(
      { audiences: [NOTES], scopes: ['notes.read'], resources: [to('notes', { namespace: 'team-a' })] },
      elsewhere,
    );
    expect(joined.scopesAt(NOTES)).toEqual(['notes.read', 'notes.write']);
  });

  it.each([
    ['missing', to('nothing'), aResource()],
    [
      'of another namespace without allowedClients',
      to('notes', { namespace: 'team-a' }),
      aResource({ namespace: 'team-a' }),
    ],
    [
      'of another namespace that lets in other clients',
      to('notes', { namespace: 'team-a' }),
      aResource({ namespace: 'team-a', allowedClients: [{ namespaces: 'all', clients: ['cli'], scopes: undefined }] }),
    ],
    [
      'of another namespace that lets in other namespaces',
      to('notes', { namespace: 'team-a' }),
      aResource({
        namespace: 'team-a',
        allowedClients: [{ namespaces: new Set(['team-b']), clients: undefined, scopes: undefined }],
      }),
    ],
  ])('has nothing at a resource that is %s, and all the rest', (_, reference, resource) => {
    const rest = access({ audiences: [OWN], scopes: ['own.read'], resources: [reference] }, resource);
    expect(atEach(rest)).toEqual([[OWN, ['own.read']]]);
  });

  it('has at the identifier of a withheld resource what an administrator permits of the declared scopes, and no grant', () => {
    const withheld = aResource({ maxLifetimeSeconds: 60, senderConstraint: 'DPoP' });
    const resources = new Resources([], [withheld]);
    const scopes = ['notes.read', 'own.read'];
    for (const references of [[], [to('notes')]]) {
      const permitted = clientAccess(aClient({ audiences: [NOTES], scopes, resources: references }), { resources });
      expect(atEach(permitted)).toEqual([[NOTES, ['notes.read']]]);
      expect(permitted.ownerOf(NOTES)).toBe(withheld);
    }
    expect(clientAccess(aClient({ audiences: [], resources: [to('notes')] }), { resources }).audiences).toEqual([]);
  });

  it('is the union of the entries that let the client in', () => {
    const entry = (scopes: readonly string[], clients?: readonly string[]) => ({
      namespaces: 'all' as const,
      clients,
      scopes,
    });
    const resource = aResource({
      namespace: 'team-a',
      scopes: declared('a', 'b', 'c', 'd'),
      allowedClients: [entry(['c']), entry(['a'], ['web']), entry(['b'], ['cli'])],
    });
    expect(access({ resources: [to('notes', { namespace: 'team-a' })] }, resource).scopesAt(NOTES)).toEqual(['a', 'c']);
  });

  it('never has a scope at an owned audience that its owner does not declare', () => {
    const names = ['a', 'b', 'c', 'd'];
    const some = fc.uniqueArray(fc.constantFrom(...names));
    const namespaces = fc.constantFrom<'all' | ReadonlySet<string>>('all', new Set(['shop']), new Set(['team-b']));
    const entry = fc.record({
      namespaces,
      clients: fc.constantFrom<readonly string[] | undefined>(undefined, ['web'], ['cli']),
      scopes: fc.option(some, { nil: undefined }),
    });
    fc.assert(
      fc.property(
        some,
        some,
        fc.array(entry),
        fc.option(some, { nil: undefined }),
        fc.boolean(),
        (scopes, owned, entries, listed, isListed) => {
          const resource = aResource({ namespace: 'team-a', scopes: declared(...owned), allowedClients: entries });
          const audiences = isListed ? [NOTES] : [];
          const reference = to('notes', { namespace: 'team-a', scopes: listed });
          const at = access({ audiences, scopes, resources: [reference] }, resource).scopesAt(NOTES);
          expect(at.filter((scope) => !owned.includes(scope))).toEqual([]);
          const granted = (scope: string) =>
            (listed?.includes(scope) ?? true) &&
            entries.some(
              (each) =>
                (each.namespaces === 'all' || each.namespaces.has('shop')) &&
                (each.clients?.includes('web') ?? true) &&
                (each.scopes?.includes(scope) ?? true),
            );
          expect(at.filter((scope) => !granted(scope) && !(isListed && scopes.includes(scope)))).toEqual([]);
        },
      ),
    );
  });
});
