// Manifests made up from the schema of a CRD: most values fit, some do not, so that two readers of the same schema are
// asked about both.

import fc from 'fast-check';

/** The part of a structural schema that values are made up from. */
export interface Schema {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'boolean';
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly maximum?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-validations'?: readonly { readonly rule: string; readonly message: string }[];
}

const DURATIONS = ['10m', '1h', '24h', '25h', '48h', '1h30m', '90s', '0s', '30s', '8785h', '99999h'];
const ODD_DURATIONS = ['', '0', '1.5h', '500ms', '30m1h', '100000h', '-1h', '1d'];
const TIMES = ['2026-01-31T12:00:00Z', '2024-02-29T23:59:59.123456789+05:30', '2000-12-31T23:59:59-23:59'];
const ODD_TIMES = ['2026-02-29T12:00:00Z', '2026-01-31', '2026-01-31T12:00Z', '2026-01-31t12:00:00z', 'now'];
const NAMES = ['web', 'shop.web', 'a-b.c1', '0'];
const ODD_NAMES = ['', 'Web', '-a', 'a-', 'a..b', 'a_b', 'a b', 'a\n'];
const DATA_KEYS = ['client-id', 'CLIENT_ID', '.env', 'a.b', '_'];
const ODD_DATA_KEYS = ['', '..a', 'a/b', 'a b', '.'];
const ORIGINS = [
  ...['https://app.example.com', 'http://localhost:3000', 'http://[::1]:8080', 'http://10.0.0.1', 'https://x2y'],
  'https://app:443',
];
const ODD_ORIGINS = ['https://App', 'https://app/', 'http://127.1', 'https://a.0x7f', 'https://a:65536'];
const ADDRESSES = ['https://example.com/a?b=c#d', 'http://Example.COM:8080', 'https://10.0.0.1/[x]'];
const ODD_ADDRESSES = ['javascript:alert(1)', 'https://', 'https://a b', 'https://u@h', 'https://1.2.3', 'https://a:0'];
const TEXTS = [
  'Shop',
  'Größe',
  'می\u200Cخواهم',
  'क\u094D\u200Dष',
  '\u2764\uFE0F',
  '\u{1F6D2}',
  'a (b)',
  '\u2122\uFE0F',
];
const ODD_TEXTS = [
  'a\nb',
  'a\u202Eb',
  'a\u200Db',
  'م\u200C',
  '\u3164',
  '\uFEFF',
  'a\uFE0F',
  '\u{E0041}',
  '\u0085',
  '\u115F\u200Dx',
];
const GLOBS = ['**', `\${namespace}/*`, '$', `$\${namespace}{`, 'a$b', '{', '~'];
const ODD_GLOBS = ['', `\${name}`, '${', 'a b', 'ä', '\x7f'];
const KEY_IDS = ['A'.repeat(43), `${'-_'.repeat(21)}0`];
const ODD_KEY_IDS = ['', 'A'.repeat(42), 'A'.repeat(44), `${'A'.repeat(42)}=`];
const QUANTITIES = ['64Mi', '1k', '512Ki', '999999Gi', '3G'];
const ODD_QUANTITIES = ['', '64', '0Mi', '64 Mi', '1.5Gi', '1Ti', '64MB', '1000000Gi'];
const CLASSES = ['default', 'a-b', '0'];
const ODD_CLASSES = ['', 'a.b', '-a', 'A'];
const NAMESPACES = ['*', 'team-b', '0'];
const ODD_NAMESPACES = ['', '**', '*a', 'a.b', 'A'];
const CLIENT_IDS = ['web', 'Shop.Web~1', '0_-', 'usr_a'];
const ODD_CLIENT_IDS = ['', '.web', 'a b', 'a/b', 'ä'];
const TYPES = ['OIDC', 'GitHub', 'LDAP2'];
const ODD_TYPES = ['', '0', 'a-b', 'a b'];
const ISSUERS = [
  ...['https://id.example', 'https://Id.example:8443/realms/a/', 'https://10.0.0.1', 'http://127.0.0.1:5556/dex'],
  ...['http://localhost', 'http://[::1]:8080', 'https://login.microsoftonline.com/common/v2.0'],
];
const ODD_ISSUERS = [
  ...['http://id.example', 'https://', 'https://a b', 'https://u@h', 'https://a?b', 'https://a#b', 'https://1.2.3'],
  ...['https://a:0', 'http://127.0.0.1.example'],
];
const HOSTS = ['github.com', 'git.corp.example:8443', '10.0.0.1', 'localhost'];
const ODD_HOSTS = ['', 'Git.example', '1.2.3', 'a:0', 'a/b', 'a b'];
const ORGANIZATIONS = ['corp', 'Corp-Org', '0'];
const ODD_ORGANIZATIONS = ['', '-a', 'a-', 'a--b', 'a_b'];
const DOMAINS = ['corp.example', 'a-b.c1'];
const ODD_DOMAINS = ['', 'corp', 'Corp.example', 'a..b', '.a.b', 'a.b.', 'a@b.c'];
const CLAIMS = ['email', 'https://a.example/groups', '/realm_access/roles', '/a~1b/~0'];
const ODD_CLAIMS = ['', '/', '/a~2', '//a', 'a\nb'];
const GROUPS = ['**', 'ops-*', 'staff:Größe'];
const ODD_GROUPS = ['', 'a\nb', '\u0085'];
const SCOPES = ['openid', 'corp:', '!#[]~'];
const ODD_SCOPES = ['', 'a b', 'a"b', 'a\\b', 'ä'];
const VISIBLE = ['openid', 'corp:', 'x'];
const ODD_VISIBLE = ['', 'a b', 'ä', '\x7f'];
const WORDS = [
  '',
  'none',
  'client_secret_post',
  'client_credentials',
  'urn:a',
  'private_key_jwt',
  'x',
  '\u{1F6D2}',
  ' ',
];

