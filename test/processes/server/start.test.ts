// What a token server loads before its first word: each package costs every start of every replica, so what serves only some
// of them (a kubeconfig, people, a terminal) is loaded by those.

import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { endProcesses, GrantryProcess, startDev } from '../grantry-process.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'grantry-start-'));
});
afterEach(async () => {
  await endProcesses();
  rmSync(folder, { recursive: true });
});

/** Packages that a process has loaded when it ends, and what of Node itself. */
interface Loaded {
  readonly packages: readonly string[];
  readonly ofNode: readonly string[];
}

/** What has a program note in a file, at its end, what it has loaded. */
function watching(file: string): string {
  const watcher = `
    import { writeFileSync } from 'node:fs';
    import { registerHooks } from 'node:module';
    const packages = new Set();
    registerHooks({
      load(url, context, next) {
        const [, name] = url.match(/.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/) ?? [];
        if (name) packages.add(name);
        return next(url, context);
      },
    });
    process.on('exit', () => {
      writeFileSync(${JSON.stringify(file)}, JSON.stringify({ packages: [...packages], ofNode: process.moduleLoadList }));
    });
  `;
  return `--import=data:text/javascript,${encodeURIComponent(watcher)}`;
}

/** Starts a program that waits for a cluster, and ends it after its first words. */
async function loadedBy(command: string): Promise<Loaded> {
  const file = join(folder, 'loaded.json');
  const program = new GrantryProcess([command], {
    environment: {
      NODE_OPTIONS: watching(file),
      GRANTRY_ISSUER: 'https://auth.example.com',
      GRANTRY_NAMESPACE: 'grantry-system',
      GRANTRY_REDIS_URL: 'redis://127.0.0.1:1',
      GRANTRY_ADMIN_PORT: '0',
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: '1',
    },
  });
  await program.printed(/NoCredentials/);
  await program.end();
  return JSON.parse(readFileSync(file, 'utf8'));
}

/** What serves sign-in by an identity provider, six megabytes. */
const OF_PROVIDERS = ['openid-client', 'oauth4webapi'];

it.each(['server', 'controller'])(
  'grantry %s loads nothing at its start that a pod may do without',
  async (command) => {
    const { packages, ofNode } = await loadedBy(command);
    // What is loaded is seen.
    expect(packages).toContain('fastify');
    const unused = ['yaml', 'pino-pretty', 'ajv', 'ajv-formats', '@fastify/ajv-compiler', 'json-schema-ref-resolver'];
    const idle = [...unused, ...OF_PROVIDERS, 'undici', 'asn1js', '@peculiar/asn1-schema', '@peculiar/asn1-x509'];
    expect(packages.filter((name) => [...idle, '@kubernetes/client-node'].includes(name))).toEqual([]);
    // Node's fetch, which is a megabyte of program.
    expect(ofNode.filter((name) => name.endsWith('internal/deps/undici/undici'))).toEqual([]);
  },
);

it.each([
  ['no identity provider', false],
  ['an identity provider', true],
])('grantry dev, given %s → what serves one is loaded: %s', async (_case, hasProvider) => {
  const served = join(folder, 'served');
  cpSync('examples/quickstart', served, { recursive: true, filter: (path) => !path.includes('.grantry') });
  if (hasProvider) cpSync('crds/examples/valid/identity-provider-dex.yaml', join(served, 'dex.yaml'));
  const file = join(folder, 'loaded.json');
  const { grantry, issuer, admin } = await startDev(served, [], { environment: { NODE_OPTIONS: watching(file) } });

  const query = new URLSearchParams({
    response_type: 'code',
    client_id: 'default.native-app',
    redirect_uri: 'http://127.0.0.1:8765/callback',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
  });
  const page = await (await fetch(`${issuer}/authorize?${query}`)).text();
  expect([page.includes('name="password"'), page.includes('/login/upstream/dex')]).toEqual([true, hasProvider]);
  // The first try at the provider is over.
  const tried = async () =>
    /upstream_errors_total\{[^}]*provider="dex"/.test(await (await fetch(`${admin}/metrics`)).text());
  if (hasProvider) await until('the provider is tried', tried);
  await grantry.end();
  const { packages } = JSON.parse(readFileSync(file, 'utf8')) as Loaded;
  expect(packages.filter((name) => OF_PROVIDERS.includes(name))).toEqual(hasProvider ? OF_PROVIDERS : []);
});
