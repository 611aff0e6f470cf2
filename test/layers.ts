// Which folder of src/ may import which, and what the protocol may not reach for: the tables of docs/architecture.md and
// the reader that holds a source tree to them. `architecture.test.ts` runs it on src/ and on trees made wrong on purpose.

import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';

const ADAPTERS = ['http', 'login', 'kubernetes', 'manifests', 'redis', 'memory', 'webhook', 'outbound'];

/** The parts that each part may import besides itself: only those below it. A part is a folder directly in src/, or main.ts. */
const PARTS: Record<string, readonly string[]> = {
  'main.ts': ['processes'],
  processes: [
    'cluster-registry',
    'controller',
    'delivery',
    'folder-registry',
    'local-state',
    ...ADAPTERS,
    'admission',
    'oauth',
  ],
  'cluster-registry': ['kubernetes', 'admission', 'oauth'],
  controller: ['kubernetes', 'admission', 'oauth'],
  // `grantry dev` rotates as the controller does, by its planner.
  'local-state': ['controller', 'kubernetes', 'manifests', 'admission', 'oauth'],
  'folder-registry': ['local-state', 'manifests', 'login', 'admission', 'oauth'],
  delivery: ['http', 'redis', 'webhook', 'outbound', 'oauth'],
  http: ['oauth'],
  login: ['oauth'],
  kubernetes: ['admission', 'oauth'],
  manifests: ['admission', 'oauth'],
  redis: ['oauth'],
  memory: ['oauth'],
  webhook: ['oauth'],
  outbound: ['oauth'],
  admission: ['oauth'],
  'resource-server': ['oauth'],
  oauth: [],
};

/**
 * The folders of its own part that each folder may import. Every folder with files of its own has a row, and so has a file that
 * lies directly in a part with folders.
 */
export const FOLDERS: Record<string, readonly string[]> = {
  'main.ts': [],
  'resource-server': [],

  ...rows('oauth', {
    ports: [],
    values: ['ports'],
    dpop: ['ports', 'values'],
    resource: ['ports', 'values', 'dpop'],
    registry: ['ports', 'values'],
    limits: ['ports', 'values', 'registry'],
    'client-certificates': ['ports', 'values'],
    'client-auth': ['ports', 'values', 'registry', 'limits', 'client-certificates'],
    access: ['ports', 'values', 'registry', 'client-auth'],
    tokens: ['ports', 'values', 'registry', 'access'],
    'sealed-stores': ['ports', 'access', 'tokens'],
    grants: ['ports', 'values', 'registry', 'client-auth', 'access', 'tokens', 'limits'],
    endpoints: [
      'ports',
      'values',
      'dpop',
      'resource',
      'registry',
      'client-certificates',
      'client-auth',
      'access',
      'tokens',
      'limits',
      'grants',
    ],
  }),
  ...rows('admission', {
    kinds: [],
    references: ['kinds'],
    policies: ['kinds'],
    'client-secrets': ['kinds', 'references'],
    keys: ['kinds', 'references', 'client-secrets'],
    clients: ['kinds', 'references', 'policies', 'client-secrets'],
    resources: ['kinds', 'policies'],
    'identity-providers': ['kinds', 'references'],
  }),

  ...rows('http', {
    metrics: [],
    pages: [],
    server: ['metrics', 'pages'],
    mtls: ['server'],
    protocol: ['server', 'metrics', 'mtls'],
    cookies: ['server', 'pages'],
    'sign-in': ['cookies', 'server', 'metrics', 'pages'],
    account: ['cookies', 'server', 'pages', 'sign-in'],
    admin: ['server', 'metrics'],
  }),
  ...rows('login', {
    'blocks.ts': [],
    'blocked-people.ts': ['blocks.ts'],
    local: ['blocks.ts'],
    upstream: [],
    'everyone.ts': ['blocked-people.ts'],
  }),
  manifests: [],
  memory: [],
  ...rows('redis', {
    link: [],
    topology: ['link'],
    scripts: ['link', 'topology'],
    connection: ['link', 'topology', 'scripts'],
    stores: ['connection', 'scripts', 'link'],
    grants: ['stores', 'connection', 'scripts', 'link'],
    'data-loss': ['stores', 'connection', 'scripts', 'topology', 'link'],
    'stores.ts': ['grants', 'stores', 'connection'],
  }),
  webhook: [],
  outbound: [],
  ...rows('kubernetes', {
    objects: [],
    api: ['objects'],
    watch: ['api', 'objects'],
  }),

  'cluster-registry': [],
  delivery: [],
  'folder-registry': [],
  'local-state': [],
  ...rows('controller', {
    leadership: [],
    reconciling: ['leadership'],
    replicas: ['reconciling'],
    'client-secrets': ['leadership', 'reconciling'],
    clients: ['client-secrets', 'replicas', 'reconciling', 'leadership'],
    'signing-keys': ['replicas', 'reconciling', 'leadership'],
    policies: ['reconciling', 'leadership'],
    resources: ['replicas', 'reconciling', 'leadership'],
    'identity-providers': ['replicas', 'reconciling', 'leadership'],
    install: ['reconciling', 'leadership'],
  }),

  ...rows('processes', {
    config: [],
    log: [],
    lifecycle: ['config'],
    redis: ['config', 'lifecycle'],
    'mutual-tls': ['config'],
    'token-server': ['config', 'log', 'lifecycle', 'mutual-tls'],
    alerts: ['token-server', 'redis', 'log', 'config', 'lifecycle'],
    server: ['alerts', 'token-server', 'mutual-tls', 'redis', 'log', 'config', 'lifecycle'],
    controller: ['log', 'config', 'lifecycle'],
    check: ['log'],
    dev: ['check', 'alerts', 'token-server', 'mutual-tls', 'redis', 'log', 'config', 'lifecycle'],
    'dev-token': ['config', 'dev', 'lifecycle'],
    'generate-key': [],
    'hash-password': [],
  }),
};