type Pool = readonly [fitting: readonly string[], odd: readonly string[]];

/** Entries of the lists of a policy. */
const ENTRIES: readonly Pool[] = [
  [
    ['web', 'team_*', 'a.b', '**', `\${namespace}_*`],
    ['', 'a b', 'other.*', '-a', 'ä'],
  ],
  [
    ['authorization_code', '*', 'urn:a-b'],
    ['', 'A', 'a b'],
  ],
  [
    ['client_secret_basic', '*', 'none'],
    ['', 'a-b', 'A', 'a:b'],
  ],
  [
    ['shop/read', `\${namespace}/*`, '$', '{', 'a#b'],
    ['', 'a"b', 'a\\b', 'a b', `\${name}`],
  ],
  [
    ['urn:a', 'https://a.example/*', '**', `\${namespace}:x`, 'a*'],
    ['', 'api.example', '/a', 'urn:a#b', 'a b'],
  ],
  [
    ['app.example', '*.example', `\${namespace}.x`, '[::1]'],
    ['', 'https://a', 'a:1', 'A', 'a/b'],
  ],
  [
    ['com.example.app', 'com.*', '**'],
    ['', 'myapp', 'com.example:', 'A.b'],
  ],
  [
    ['https://a.example', 'https://*.example:8443', '**'],
    ['', 'https://a/', 'a.example', 'https://A'],
  ],
  [
    ['example.com/a', 'example.com/*', '**'],
    ['', 'team', 'a/b/c', '*'],
  ],
];

