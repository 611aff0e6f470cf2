// docs/guides/protect-an-api.md: its manifests, its API and its lines, cut out of the page, with a running grantry. How the tarball is
// installed, and its other snippets: test/scripts/pack-library.test.ts.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { shell } from '../../processes/grantry-process.ts';
import { until } from '../../until.ts';
import { NotesIssuer } from './notes-issuer.ts';
import { filesOf, manifestsOf, NotesProgram } from './notes-program.ts';

const ROOT = join(import.meta.dirname, '../../..');
const page = readFileSync(join(ROOT, 'docs/guides/protect-an-api.md'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'grantry-guide-'));
afterAll(() => rmSync(folder, { recursive: true }));

function replaced(text: string, what: string, by: string): string {
  expect(text).toContain(what);
  return text.replaceAll(what, by);
}

describe('the API of the guide in Node', () => {
  let issuer: NotesIssuer;
  let api: NotesProgram;
  const [, lines = ''] = /```sh\nnode main\.mjs &\n(.*?)```/s.exec(page) ?? [];

  beforeAll(async () => {
    issuer = await NotesIssuer.serve(manifestsOf(page));
    const files = filesOf(page, 'js');
    for (const name of ['connect-api.mjs', 'logged.mjs']) writeFileSync(join(folder, name), files.get(name) ?? '');
    writeFileSync(join(folder, 'verifier.mjs'), issuer.at(files.get('verifier.mjs') ?? ''));
    writeFileSync(join(folder, 'main.mjs'), replaced(files.get('main.mjs') ?? '', '8080', 'process.env.PORT'));
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(ROOT, join(folder, 'node_modules/grantry'));
    const words = ['--conditions=source', 'main.mjs'];
    api = await NotesProgram.start({ command: process.execPath, words, cwd: folder }, issuer.issuer);
  });
  afterAll(async () => {
    await api?.end();
    await issuer?.remove();
  });

  async function statusesOf(text: string): Promise<readonly (string | undefined)[]> {
    const printed = await shell(replaced(issuer.at(text), 'http://127.0.0.1:8080', api.address));
    return [...printed.matchAll(/HTTP\/\S* (\d+)/g)].map(([, status]) => status);
  }

  it('called by the lines of the page → 200 and 401; with the other scope → 403', async () => {
    expect(await statusesOf(lines)).toEqual(['200', '401']);
    const writing = replaced(
      lines,
      'grant_type=client_credentials',
      'grant_type=client_credentials -d scope=notes/write',
    );
    expect(await statusesOf(writing)).toEqual(['403', '401']);
  });

  it('lets a client of another namespace in by the line of the page, and shuts it out without it', async () => {
    const sync = `---
apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: { name: sync, namespace: partner }
spec:
  grantTypes: [client_credentials]
  resources: [{ namespace: notes, name: api }]
  defaultScopes: [notes/read]
`;
    const closed = manifestsOf(page) + sync;
    const [, line = ''] = /```yaml\n( {2}allowedClients:\n.*?)```/s.exec(page) ?? [];
    const open = replaced(closed, '  displayName: Notes\n', `  displayName: Notes\n${line}`);
    const status = async () => {
      const asked = await issuer.token({}, 'partner.sync').catch(String);
      if (asked.includes('no token')) return /"error":"(\w+)"/.exec(asked)?.[1] ?? asked;
      return (await api.answer(`Bearer ${asked}`)).status;
    };
    for (const [manifests, expected] of [
      [closed, 'invalid_target'],
      [open, 200],
      [closed, 'invalid_target'],
    ] as const) {
      issuer.edit(manifests);
      let seen: unknown;
      const holds = async () => {
        seen = await status();
        return seen === expected;
      };
      await until(`the answer is ${expected}`, holds).catch(() => expect(seen).toBe(expected));
    }
  });
});