/** The rows of one part, with the part in front of every name. */
function rows(part: string, folders: Record<string, readonly string[]>): Record<string, readonly string[]> {
  return Object.fromEntries(
    Object.entries(folders).map(([folder, below]) => [`${part}/${folder}`, below.map((name) => `${part}/${name}`)]),
  );
}

/** Modules of Node that open no socket, read no file and see no environment. */
const PURE_MODULES = ['node:buffer', 'node:crypto', 'node:util'];

/** The part that is published as `grantry/resource-server`. */
const LIBRARY = 'resource-server';

/** The parts of the protocol that go into the published library; all of them are in its tarball. */
const OF_THE_LIBRARY = ['oauth/ports', 'oauth/values', 'oauth/dpop', 'oauth/resource'];

/** What the published library imports beside them: it depends on nothing, and Fastify gives its adapter types alone. */
const LIBRARY_MODULES = ['node:crypto', 'fastify'];

/** Parts that reach the outside world only through what they are given: the protocol and admission. */
const PURE_PARTS = ['oauth', 'admission'];

/** What a pure part would get its time, chance, environment or output from; `ports.ts` is the way to these. */
const IMPURE_GLOBALS = ['process', 'console', 'performance', 'fetch', 'setTimeout', 'setInterval', 'setImmediate'];
const IMPURE_MEMBERS = ['Date.now', 'Math.random', 'crypto.getRandomValues', 'crypto.randomUUID'];

/** Every import and every reach of the sources below `src` that the table forbids, as `file: what`; empty when all is well. */
export function layerFaults(src: string): readonly string[] {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  return files.sort().flatMap((file) => {
    const name = file.split(sep).join('/');
    if (FOLDERS[rowOf(name)] === undefined) return [`${name}: no row of the layer table`];
    const { imports, reaches } = read(join(src, file));
    return [
      ...imports.map((specifier) => importFault(src, name, specifier)),
      ...reaches.map((reach) => reachFault(name, reach)),
    ]
      .filter((fault) => fault !== undefined)
      .map((fault) => `${name}: ${fault}`);
  });
}

/** The files of the circles of imports below `src`, types among them, and those between two circles; empty when there is none. */
export function filesInCircles(src: string): readonly string[] {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const left = new Map(
    files.map((file) => {
      const specifiers = read(join(src, file)).imports.filter((specifier) => specifier?.startsWith('.'));
      return [file, new Set(specifiers.map((specifier = '') => relative(src, resolve(src, file, '..', specifier))))];
    }),
  );
  // A file that imports no file that is left, or that none of them imports, is in no circle.
  for (let size = 0; size !== left.size; ) {
    size = left.size;
    const imported = new Set([...left.values()].flatMap((targets) => [...targets]));
    for (const [file, targets] of left) {
      if (!imported.has(file) || ![...targets].some((target) => left.has(target))) left.delete(file);
    }
  }
  return [...left.keys()].sort();
}