/** For each pattern what fits and what does not; the pool identifies the pattern. */
const POOLS: readonly Pool[] = [
  ...ENTRIES,
  [DURATIONS, ODD_DURATIONS],
  [TIMES, ODD_TIMES],
  [ADDRESSES, ODD_ADDRESSES],
  [ORIGINS, ODD_ORIGINS],
  [KEY_IDS, ODD_KEY_IDS],
  [DATA_KEYS, ODD_DATA_KEYS],
  [NAMES, ODD_NAMES],
  [NAMESPACES, ODD_NAMESPACES],
  [CLASSES, ODD_CLASSES],
  [CLIENT_IDS, ODD_CLIENT_IDS],
  [GLOBS, ODD_GLOBS],
  [TEXTS, ODD_TEXTS],
  [QUANTITIES, ODD_QUANTITIES],
  [TYPES, ODD_TYPES],
  [ISSUERS, ODD_ISSUERS],
  [HOSTS, ODD_HOSTS],
  [ORGANIZATIONS, ODD_ORGANIZATIONS],
  [DOMAINS, ODD_DOMAINS],
  [CLAIMS, ODD_CLAIMS],
  [GROUPS, ODD_GROUPS],
  [SCOPES, ODD_SCOPES],
  [VISIBLE, ODD_VISIBLE],
];

/** In JavaScript scripts are named with a prefix; nothing else of a pattern of ours differs. */
function javaScriptPattern(pattern: string): RegExp {
  return new RegExp(pattern.replaceAll(/\\p\{(Latin|Greek|Cyrillic)\}/g, '\\p{sc=$1}'), 'u');
}

/** What the whole string has to match. */
function patternOf({ 'x-kubernetes-validations': rules = [] }: Schema): string | undefined {
  return rules.flatMap(({ rule }) => /^self\.matches\(r"(.*)"\)$/.exec(rule)?.[1] ?? [])[0];
}

/** The pool of a pattern. @throws where none is known */
function poolOf(pattern: string): Pool {
  const fits = javaScriptPattern(pattern);
  const told = ([fitting, odd]: Pool) =>
    fitting.every((sample) => fits.test(sample)) && !odd.some((sample) => sample !== '' && fits.test(sample));
  const pool = POOLS.find(told);
  if (pool === undefined) throw new Error(`no values are known for ${pattern}`);
  return pool;
}

function stringsOf(schema: Schema): fc.Arbitrary<unknown> {
  const { maxLength = 64, enum: words } = schema;
  const pattern = patternOf(schema);
  if (words !== undefined) return mostly(fc.constantFrom(...words), fc.constantFrom('', 'Bogus', 'none'));
  const atLimit = 'a'.repeat(maxLength);
  if (pattern === undefined) {
    return mostly(fc.constantFrom(...WORDS), fc.constantFrom(atLimit, `${atLimit}a`, '\u{1F6D2}'.repeat(maxLength)));
  }
  const [fitting, odd] = poolOf(pattern);
  return mostly(fc.constantFrom(...fitting), fc.constantFrom(...odd, atLimit, `${atLimit}a`));
}

/** For each string that is written in a form the values of the schema with one that is not, at its path, and all else right. */
export function malformedValuesOf(schema: Schema, path = ''): readonly (readonly [path: string, value: unknown])[] {
  const below = (child: Schema | undefined, step: string, around: (value: unknown) => unknown) =>
    child === undefined
      ? []
      : malformedValuesOf(child, `${path}${step}`).map(([deep, value]) => [deep, around(value)] as const);
  const pattern = patternOf(schema);
  if (pattern !== undefined) {
    return poolOf(pattern)[1]
      .filter((value) => value !== '' && value.length <= (schema.maxLength ?? 0))
      .map((value) => [path, value] as const);
  }
  const needed = neededOf(schema) as object;
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, child]) =>
      below(child, `.${name}`, (value) => ({ ...needed, [name]: value })),
    ),
    ...below(schema.items, '[]', (value) => [value]),
    ...below(schema.additionalProperties, '.*', (value) => ({ de: value })),
  ];
}

