// The published library as a stranger gets it: the tarball in an empty folder, its types, and the snippets of the guide, by our Node
// and TypeScript and by the oldest ones that it is promised for.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { publint } from 'publint';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'grantry-consumer-'));
/** The oldest compiler takes seconds, and many more beside other tests. */
const COMPILES = 120_000;
const packed = join(folder, 'node_modules/grantry');

/** The oldest Node and the `tsc` of the oldest TypeScript; without them the tests are those of ours alone, but not in CI. */
const [oldestNode, oldestCompiler] = oldestTools();
const NODES = [['ours', process.execPath] as const, ...(oldestNode ? [['the oldest', oldestNode] as const] : [])];
const COMPILERS = [
  ['ours', join(root, 'node_modules/typescript/bin/tsc')] as const,
  ...(oldestCompiler ? [['the oldest', oldestCompiler] as const] : []),
];

function oldestTools(): readonly string[] {
  const script = join(root, 'scripts/library/consumer-tools.mjs');
  const { status, stdout } = spawnSync(process.execPath, [script], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status === 0) return stdout.trim().split('\n');
  if (process.env.CI === 'true') throw new Error('the oldest Node and TypeScript cannot be had');
  return [];
}

function run(program: string, args: readonly string[]): string {
  try {
    return execFileSync(program, args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${program} ${args.join(' ')}:\n${stdout}${stderr}`);
  }
}

function write(name: string, content: string | object): void {
  writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
}

beforeAll(() => {
  run(process.execPath, [join(root, 'scripts/library/pack.mjs'), folder]);
  write('package.json', { name: 'consumer', private: true, type: 'module' });
  const tarballs = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
  run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...tarballs.map((name) => `./${name}`)]);
});

afterAll(() => rmSync(folder, { recursive: true }));

it('nothing but the library is installed, and nothing of the server is in it', () => {
  expect(readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['grantry']);
  expect(readdirSync(packed).sort()).toEqual(['LICENSE', 'README.md', 'oauth', 'package.json', 'resource-server']);
  expect(readdirSync(join(packed, 'oauth')).sort()).toEqual(['dpop', 'ports', 'resource', 'values']);
  const manifest = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8'));
  expect(manifest).not.toHaveProperty('dependencies');
  expect(manifest).toMatchObject({ name: 'grantry', engines: { node: '>=22.10.0' } });
});

it('publint finds nothing in it', async () => {
  expect((await publint({ pkgDir: packed, pack: false, strict: true })).messages).toEqual([]);
});

describe('the types', () => {
  const CONSUMER = `
import { createVerifier, protect, AccessDenied, type Access } from 'grantry/resource-server';
import { protect as middleware } from 'grantry/resource-server/connect';
import { createTestIssuer } from 'grantry/resource-server/testing';
import { createServer } from 'node:http';

const { issuer, audience, fetch } = createTestIssuer();
const verifier = createVerifier({ issuer, audience, fetch, mode: 'local' });
export const handler: (request: Request) => Promise<Response> = protect(verifier, (_request, access: Access) => Response.json(access.claims));
const guard = middleware(verifier, { scope: ['a'] });
export const server = createServer((request, response) => guard(request, response, () => response.end()));
export const reason = (error: unknown) => (error instanceof AccessDenied ? error.reason satisfies string : undefined);
// @ts-expect-error introspection needs its options
createVerifier({ issuer, audience, mode: 'introspection' });
`;
  const FASTIFY = `
import fastify from 'fastify';
import { createVerifier } from 'grantry/resource-server';
import { accessOf, protect, resourceServer } from 'grantry/resource-server/fastify';

const verifier = createVerifier({ issuer: 'https://a.example', audience: 'urn:a', mode: 'local' });
const app = fastify();
app.register(resourceServer, { verifier, needs: (request) => ({ scope: request.method }) });
app.get('/', { onRequest: protect(verifier, { scope: 'a' }) }, (request) => accessOf(request).subject);
`;

  /** What the declarations themselves say is checked once by each compiler, with the types of browsers and without. */
  const RESOLUTIONS = [
    ['nodenext', 'nodenext', { lib: ['es2024', 'dom'], skipLibCheck: false }],
    ['esnext', 'bundler', { lib: ['es2024'], skipLibCheck: true }],
  ] as const;
  const rows = COMPILERS.flatMap(([name, compiler]) =>
    RESOLUTIONS.map(([module, resolution, more]) => [name, module, resolution, { compiler, more }] as const),
  );

  it.each(rows)(
    'fit a strict program by TypeScript, %s, of module %s, resolution %s',
    (_, module, moduleResolution, { compiler, more }) => {
      const typeRoots = [join(root, 'node_modules/@types')];
      const common = {
        module,
        moduleResolution,
        target: 'es2024',
        strict: true,
        noEmit: true,
        types: ['node'],
        typeRoots,
      };
      write('consumer.ts', CONSUMER);
      const strict = { ...common, ...more, exactOptionalPropertyTypes: true };
      write('tsconfig.json', { compilerOptions: strict, files: ['consumer.ts'] });
      run(process.execPath, [compiler, '--project', 'tsconfig.json']);
      write('fastify-consumer.ts', FASTIFY);
      const paths = { fastify: [join(root, 'node_modules/fastify/fastify.d.ts')] };
      const besideFastify = { ...common, paths, lib: ['es2024'], skipLibCheck: true };
      write('tsconfig.fastify.json', { compilerOptions: besideFastify, files: ['fastify-consumer.ts'] });
      run(process.execPath, [compiler, '--project', 'tsconfig.fastify.json']);
    },
    COMPILES,
  );
});

it.each(NODES)('bound tokens and opaque ones pass, a forged one does not, by Node, %s', (_, node) => {
  write(
    'kinds.mjs',
    `
import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { AccessDenied, createVerifier } from 'grantry/resource-server';
import { createTestIssuer } from 'grantry/resource-server/testing';

const API = 'https://notes.example';
const digest = (content) => createHash('sha256').update(content).digest('base64url');
const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
const { issuer, audience, fetch, token, opaqueToken, forgedToken } = createTestIssuer({ audience: API });
const der = Buffer.from('a certificate');
const common = { issuer, audience, fetch, certificate: () => der };
const local = createVerifier({ ...common, mode: 'local' });
const asking = createVerifier({
  ...common,
  mode: 'introspection',
  introspection: { clientId: 'api', clientSecret: 'secret' },
});

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const jwk = publicKey.export({ format: 'jwk' });
const jkt = digest(JSON.stringify({ crv: jwk.crv, kty: jwk.kty, x: jwk.x }));
function proofFor(bound) {
  const claims = { jti: randomUUID(), htm: 'GET', htu: API + '/notes', iat: Math.floor(Date.now() / 1000), ath: digest(bound) };
  const input = encoded({ typ: 'dpop+jwt', alg: 'Ed25519', jwk }) + '.' + encoded(claims);
  return input + '.' + sign(null, Buffer.from(input), privateKey).toString('base64url');
}
const byKey = token({ claims: { cnf: { jkt } } });

for (const [verifier, headers] of [
  [asking, { authorization: 'Bearer ' + opaqueToken() }],
  [local, { authorization: 'DPoP ' + byKey, dpop: proofFor(byKey) }],
  [local, { authorization: 'Bearer ' + token({ claims: { cnf: { 'x5t#S256': digest(der) } } }) }],
  [local, { authorization: 'Bearer ' + forgedToken() }],
]) {
  try {
    console.log((await verifier.verify(new Request(API + '/notes', { headers }))).subject);
  } catch (error) {
    if (!(error instanceof AccessDenied)) throw error;
    console.log(error.reason);
  }
}
`,
  );
  const subject = 'test-subject';
  expect(run(node, ['kinds.mjs']).trim().split('\n')).toEqual([subject, subject, subject, 'signature_invalid']);
});

describe('the guide', () => {
  const guide = readFileSync(join(root, 'docs/guides/protect-an-api.md'), 'utf8');
  const snippets = [...guide.matchAll(/```js\n\/\/ (\S+)\n(.*?)```/gs)];

  beforeAll(() => {
    for (const [, name = '', code = ''] of snippets) write(name, code);
    // A reader of that section has Fastify.
    mkdirSync(join(folder, 'node_modules'), { recursive: true });
    symlinkSync(join(root, 'node_modules/fastify'), join(folder, 'node_modules/fastify'));
  });

  it('has its snippets', () => {
    expect(snippets.map(([, name]) => name)).toEqual([
      'verifier.mjs',
      'fetch-api.mjs',
      'fastify-api.mjs',
      'connect-api.mjs',
      'logged.mjs',
      'main.mjs',
      'api.test.mjs',
      'asking-verifier.mjs',
    ]);
  });

  it.each(NODES)('its test of an API passes by Node, %s', (_, node) => {
    expect(run(node, ['--test', 'api.test.mjs'])).toMatch(/pass 1\b/);
  });

  it.each(NODES)('its APIs admit a token with the scope and refuse one without, by Node, %s', (_, node) => {
    write(
      'try.mjs',
      `
import { createVerifier } from 'grantry/resource-server';
import { createTestIssuer } from 'grantry/resource-server/testing';
import { connectApi } from './connect-api.mjs';
import { fastifyApi } from './fastify-api.mjs';
import { logged } from './logged.mjs';
import './verifier.mjs';
import './asking-verifier.mjs';

const { issuer, audience, fetch: answer, token } = createTestIssuer();
const verifier = logged(createVerifier({ issuer, audience, fetch: answer, mode: 'local' }));
console.warn = console.log;
const app = fastifyApi(verifier);
const server = connectApi(verifier);
const addresses = [await app.listen({ port: 0, host: '127.0.0.1' })];
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
addresses.push('http://127.0.0.1:' + server.address().port);
for (const address of addresses) {
  for (const scope of ['notes/read', 'notes/write']) {
    const headers = { authorization: 'Bearer ' + token({ claims: { scope } }) };
    const response = await fetch(address + '/notes', { headers });
    console.log(response.status, await response.text());
  }
}
console.log((await fetch(addresses[0] + '/healthz')).status);
await app.close();
server.closeAllConnections();
server.close();
`,
    );
    const lines = run(node, ['try.mjs']).trim().split('\n');
    const admitted = '200 {"owner":"test-subject"}';
    const refused = expect.stringMatching(/^403 .*insufficient_scope/);
    const logged = 'access denied: 403 scope_too_small';
    expect(lines).toEqual([admitted, logged, refused, admitted, logged, refused, '200']);
  });
});
