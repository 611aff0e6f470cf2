// The access of a client with OpenID Connect beside audiences that have owners.

import { describe, expect, it } from 'vitest';
import { accessForScope } from '../../../src/oauth/access/openid-access.ts';
import { checkScope } from '../../../src/oauth/access/scope.ts';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { KeyRing } from '../../../src/oauth/registry/keys.ts';
import { Registry } from '../../../src/oauth/registry/registry.ts';
import { Resources } from '../../../src/oauth/registry/resources.ts';
import { aClient } from '../a-client.ts';
import { aResource } from '../a-resource.ts';

const issuer = 'https://login.example';
const notes = aResource();

function access(scope: string, overrides: Partial<Client>) {
  const client = aClient({ scopes: ['openid', 'email'], defaultScopes: [], ...overrides });
  return accessForScope(scope, client, {
    registry: new Registry([client], new KeyRing([]), { resources: new Resources([notes]) }),
    issuer,
  });
}

describe('the access of a client with OpenID Connect', () => {
  it.each<[string, Partial<Client>]>([
    [
      'that refers to a resource',
      { audiences: [], resources: [{ namespace: undefined, name: 'notes', scopes: undefined }] },
    ],
    [
      'whose audience has an owner',
      { audiences: [notes.identifier], scopes: ['notes.read', 'notes.write', 'openid', 'email'] },
    ],
  ])('given one %s → has the scopes of the owner there, and those of OpenID Connect at the issuer', (_what, client) => {
    const both = access('openid email notes.read', client);
    expect(both.audiences.map((audience) => [audience, both.scopesAt(audience)])).toEqual([
      [notes.identifier, ['notes.read', 'notes.write']],
      [issuer, ['openid', 'email']],
    ]);
    expect([...both.scopes].sort()).toEqual(['email', 'notes.read', 'notes.write', 'openid']);
    expect(() => checkScope(['openid', 'email', 'notes.read'], both.audiences, both)).not.toThrow();
  });

  it.each<[string, Partial<Client>]>([
    ['one audience', { audiences: [notes.identifier] }],
    ['several audiences', { audiences: [notes.identifier, 'https://mail.example'] }],
    ['a resource', { audiences: [], resources: [{ namespace: undefined, name: 'notes', scopes: undefined }] }],
  ])(
    'given %s and the issuer as default audience → a request that names none is about the issuer alone',
    (_what, client) => {
      const both = access('openid', { ...client, defaultAudience: issuer });
      expect([both.defaultAudience, both.defaultAudiences]).toEqual([issuer, [issuer]]);
      expect(both.audiences).toContain(notes.identifier);
    },
  );

  it('given the issuer as default audience, and a request without openid → as if none were named', () => {
    const one = access('notes.read', { audiences: [notes.identifier], defaultAudience: issuer });
    expect([one.defaultAudience, one.defaultAudiences]).toEqual([notes.identifier, [notes.identifier]]);
    const two = access('notes.read', {
      audiences: [notes.identifier, 'https://mail.example'],
      defaultAudience: issuer,
    });
    expect([two.defaultAudience, two.defaultAudiences]).toEqual([undefined, []]);
  });

  it('given a request without openid → has nothing of it', () => {
    const { audiences, scopes } = access('notes.read', {
      audiences: [],
      resources: [{ namespace: undefined, name: 'notes', scopes: undefined }],
    });
    expect([audiences, scopes]).toEqual([[notes.identifier], ['notes.read', 'notes.write']]);
  });
});
