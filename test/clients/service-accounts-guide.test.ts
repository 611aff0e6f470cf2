// docs/guides/service-accounts.md as a newcomer follows it on a laptop: its manifests in a folder, a token of `grantry dev-token`
// in the file, and each program of the page gets a token of the client.

import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GO_PROGRAM } from '../go.ts';
import { endProcesses, grantry, startDev } from '../processes/grantry-process.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/guides/service-accounts.md'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'grantry-guide-'));
const TOKEN_FILE = join(folder, 'token');

/** The one block of code in a language that has this in it. */
function shown(language: string, text: string): string {
  const blocks = [...page.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map(([, code = '']) => code);
  const [block, ...more] = blocks.filter((code) => code.includes(text));
  if (block === undefined || more.length > 0) throw new Error(`not one block in ${language} with ${text}`);
  return block;
}

describe('the guide to ServiceAccounts', () => {
  let issuer: string;
  let env: NodeJS.ProcessEnv;
  beforeAll(async () => {
    const manifests = join(folder, 'manifests');
    mkdirSync(manifests);
    writeFileSync(join(manifests, 'nightly-report.yaml'), shown('yaml', 'kind: OAuthClient'));
    ({ issuer } = await startDev(manifests));
    const { output } = await grantry(['dev-token', 'reports/nightly-report', manifests, '--issuer', issuer]);
    writeFileSync(TOKEN_FILE, output);
    env = { ...process.env, ISSUER: issuer, TOKEN_FILE };
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  });
  afterAll(async () => {
    await endProcesses();
    rmSync(folder, { recursive: true });
  });

  const expectToken = (token: string) =>
    expect(decodeJwt(token.trim())).toMatchObject({ sub: 'reports.nightly-report', scope: 'reports/run', iss: issuer });

  it('its line for curl → a token of the client', async () => {
    const { stdout } = await run('sh', ['-c', shown('sh', 'cat "$TOKEN_FILE"')], { env });
    expectToken((JSON.parse(stdout) as { readonly access_token: string }).access_token);
  });

  it('its code for Node → a token of the client', async () => {
    writeFileSync(join(folder, 'client.mjs'), shown('js', 'openid-client'));
    expectToken((await run(process.execPath, ['client.mjs'], { cwd: folder, env })).stdout);
  });

  it.skipIf(GO_PROGRAM === undefined)('its code for Go → a token of the client', { timeout: 300_000 }, async () => {
    const program = join(folder, 'client.go');
    writeFileSync(program, shown('go', 'package main'));
    expectToken((await run(GO_PROGRAM ?? '', ['run', program], { env: { ...env, GO111MODULE: 'off' } })).stdout);
  });
});
