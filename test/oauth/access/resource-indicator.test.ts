import { describe, expect, it } from 'vitest';
import { clientAccess } from '../../../src/oauth/access/client-access.ts';
import {
  isConstraintMet,
  isResourceIndicator,
  resolveResource,
  resolveResources,
} from '../../../src/oauth/access/resource-indicator.ts';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { Resources } from '../../../src/oauth/registry/resources.ts';
import { aClient } from '../a-client.ts';
import { aResource } from '../a-resource.ts';
import { refusalOf } from '../refusal.ts';

const ISSUER = 'https://auth.example';
const A = 'https://a.example/';
const B = 'urn:grantry:ns:shop:b';
const C = 'https://c.example/v1?x=1';

const access = (client: Partial<Client>, resources = Resources.NONE) => clientAccess(aClient(client), { resources });
const one = access({ audiences: [A] });
const several = access({ audiences: [A, B, C], defaultAudience: B });

describe('a resource indicator (RFC 8707 §2)', () => {
  it.each([A, B, C, 'https://a.example', 'https://a.example/%2e', 'com.example.api:/v1'])('may be %s', (value) => {
    expect(isResourceIndicator(value)).toBe(true);
  });

  it.each([
    '',
    'a.example',
    '/v1',
    '//a.example',
    '1http://a.example',
    'https:',
    'https://a.example/#',
    'https://a.example/#x',
    'https://a.example/ x',
    'https://a.example/\n',
    'https://a.example/%2',
    'https://é.example/',
    'https://a.example/"',
  ])('may not be %j', (value) => {
    expect(isResourceIndicator(value)).toBe(false);
  });
});

describe('the resources an authorization request asks for', () => {
  it.each([
    ['several, in the order sent', [C, A], several, [C, A]],
    ['one sent twice, once', [A, A], several, [A]],
    ['the default where none is sent', [], several, [B]],
    ['the only registered one where none is sent', [], one, [A]],
  ])('are %s', (_, values, client, resources) => {
    expect(resolveResources(values, client)).toEqual(resources);
  });

  it.each([
    ['one is not registered', [A, 'https://x.example/'], several, 'resource_not_registered'],
    ['one differs in a slash only', ['https://a.example'], several, 'resource_not_registered'],
    ['one is relative', ['/v1'], several, 'resource_malformed'],
    ['one has a fragment', [`${A}#x`], several, 'resource_malformed'],
    ['the issuer is asked for', [ISSUER], one, 'resource_not_registered'],
    ['none is sent and several have no default', [], access({ audiences: [A, B] }), 'resource_missing'],
    ['the default is not registered', [], access({ audiences: [A], defaultAudience: B }), 'resource_not_registered'],
  ])('are refused when %s', (_, values, client, reason) => {
    expect(refusalOf(() => resolveResources(values, client))).toEqual({ code: 'invalid_target', reason });
  });
});

describe('the one resource of a token request without a grant', () => {
  it.each([
    ['the one sent', [C], several, C],
    ['the default', [], several, B],
    ['the only registered one', [], one, A],
  ])('is %s', (_, values, client, resource) => {
    expect(resolveResource(values, client, undefined)).toBe(resource);
  });

  it.each([
    ['two are sent', [A, B], several, 'resource_repeated'],
    ['it is not registered', ['https://x.example/'], several, 'resource_not_registered'],
    ['it has a fragment', [`${A}#`], several, 'resource_malformed'],
    ['none is sent and several have no default', [], access({ audiences: [A, B] }), 'resource_missing'],
    ['none is sent and the client has none', [], access({ audiences: [] }), 'resource_not_granted'],
  ])('is refused when %s', (_, values, client, reason) => {
    expect(refusalOf(() => resolveResource(values, client, undefined))).toEqual({ code: 'invalid_target', reason });
  });
});

describe('the sender constraint of a resource', () => {
  const JKT = 'jkt.0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I';
  const X5T = 'x5t.bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2';

  it.each([
    ['None', [true, true, true]],
    ['DPoP', [false, true, false]],
    ['MutualTLS', [false, false, true]],
    ['Any', [false, true, true]],
  ] as const)('%s is met by no binding, a key, a certificate: %j', (senderConstraint, met) => {
    const owned = access(
      { audiences: [A, C], defaultAudience: C },
      new Resources([aResource({ identifier: A, senderConstraint })]),
    );
    expect([undefined, JKT, X5T].map((bound) => isConstraintMet(A, owned, bound as never))).toEqual(met);
    expect(isConstraintMet(C, owned, undefined)).toBe(true);
    if (met[0]) expect(resolveResource([A], owned, undefined)).toBe(A);
    else {
      const refused = { code: 'invalid_target', reason: 'sender_constraint_required' };
      expect(refusalOf(() => resolveResource([A], owned, undefined))).toEqual(refused);
    }
    expect(resolveResource([], owned, undefined)).toBe(C);
  });
});
