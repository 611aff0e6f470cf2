// What a token server loads before its first word: each package costs every start of every replica, so what serves only some
// of them (a kubeconfig, people, a terminal) is loaded by those.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { endProcesses, GrantryProcess } from '../grantry-process.ts';

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

/** Starts a program that waits for a cluster, and ends it after its first words. */
async function loadedBy(command: string): Promise<Loaded> {
  const file = join(folder, 'loaded.json');
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
  const program = new GrantryProcess([command], {
    environment: {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(watcher)}`,
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

it.each(['server', 'controller'])(
  'grantry %s loads nothing at its start that a pod may do without',
  async (command) => {
    const { packages, ofNode } = await loadedBy(command);
    // What is loaded is seen.
    expect(packages).toContain('fastify');
    const unused = ['yaml', 'pino-pretty', 'ajv', 'ajv-formats', '@fastify/ajv-compiler', 'json-schema-ref-resolver'];
    const idle = [...unused, 'asn1js', '@peculiar/asn1-schema', '@peculiar/asn1-x509'];
    expect(packages.filter((name) => [...idle, '@kubernetes/client-node'].includes(name))).toEqual([]);
    // Node's fetch, which is a megabyte of program.
    expect(ofNode.filter((name) => name.endsWith('internal/deps/undici/undici'))).toEqual([]);
  },
);
