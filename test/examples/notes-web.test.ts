// examples/notes-web/: what its start says, and that the guide shows its lines. How people sign in: test/browser/notes-web.test.ts.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Router } from 'express';
import * as client from 'openid-client';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { notesWeb } from '../../examples/notes-web/notes-web.ts';
import { SignIns } from '../../examples/notes-web/sign-ins.ts';
import { freePort } from '../free-port.ts';
import { GrantryProcess, takenPort } from '../processes/grantry-process.ts';
import { endAll, Issuer } from './notes-servers.ts';

const ROOT = join(import.meta.dirname, '../..');
const PROGRAM = ['--conditions=source', 'examples/notes-web/main.ts'];
afterAll(endAll);

it.each([
  ['without the secret of the client', ['--secret-file', '/nowhere'], /there is no \/nowhere: start grantry first/],
  ['at a port that is none', ['--port', 'x'], /--port is a number up to 65535\nusage: npm run notes-web/],
])('a start %s → a sentence that names the remedy', async (_, args, sentence) => {
  const started = new GrantryProcess(args, { program: PROGRAM });
  expect([await started.ended(), started.errors]).toEqual([1, expect.stringMatching(sentence)]);
});

it('a start without grantry, or at a port in use → a sentence that names the remedy', async () => {
  const issuer = await Issuer.start();
  using port = await takenPort();
  const secret = ['--secret-file', issuer.secretFileOf('notes-web')];
  const taken = new GrantryProcess([...secret, '--issuer', issuer.issuer, '--port', `${port.port}`], {
    program: PROGRAM,
  });
  expect([await taken.ended(), taken.errors]).toEqual([1, expect.stringContaining(`port ${port.port} is in use`)]);
  const alone = new GrantryProcess([...secret, '--issuer', 'http://localhost:1'], { program: PROGRAM });
  expect([await alone.ended(), alone.errors]).toEqual([1, expect.stringContaining('start grantry first (npm start)')]);
});

it('a page without the notes API → 502, and what to start', async () => {
  const config = new client.Configuration({ issuer: 'http://localhost:1' }, 'default.notes-web');
  client.allowInsecureRequests(config);
  const signIns = new SignIns(config);
  const id = signIns.begin({ name: 'Demo' }, { access_token: 'a-token' });
  const app = notesWeb({
    config,
    clientSecret: 'unused',
    origin: 'http://localhost',
    api: `http://localhost:${await freePort()}`,
    secret: 'unused',
    signIns,
    way: () => ({ routes: Router(), action: '/sign-in', signInOf: async () => id }),
  });
  const server = app.listen(0, 'localhost');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const answer = await fetch(`http://localhost:${(server.address() as AddressInfo).port}/`);
  expect([answer.status, await answer.text()]).toEqual([502, expect.stringMatching(/npm start.*npm run notes-api/)]);
});

it('the guide → each block of the application is lines of the file that the text before it links to', () => {
  const guide = readFileSync(join(ROOT, 'docs/guides/web-app.md'), 'utf8');
  const [, section = ''] = /\n## A whole application\n(.*?)\n## /s.exec(guide) ?? [];
  const blocks = [...section.matchAll(/```(?:ts|yaml)\n(.*?)```/gs)];
  expect(blocks.length).toBe(8);
  for (const { index, 1: block = '' } of blocks) {
    const links = [...section.slice(0, index).matchAll(/\]\(\.\.\/\.\.\/(examples\/[\w./-]+)\)/g)];
    const file = links.at(-1)?.[1] ?? '';
    expect(readFileSync(join(ROOT, file), 'utf8'), file).toContain(`\n${block}`);
  }
});