function partOf(name: string): string {
  return name.split('/')[0] ?? name;
}

/** The row of a file: its folder, or the file itself where that has a row. */
function rowOf(name: string): string {
  return FOLDERS[name] === undefined ? dirname(name) : name;
}

function importFault(src: string, name: string, specifier: string | undefined): string | undefined {
  if (specifier === undefined) return 'imports what no reader can know before it runs';
  const part = partOf(name);
  if (!specifier.startsWith('.')) {
    if (part === LIBRARY) {
      return LIBRARY_MODULES.includes(specifier) ? undefined : `imports ${specifier}, which the library goes without`;
    }
    if (!PURE_PARTS.includes(part) || !builtinModules.includes(specifier.replace(/^node:/, ''))) return undefined;
    return PURE_MODULES.includes(specifier) ? undefined : `imports ${specifier}, which is not pure`;
  }
  const target = relative(src, resolve(src, name, '..', specifier))
    .split(sep)
    .join('/');
  // The package's own name and version belong to no layer.
  if (target === '../package.json') return undefined;
  const targetPart = partOf(target);
  if (part === LIBRARY && targetPart === 'oauth' && !OF_THE_LIBRARY.includes(rowOf(target))) {
    return `imports ${target}: ${part} may not import ${rowOf(target)}`;
  }
  if (targetPart !== part) {
    return PARTS[part]?.includes(targetPart) ? undefined : `imports ${target}: ${part} may not import ${targetPart}`;
  }
  const [row, targetRow] = [rowOf(name), rowOf(target)];
  if (targetRow === row || FOLDERS[row]?.includes(targetRow)) return undefined;
  return `imports ${target}: ${row} may not import ${targetRow}`;
}

/** The files that may read the environment, or hand it on as a whole. */
const ENVIRONMENT_READERS = ['processes/config/config.ts', 'main.ts'];

function reachFault(name: string, reach: string): string | undefined {
  const part = partOf(name);
  if (PURE_PARTS.includes(part)) return `uses ${reach}, which must be handed in`;
  if (reach === 'process.env' && !ENVIRONMENT_READERS.includes(name)) {
    return 'reads process.env; processes/config/config.ts does that';
  }
  if (reach === 'process.exit' && name !== 'main.ts') return 'calls process.exit; main.ts does that';
  return undefined;
}

interface Reading {
  /** Specifiers of static, dynamic, type-only and re-exporting imports; undefined for one that is computed. */
  readonly imports: readonly (string | undefined)[];
  /** Globals and members of globals from the lists above, and `process.…` members. */
  readonly reaches: readonly string[];
}

function read(path: string): Reading {
  const { program, errors } = parseSync(path, readFileSync(path, 'utf8'));
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const imports: (string | undefined)[] = [];
  const reaches: string[] = [];
  const literal = (node: { type: string; value?: unknown }) =>
    node.type === 'Literal' && typeof node.value === 'string' ? node.value : undefined;

  new Visitor({
    ImportDeclaration: (node) => void imports.push(node.source.value),
    ExportAllDeclaration: (node) => void imports.push(node.source.value),
    ExportNamedDeclaration: (node) => void (node.source && imports.push(node.source.value)),
    ImportExpression: (node) => void imports.push(literal(node.source)),
    TSImportType: (node) => void imports.push(literal(node.source)),
    MemberExpression: (node) => {
      if (node.object.type !== 'Identifier' || node.property.type !== 'Identifier' || node.computed) return;
      const member = `${node.object.name}.${node.property.name}`;
      if (IMPURE_MEMBERS.includes(member) || IMPURE_GLOBALS.includes(node.object.name)) reaches.push(member);
    },
    CallExpression: (node) => {
      if (node.callee.type === 'Identifier' && IMPURE_GLOBALS.includes(node.callee.name))
        reaches.push(node.callee.name);
    },
    NewExpression: (node) => {
      const isNow = node.callee.type === 'Identifier' && node.callee.name === 'Date' && node.arguments.length === 0;
      if (isNow) reaches.push('new Date()');
    },
  }).visit(program);
  return { imports, reaches };
}
