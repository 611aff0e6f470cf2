// Entries of the lists of a ClientPolicy: one that can match nothing is refused with the form that it should have, and no
// entry that matches something is.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CLIENT_POLICY } from '../../../src/admission/kinds/client-policy.ts';
import { globMatches, NAMESPACE_VARIABLE as V } from '../../../src/admission/kinds/glob.ts';

interface List {
  /** What a client or a resource may have. */
  readonly values: readonly string[];
  /** What looks like an entry and matches none of what can be had. */
  readonly idle: readonly string[];
}

const HOSTS: List = {
  values: ['app.example.com', 'localhost', '10.0.0.1', '[2001:db8::1]', 'xn--bcher-kva.example', 'a_b.example'],
  idle: [
    'https://x.example',
    'x.example:8443',
    'x.example/cb',
    'App.example',
    '*.example.com/*',
    'x example',
    `\${name}.x`,
  ],
};
const URIS: List = {
  values: ['https://api.example.com/v1', 'urn:grantry:ns:shop:api', 'http://localhost:8080', 'HTTP+x:a(b)'],
  idle: ['api.example.com', '/v1', 'https://api.example.com/#a', 'https://a"b', '//api', '${namespace', 'shop api:a'],
};
const LISTS: Readonly<Record<string, List>> = {
  clientIds: { values: ['web', 'Shop_1~a-b'], idle: ['-web', 'a b', 'other.*', `${V}.x`, 'a/b', 'ä', '.a'] },
  grantTypes: {
    values: ['authorization_code', 'urn:ietf:params:oauth:grant-type:token-exchange'],
    idle: ['Authorization_Code', 'client credentials', V],
  },
  authMethods: { values: ['client_secret_basic', 'none'], idle: ['client-secret-basic', 'None', 'none,x'] },
  scopes: {
    values: ['shop/read', 'https://a.example/$b', 'a{b}', '!#[]~'],
    idle: ['a"b', 'a\\b', 'a b', `\${name}/*`, 'ä'],
  },
  audiences: URIS,
  resources: URIS,
  redirectHosts: HOSTS,
  jwksHosts: HOSTS,
  logoutHosts: HOSTS,
  redirectSchemes: {
    values: ['com.example.app', 'a1.b-c'],
    idle: ['com.example.app:', 'com.example.app://', 'myapp', 'Com.example', '1a.b'],
  },
  corsOrigins: {
    values: ['https://app.example.com', 'http://localhost:3000', 'http://[::1]:8080'],
    idle: ['app.example.com', 'https://app.example.com/', 'https://App.example', 'https://a/**x y', '*', 'ftp://a'],
  },
  secretMetadata: {
    values: ['example.com/team', 'a.b-c/D_e.f'],
    idle: ['team', 'a/b/c', 'Example.com/a', '*', 'a b/c'],
  },
};

function issuesOf(unknownFields: 'refuse' | 'ignore', field: string, entry: string) {
  const { error } = CLIENT_POLICY[unknownFields].safeParse({
    apiVersion: 'grantry.dev/v1alpha1',
    kind: 'ClientPolicy',
    metadata: { name: 'a' },
    spec: { namespaceSelector: {}, allow: { [field]: [entry] } },
  });
  return (error?.issues ?? []).map(({ path, message }) => [path.join('.'), message]);
}

describe.each(Object.entries(LISTS))('allow.%s', (field, { values, idle }) => {
  it.each(idle)('given %j, which can match nothing → refused with the form', (entry) => {
    expect(issuesOf('refuse', field, entry)).toEqual([
      [`spec.allow.${field}.0`, expect.stringContaining('can match no')],
    ]);
  });

  it.each(idle.filter((entry) => /^[ -~]+$/.test(entry) && !/ |\$\{(?!namespace\})/.test(entry)))(
    'given %j in a cluster → the policy is read as before',
    (entry) => expect(issuesOf('ignore', field, entry)).toEqual([]),
  );

  it('given a glob that matches what a client may have → accepted', () => {
    const globs = fc
      .tuple(fc.constantFrom(...values), fc.nat(), fc.nat(), fc.constantFrom('', '*', '**', V))
      .map(([value, one, other, star]) => {
        const [from = 0, to = 0] = [one % (value.length + 1), other % (value.length + 1)].sort((a, b) => a - b);
        const text = star === V ? 'shop' : value.slice(from, to);
        const expanded = value.slice(0, from) + text + value.slice(to);
        return { value: expanded, glob: value.slice(0, from) + star + value.slice(to), isVariable: star === V };
      });
    const ends = { redirectHosts: './:', jwksHosts: './:', logoutHosts: './:', corsOrigins: './:', clientIds: '' };
    const segmentEnds = ends[field as keyof typeof ends] ?? '/:';
    let matching = 0;
    fc.assert(
      fc.property(globs, ({ value, glob, isVariable }) => {
        if (glob === '' || (!isVariable && !globMatches(glob, value, segmentEnds))) return;
        // A variable may stand where no namespace fits; that is for the reader of the policy.
        if (isVariable && issuesOf('refuse', field, value).length > 0) return;
        if (isVariable && ['grantTypes', 'authMethods'].includes(field)) return;
        matching++;
        expect([glob, issuesOf('refuse', field, glob)]).toEqual([glob, []]);
      }),
      { numRuns: 400, seed: 7 },
    );
    expect(matching).toBeGreaterThan(100);
  });
});
