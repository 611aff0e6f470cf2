// Which modules of a source tree can open a connection, by what they import and call.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ImportDeclarationSpecifier, type Node, parseSync, Visitor } from 'oxc-parser';

/** What connects, or has what does. */
const CONNECTING =
  /^(?:node:)?(?:http|https|http2|net|tls|dgram|dns|dns\/promises)$|^(?:undici|ioredis|openid-client|ws)$/;
/** Of these, what listens, computes or holds. */
const HARMLESS = [
  ...['createServer', 'Server', 'BlockList', 'SocketAddress', 'isIP', 'isIPv4', 'isIPv6', 'TLSSocket', 'STATUS_CODES'],
  ...['createSecureContext', 'getCACertificates'],
];

/** The paths of these modules, sorted. */
export function connectingModules(root: string): readonly string[] {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  return files.filter((file) => connects(readFileSync(join(root, file), 'utf8'))).sort();
}

/** Whether the text of a module imports, loads or calls what connects. */
export function connects(text: string): boolean {
  let found = false;
  /** Of modules that are loaded only for harmless names. */
  const harmless = new Set<Node>();
  const find = (node: Node, source: Node | undefined) => {
    const name = source?.type === 'Literal' ? source.value : undefined;
    if (typeof name === 'string' && CONNECTING.test(name) && !harmless.has(node)) found = true;
  };
  new Visitor({
    ImportDeclaration(node) {
      const connecting = node.specifiers.filter((each) => !isHarmlessImport(each));
      if (node.importKind !== 'type' && connecting.length > 0) find(node, node.source);
    },
    VariableDeclarator({ id, init }) {
      if (init === null || id.type !== 'ObjectPattern') return;
      const named = id.properties.map((each) => (each.type === 'Property' ? nameOf(each.key) : undefined));
      if (named.every(isHarmless)) harmless.add(init.type === 'AwaitExpression' ? init.argument : init);
    },
    MemberExpression({ object, property }) {
      if (isHarmless(nameOf(property))) harmless.add(object);
    },
    ImportExpression: (node) => find(node, node.source),
    CallExpression(node) {
      const { callee } = node;
      const isOfObject = callee.type === 'MemberExpression';
      const name = nameOf(isOfObject ? callee.property : callee);
      if (name === 'getBuiltinModule') find(node, node.arguments[0]);
      if (name === 'fetch' && (!isOfObject || nameOf(callee.object) === 'globalThis')) found = true;
    },
  }).visit(parseSync('module.ts', text).program);
  return found;
}

function isHarmlessImport(each: ImportDeclarationSpecifier): boolean {
  return each.type === 'ImportSpecifier' && (each.importKind === 'type' || isHarmless(nameOf(each.imported)));
}

function isHarmless(name: string | undefined): boolean {
  return name !== undefined && HARMLESS.includes(name);
}

function nameOf(node: Node): string | undefined {
  return node.type === 'Identifier' ? node.name : undefined;
}
