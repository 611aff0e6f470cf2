// `npm run pack:library [-- FOLDER]`: the tarball of `grantry/resource-server`, into FOLDER (default: the top of the checkout).
// The compiler emits what the roots of tsconfig.library.json reach; the manifest beside it is made here, and has no dependencies.

import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fail, installPackages, modernNode, root, run } from '../toolchain.mjs';
import { OLDEST_NODE, OLDEST_TYPESCRIPT } from './consumer-tools.mjs';
import { npm } from './npm.mjs';

const README = `# grantry/resource-server

Checks the access tokens of the OAuth 2.0 authorization server grantry at an API: bearer tokens (RFC 6750), tokens bound to a
key (DPoP, RFC 9449) or to a certificate (RFC 8705), as JWTs (RFC 9068) or by introspection (RFC 7662). Adapters for Fetch
handlers, Fastify and Connect; an issuer for tests. No dependencies; Node ${OLDEST_NODE}
and TypeScript ${OLDEST_TYPESCRIPT}, and later ones.

\`\`\`js
import { createVerifier, protect } from 'grantry/resource-server';

const verifier = createVerifier({
  issuer: 'https://auth.example.com',
  audience: 'https://notes.example.com/api',
  mode: 'local',
});
export const handler = protect(verifier, (request, access) => Response.json({ hello: access.subject }), {
  scope: 'notes.read',
});
\`\`\`
`;

installPackages();
const target = resolve(process.argv[2] ?? root);
const staging = mkdtempSync(join(tmpdir(), 'grantry-library-'));
let fault;
try {
  const compiler = join('node_modules', 'typescript', 'bin', 'tsc');
  if (run(modernNode(), [compiler, '--project', 'tsconfig.library.json', '--outDir', staging]) !== 0) {
    throw new Error('it does not compile');
  }
  nameEmittedFiles(staging);
  writeFileSync(join(staging, 'package.json'), `${JSON.stringify(packedManifest(), undefined, 2)}\n`);
  writeFileSync(join(staging, 'README.md'), README);
  cpSync(join(root, 'LICENSE'), join(staging, 'LICENSE'));
  npm(['pack', staging, '--pack-destination', target, '--loglevel=error']);
} catch (error) {
  fault = error;
} finally {
  rmSync(staging, { recursive: true, force: true });
}
if (fault !== undefined) fail(`the library is not packed: ${fault.message}`);

/** The compiler changes `.ts` to `.js` in the imports of modules and leaves it in those of declarations. */
function nameEmittedFiles(folder) {
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.d.ts')) continue;
    const path = join(folder, file);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/(['"])(\.{1,2}\/[^'"]+)\.ts\1/g, '$1$2.js$1'));
  }
}

function packedManifest() {
  const { name, version, license, type, exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return {
    name,
    version,
    description: 'Checks access tokens of grantry at an API.',
    license,
    type,
    sideEffects: false,
    engines: { node: `>=${OLDEST_NODE}` },
    exports: Object.fromEntries(
      Object.entries(exports).map(([path, { source }]) => {
        const module = source.replace('./src/', './').replace(/\.ts$/, '');
        return [path, { types: `${module}.d.ts`, default: `${module}.js` }];
      }),
    ),
    peerDependencies: { fastify: '^5.0.0' },
    peerDependenciesMeta: { fastify: { optional: true } },
  };
}
