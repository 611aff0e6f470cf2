// What a permitted list of groups discloses to a client is a part of what the globs of its policy would.

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CLIENT_POLICY } from '../../../src/admission/kinds/client-policy.ts';
import { readManifest } from '../../../src/admission/kinds/manifest.ts';
import { OAUTH_CLIENT } from '../../../src/admission/kinds/oauth-client.ts';
import { policyOf } from '../../../src/admission/policies/policy.ts';
import { policyViolations } from '../../../src/admission/policies/policy-violations.ts';
import { matchingGroups } from '../../../src/oauth/access/group-filter.ts';

const API = { apiVersion: 'grantry.dev/v1alpha1', metadata: { name: 'a' } };

function isPermitted(groups: readonly string[] | undefined, globs: readonly string[]): boolean {
  const policy = readManifest(CLIENT_POLICY.refuse, {
    ...API,
    kind: 'ClientPolicy',
    spec: { namespaceSelector: {}, allow: { scopes: ['groups'], groups: globs } },
  }).manifest;
  const spec = { redirectUris: ['https://a.example/'], scopes: ['groups'], ...(groups !== undefined && { groups }) };
  const client = readManifest(OAUTH_CLIENT.refuse, { ...API, kind: 'OAuthClient', spec }).manifest;
  if (policy === undefined || client === undefined) throw new Error('not well-shaped');
  const ofTeam = { namespace: 'team', namespaceLabels: {}, explicitClientId: undefined };
  const request = { ...ofTeam, spec: client.spec, ownerOf: () => undefined };
  return policyViolations(request, policyOf(policy)).length === 0;
}

it('given any lists of a client and its policy → a permitted one lets nothing through that the policy does not', () => {
  const glob = fc.string({ unit: fc.constantFrom('a', 'b', '/', ':', '*', '*'), minLength: 1, maxLength: 6 });
  const globs = fc.uniqueArray(glob, { minLength: 1, maxLength: 3 });
  const group = fc.string({ unit: fc.constantFrom('a', 'b', '/', ':', '*'), maxLength: 8 });
  let permitted = 0;
  fc.assert(
    fc.property(globs, globs, fc.array(group, { maxLength: 20 }), (ofClient, ofPolicy, groups) => {
      if (!isPermitted(ofClient, ofPolicy)) return;
      permitted += 1;
      const allowed = matchingGroups(groups, ofPolicy);
      for (const disclosed of matchingGroups(groups, ofClient)) expect(allowed).toContain(disclosed);
    }),
    { numRuns: 3000 },
  );
  expect(permitted).toBeGreaterThan(100);
});

it.each<[globs: readonly string[], groups: readonly string[] | undefined, permitted: boolean]>([
  [['**'], undefined, true],
  [['*'], undefined, true],
  [['team-*'], undefined, false],
  [['team-*'], ['team-a', 'team-*', 'team-*-b*'], true],
  [['team-*'], ['team*'], false],
  [['team-*'], ['*'], false],
  [['team-a', 'team-b'], ['team-?', 'team-a'], false],
  [[`\${namespace}-*`], ['team-*'], true],
  [[`\${namespace}-*`], [`\${namespace}-a`], false],
  [['a*', '*b'], ['a*b'], true],
  [['a*', '*b'], ['*'], false],
  [[], ['a'], false],
])('a policy with %j, and a client with %j → permitted: %j', (globs, groups, permitted) => {
  expect(isPermitted(groups, globs)).toBe(permitted);
});
