// The published library as a stranger gets it: the tarball in an empty folder, its types, and the snippets of the guide.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'grantry-consumer-'));

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
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true }));

it('nothing but the library is installed, and nothing of the server is in it', () => {
  expect(readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['grantry']);
  const packed = join(folder, 'node_modules/grantry');
  expect(readdirSync(packed).sort()).toEqual(['LICENSE', 'README.md', 'oauth', 'package.json', 'resource-server']);
  expect(readdirSync(join(packed, 'oauth')).sort()).toEqual(['dpop', 'ports', 'resource', 'values']);
  const manifest = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8'));
  expect(manifest).not.toHaveProperty('dependencies');
  expect(manifest).toMatchObject({ name: 'grantry', engines: { node: '>=22' } });
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

  it.each([
    ['nodenext', 'nodenext'],
    ['esnext', 'bundler'],
  ])('fit a strict program of module %s, resolution %s', (module, moduleResolution) => {
    const common = { module, moduleResolution, target: 'es2024', strict: true, noEmit: true, types: ['node'] };
    const typeRoots = [join(root, 'node_modules/@types')];
    const tsc = [join(root, 'node_modules/typescript/bin/tsc'), '--project'];
    write('consumer.ts', CONSUMER);
    const strict = { ...common, typeRoots, exactOptionalPropertyTypes: true, skipLibCheck: false };
    write('tsconfig.json', { compilerOptions: strict, files: ['consumer.ts'] });
    run(process.execPath, [...tsc, 'tsconfig.json']);
    write('fastify-consumer.ts', FASTIFY);
    const paths = { fastify: [join(root, 'node_modules/fastify/fastify.d.ts')] };
    write('tsconfig.fastify.json', {
      compilerOptions: { ...common, typeRoots, paths, skipLibCheck: true },
      files: ['fastify-consumer.ts'],
    });
    run(process.execPath, [...tsc, 'tsconfig.fastify.json']);
  });
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
      'api.test.mjs',
      'asking-verifier.mjs',
    ]);
  });

  it('its test of an API passes', () => {
    expect(run(process.execPath, ['--test', 'api.test.mjs'])).toMatch(/pass 1\b/);
  });

  it('its APIs admit a token with the scope and refuse one without', () => {
    write(
      'try.mjs',
      `
import { createVerifier } from 'grantry/resource-server';
import { createTestIssuer } from 'grantry/resource-server/testing';
import { connectApi } from './connect-api.mjs';
import { fastifyApi } from './fastify-api.mjs';
import './verifier.mjs';
import './asking-verifier.mjs';

const { issuer, audience, fetch: answer, token } = createTestIssuer();
const verifier = createVerifier({ issuer, audience, fetch: answer, mode: 'local' });
const app = fastifyApi(verifier);
const server = connectApi(verifier);
const addresses = [await app.listen({ port: 0, host: '127.0.0.1' })];
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
addresses.push('http://127.0.0.1:' + server.address().port);
for (const address of addresses) {
  for (const scope of ['notes.read', 'notes.write']) {
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
    const lines = run(process.execPath, ['try.mjs']).trim().split('\n');
    const admitted = '200 {"owner":"test-subject"}';
    const refused = expect.stringMatching(/^403 .*insufficient_scope/);
    expect(lines).toEqual([admitted, refused, admitted, refused, '200']);
  });
});
