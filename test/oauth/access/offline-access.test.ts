// offline_access where a client cannot have it (OpenID Connect Core §11).

import { describe, expect, it } from 'vitest';
import { clientAccess } from '../../../src/oauth/access/client-access.ts';
import { resolveAuthorizedScope, withoutVainOfflineAccess } from '../../../src/oauth/access/offline-access.ts';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { Resources } from '../../../src/oauth/registry/resources.ts';
import { aClient } from '../a-client.ts';
import { refusalOf } from '../refusal.ts';

const LISTED = ['openid', 'offline_access', 'shop/read'];

function holder(overrides: Partial<Client>) {
  const client = aClient(overrides);
  return { client, access: clientAccess(client, { resources: Resources.NONE }) };
}

function resolve(requested: string | undefined, overrides: Partial<Client>) {
  const { client, access } = holder(overrides);
  return resolveAuthorizedScope(requested, client.audiences, { client, access });
}

describe('offline_access', () => {
  const withoutRefresh = { grantTypes: ['authorization_code'] as const };

  it.each<[string, string | undefined, Partial<Client>, readonly string[]]>([
    ['listed, with refresh tokens', 'openid offline_access', { scopes: LISTED }, ['openid', 'offline_access']],
    ['not listed', 'offline_access openid shop/read', { scopes: ['openid', 'shop/read'] }, ['openid', 'shop/read']],
    ['listed, without refresh tokens', 'openid offline_access', { scopes: LISTED, ...withoutRefresh }, ['openid']],
    ['a default', undefined, { scopes: LISTED, defaultScopes: LISTED, ...withoutRefresh }, ['openid', 'shop/read']],
    ['listed, without openid', 'offline_access', { scopes: LISTED, ...withoutRefresh }, ['offline_access']],
  ])('given one that is %s → the scope', (_what, requested, overrides, scope) => {
    expect(resolve(requested, overrides)).toEqual(scope);
  });

  it.each<[string, string, string]>([
    ['not listed, without openid', 'offline_access', 'scope_not_registered'],
    ['beside an openid that is not listed', 'openid offline_access', 'scope_not_registered'],
    ['in a malformed scope', 'openid  offline_access', 'scope_malformed'],
  ])('given one that is %s → invalid_scope', (_what, requested, reason) => {
    expect(refusalOf(() => resolve(requested, { scopes: ['shop/read'] }))).toMatchObject({
      code: 'invalid_scope',
      reason,
    });
  });

  it('given a client that has lost it since it was asked for → it is left out', () => {
    const lost = holder({ scopes: ['openid'] });
    expect(withoutVainOfflineAccess(['openid', 'offline_access'], lost)).toEqual(['openid']);
  });
});
