// Clients of the guide, with a self-signed certificate: curl, the program for Node, and Go, which keeps a certificate to
// itself when a handshake names authorities that did not issue it.

import { execFile, spawnSync } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GO_PROGRAM } from '../../go.ts';
import { byKey, claimsOf, type MutualTlsGrantry, MutualTlsWorld } from './mutual-tls-grantry.ts';

const run = promisify(execFile);
const hasCurl = spawnSync('curl', ['--version']).status === 0;

const world = new MutualTlsWorld();
const own = world.maker.make({ subject: '/CN=own' });
const CLIENTS = [
  {
    clientId: 'team.own',
    authMethod: 'self_signed_tls_client_auth',
    certificate: byKey(own),
    grantTypes: ['client_credentials'],
    senderConstraint: 'MutualTLS',
  },
] as const;

let mtls: MutualTlsGrantry;

beforeAll(async () => {
  mtls = await world.start({ clients: CLIENTS });
});

afterAll(() => world.maker.remove());

const guide = readFileSync(new URL('../../../docs/guides/mutual-tls.md', import.meta.url), 'utf8');
const [, GO = ''] = /```go\n(.*?)```/s.exec(guide) ?? [];
const [, NODE = ''] = /```js\n(.*?)```/s.exec(guide) ?? [];

describe('a self-signed certificate', () => {
  const files = [own.certificateFile, own.keyFile, world.server.certificateFile] as const;
  const isBound = (text: string) => {
    const { access_token: token } = JSON.parse(text) as { access_token: string };
    expect(claimsOf(token)).toHaveProperty('cnf');
  };

  it.skipIf(!hasCurl)('given curl → tokens', async () => {
    const [certificate, key, ca] = files;
    const form = ['-d', 'grant_type=client_credentials', '-d', 'client_id=team.own'];
    const tls = ['--cacert', ca, '--cert', certificate, '--key', key];
    isBound((await run('curl', ['-sS', ...tls, ...form, `https://localhost:${mtls.port}/token`])).stdout);
  });

  it('given the program for Node → a token', async () => {
    const program = join(world.maker.folder, 'client.mjs');
    writeFileSync(program, NODE);
    const modules = join(world.maker.folder, 'node_modules');
    symlinkSync(fileURLToPath(new URL('../../../node_modules', import.meta.url)), modules);
    const [CLIENT_CERT, CLIENT_KEY, SERVER_CA] = files;
    const place = { CLIENT_ID: 'team.own', ISSUER: mtls.grantry.issuer };
    const env = { ...process.env, CLIENT_CERT, CLIENT_KEY, SERVER_CA, ...place };
    const { stdout } = await run(process.execPath, [program], { env });
    expect(claimsOf(stdout.trim())).toHaveProperty('cnf');
  });

  it.skipIf(GO_PROGRAM === undefined)('given Go → tokens', { timeout: 300_000 }, async () => {
    const program = join(world.maker.folder, 'client.go');
    writeFileSync(program, GO);
    const [CLIENT_CERT, CLIENT_KEY, SERVER_CA] = files;
    const place = { TOKEN_ENDPOINT: `https://localhost:${mtls.port}/token`, CLIENT_ID: 'team.own' };
    // Without cgo, as the API server of the tests was built: Go has its own library compiled that way already.
    const settings = { GO111MODULE: 'off', CGO_ENABLED: '0' };
    const env = { ...process.env, ...settings, CLIENT_CERT, CLIENT_KEY, SERVER_CA, ...place };
    const { stdout } = await run(GO_PROGRAM ?? '', ['run', program], { env });
    isBound(stdout);
  });
});