function neededOf(schema: Schema | undefined): unknown {
  if (schema?.type === 'array') return [];
  if (schema?.type === 'object') {
    return Object.fromEntries((schema.required ?? []).map((name) => [name, neededOf(schema.properties?.[name])]));
  }
  const pattern = schema && patternOf(schema);
  return schema?.enum?.[0] ?? (pattern === undefined ? 'a' : poolOf(pattern)[0][0]);
}

function mostly<Value>(fitting: fc.Arbitrary<Value>, odd: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 40, arbitrary: fitting }, { weight: 1, arbitrary: odd });
}

const WRONG = fc.constantFrom<unknown>(null, 7, -1, 1.5, true, 'text', [], [null], {}, { a: 1 });

/** Values of which most fit the schema. */
export function valuesOf(schema: Schema): fc.Arbitrary<unknown> {
  return mostly(fittingValuesOf(schema), WRONG);
}

function fittingValuesOf(schema: Schema): fc.Arbitrary<unknown> {
  switch (schema.type) {
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return schema.enum === undefined
        ? mostly(fc.nat(schema.maximum ?? 100), fc.constantFrom(-1, (schema.maximum ?? 100) + 1, 0.5))
        : mostly(fc.constantFrom(...schema.enum), fc.constantFrom(0, 1024, 4097));
    case 'string':
      return stringsOf(schema);
    case 'array':
      return listsOf(schema);
    case 'object':
      return schema.additionalProperties === undefined
        ? objectsOf(schema)
        : mapsOf(schema, schema.additionalProperties);
  }
}

function listsOf({ items, maxItems = 8, 'x-kubernetes-list-type': listType }: Schema): fc.Arbitrary<unknown> {
  if (items === undefined) throw new Error('a list without items');
  const item = valuesOf(items);
  // Without equal members, since most sets are small and their pool is too.
  const few = fc.uniqueArray(item, { maxLength: 3, selector: (value) => JSON.stringify(value) });
  const twice = item.map((value) => [value, value]);
  const counted = (count: number) => Array.from({ length: count }, (_, index) => `a${index}`);
  const many = fc.constantFrom(counted(maxItems), counted(maxItems + 1));
  return fc.oneof(
    { weight: 40, arbitrary: few },
    { weight: 1, arbitrary: twice },
    { weight: items.type === 'string' || listType === 'set' ? 1 : 0, arbitrary: many },
  );
}

function mapsOf({ maxProperties = 8 }: Schema, values: Schema): fc.Arbitrary<unknown> {
  const key = mostly(
    fc.constantFrom('app', 'example.com/team', 'A.b'),
    fc.constantFrom('', 'k'.repeat(317), 'k'.repeat(318)),
  );
  const counted = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']));
  return fc.oneof(
    { weight: 40, arbitrary: fc.dictionary(key as fc.Arbitrary<string>, valuesOf(values), { maxKeys: 3 }) },
    { weight: 1, arbitrary: fc.constantFrom(counted(maxProperties), counted(maxProperties + 1)) },
  );
}

function objectsOf({ properties = {}, required = [] }: Schema): fc.Arbitrary<unknown> {
  const fields = fc.record(
    Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, valuesOf(schema)])),
    { requiredKeys: [...required] },
  );
  // A whole object with every field has too many chances to be wrong: keep a few.
  const some = fc.tuple(fields, fc.nat(), fc.integer({ min: 1, max: 6 })).map(([object, start, count]) => {
    const names = Object.keys(object);
    const kept = names.filter((name, index) => required.includes(name) || (index + start) % names.length < count);
    return Object.fromEntries(kept.map((name) => [name, object[name]]));
  });
  const unknown = some.map((object) => ({ ...object, unknownField: 1 }));
  const incomplete = some.map((object) => Object.fromEntries(Object.entries(object).slice(1)));
  return fc.oneof(
    { weight: 60, arbitrary: some },
    { weight: 1, arbitrary: unknown },
    { weight: 1, arbitrary: incomplete },
  );
}
