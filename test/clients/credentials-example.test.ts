// examples/credentials/ as its README says: `grantry dev` serves the folder, and the commands below each heading get a token of
// the client that has the name of the heading.

import { execFile } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { TestBrowser } from '../http/sign-in/sign-in-browser.ts';
import { endProcesses, startDev } from '../processes/grantry-process.ts';
import { until } from '../until.ts';
import { answerIn } from './person.ts';

const ROOT = join(import.meta.dirname, '../..');
const EXAMPLE = join(ROOT, 'examples/credentials');
const README = readFileSync(join(EXAMPLE, 'README.md'), 'utf8');
const SECTIONS = new Map(
  README.split('\n## ')
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section]),
);
const ROOT_README = readFileSync(join(ROOT, 'README.md'), 'utf8');
/** What is a clone to the commands. */
const clone = mkdtempSync(join(tmpdir(), 'grantry-clone-'));

interface Shown {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: { readonly auth: { readonly method: string } };
}

const clients = globSync('*.yaml', { cwd: EXAMPLE })
  .flatMap((file) => parseAllDocuments(readFileSync(join(EXAMPLE, file), 'utf8')))
  .map((document) => document.toJS() as Shown)
  .filter(({ kind }) => kind === 'OAuthClient');

/** The block below a heading. */
function shown(heading: string, language: string): string {
  const [, block] = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(SECTIONS.get(heading) ?? '') ?? [];
  if (block === undefined) throw new Error(`no block in ${language} below ${heading}`);
  return block;
}

describe('the clients of examples/credentials/', () => {
  let issuer: string;
  let served: () => string;
  beforeAll(async () => {
    for (const entry of ['src', 'package.json', 'node_modules']) symlinkSync(join(ROOT, entry), join(clone, entry));
    const folder = join(clone, 'examples/credentials');
    cpSync(EXAMPLE, folder, { recursive: true, filter: (path) => !/\/\.(grantry|keys)/.test(path) });
    const { grantry, issuer: started } = await startDev(folder);
    issuer = started;
    served = () => grantry.output;
  });
  afterAll(async () => {
    await endProcesses();
    rmSync(clone, { recursive: true });
  });

  /** Runs commands in the clone. @returns what they print */
  async function printedBy(commands: string): Promise<string> {
    const here = commands
      .replaceAll('http://localhost:9400', issuer)
      .replaceAll('dev-token', `dev-token --issuer ${issuer}`);
    const env = { ...process.env, ISSUER: issuer };
    const { stdout } = await promisify(execFile)('sh', ['-ec', here], { cwd: clone, env });
    return stdout;
  }

  /** Runs commands of the README of the example. @returns the token of the answer that they print last */
  async function run(commands: string): Promise<string> {
    const printed = await printedBy(commands);
    return (JSON.parse(printed.trim().split('\n').at(-1) ?? '') as { readonly access_token: string }).access_token;
  }

  function expectToken(token: string, name: string): void {
    expect(decodeJwt(token)).toMatchObject({ iss: issuer, client_id: `default.${name}`, scope: 'default/read' });
  }

  it('are all Ready at the start, and each has its section', () => {
    const methods = clients.map(({ spec }) => spec.auth.method);
    expect(methods.toSorted()).toEqual([...SECTIONS.keys()].toSorted());
    for (const { metadata } of clients)
      expect(served()).toMatch(new RegExp(`^ +default\\.${metadata.name} .* Ready$`, 'm'));
  });

  it.each(['client_secret_basic', 'client_secret_post', 'kubernetes_service_account'])(
    '%s → a token by its command',
    async (method) => {
      expectToken(await run(shown(method, 'sh')), method.replaceAll('_', '-'));
    },
  );

  it('none → a token once a person has signed in', async () => {
    const address = shown('none', '').trim().replace('http://localhost:9400', issuer);
    const demo = { username: 'demo', password: 'demo', decision: 'allow' } as const;
    const back = await answerIn(new TestBrowser(issuer, issuer), new URL(address), demo);
    const code = back.searchParams.get('code') ?? '';
    expectToken(await run(shown('none', 'sh').replace(/^code=.*/, `code=${code}`)), 'none');
  });

  it('private_key_jwt → a token by the key that the reader makes', async () => {
    const [ownKey = '', request = ''] = shown('private_key_jwt', 'sh').split('\n');
    await promisify(execFile)('sh', ['-c', ownKey], { cwd: clone });
    // The folder is followed: what the second line needs is served a moment later.
    await until('the key is served', () =>
      run(request).then(
        () => true,
        () => false,
      ),
    );
    expectToken(await run(request), 'private-key-jwt');
  });

  it('README › a token without any secret → a token by its commands', async () => {
    const [, section = ''] = ROOT_README.split('\n## A token without any secret\n');
    const [start, commands = ''] = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block);
    // What `npm start` does with a folder is what `startDev` has done.
    expect(start).toBe('npm start -- examples/credentials\n');
    expectToken((await printedBy(commands)).trim(), 'kubernetes-service-account');
  });
});
