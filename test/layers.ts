// Which part of src/ may import which, and what the protocol may not reach for: the table of docs/architecture.md and
// the reader that holds a source tree to it. `architecture.test.ts` runs it on src/ and on trees made wrong on purpose.

import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join, relative, resolve, sep } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';

const ADAPTERS = ['http', 'login', 'kubernetes', 'manifests', 'redis', 'memory', 'webhook'];

/** What each part may import besides itself: only what lies below it. A part is a folder of src/, or main.ts. */
const BELOW: Record<string, readonly string[]> = {
  'main.ts': ['processes'],
  processes: ['cluster-registry', 'controller', ...ADAPTERS, 'admission', 'oauth'],
  http: ['oauth'],
  login: ['oauth'],
  'cluster-registry': ['kubernetes', 'admission', 'oauth'],
  controller: ['kubernetes', 'admission', 'oauth'],
  kubernetes: ['admission', 'oauth'],
  manifests: ['admission', 'oauth'],
  redis: ['oauth'],
  memory: ['oauth'],
  webhook: ['oauth'],
  admission: ['oauth'],
  'resource-server': ['oauth'],
  oauth: [],
};

/** Modules of Node that open no socket, read no file and see no environment. */
const PURE_MODULES = ['node:buffer', 'node:crypto', 'node:util'];

/** Parts that reach the outside world only through what they are given: the protocol and the judge of manifests. */
const PURE_PARTS = ['oauth', 'admission'];

/** What a pure part would get its time, chance, environment or output from; `ports.ts` is the way to these. */
const IMPURE_GLOBALS = ['process', 'console', 'performance', 'fetch', 'setTimeout', 'setInterval', 'setImmediate'];
const IMPURE_MEMBERS = ['Date.now', 'Math.random', 'crypto.getRandomValues', 'crypto.randomUUID'];

/** Every import and every reach of the sources below `src` that the table forbids, as `file: what`; empty when all is well. */
export function layerFaults(src: string): readonly string[] {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  return files.sort().flatMap((file) => {
    const part = partOf(file);
    const name = file.split(sep).join('/');
    if (BELOW[part] === undefined) return [`${name}: no part of the layer table`];
    const { imports, reaches } = read(join(src, file));
    return [
      ...imports.map((specifier) => importFault(src, file, specifier)),
      ...reaches.map((reach) => reachFault(name, reach)),
    ]
      .filter((fault) => fault !== undefined)
      .map((fault) => `${name}: ${fault}`);
  });
}

function partOf(file: string): string {
  return file.split(sep)[0] ?? file;
}

function importFault(src: string, file: string, specifier: string | undefined): string | undefined {
  if (specifier === undefined) return 'imports what no reader can know before it runs';
  const part = partOf(file);
  if (!specifier.startsWith('.')) {
    if (!PURE_PARTS.includes(part) || !builtinModules.includes(specifier.replace(/^node:/, ''))) return undefined;
    return PURE_MODULES.includes(specifier) ? undefined : `imports ${specifier}, which is not pure`;
  }
  const target = relative(src, resolve(src, file, '..', specifier));
  // The package's own name and version are nobody's layer.
  if (target === join('..', 'package.json')) return undefined;
  const targetPart = partOf(target);
  if (targetPart === part || BELOW[part]?.includes(targetPart)) return undefined;
  return `imports ${target.split(sep).join('/')}: ${part} may not import ${targetPart}`;
}

/** Who may read the environment, or hand it on as a whole; and who may end the process. */
const ENVIRONMENT_READERS = ['processes/config/config.ts', 'main.ts'];

function reachFault(name: string, reach: string): string | undefined {
  const part = name.split('/')[0] ?? name;
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
