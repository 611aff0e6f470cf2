// docs/guides/protect-an-api-python.md: its programs, cut out of the page, against tokens of a running grantry (docs/scope.md: 6750-1 to
// 6750-6, 9068-1).

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describePython, PYTHON } from '../../clients/python.ts';
import { describeNotesApi } from './notes-api-suite.ts';
import { filesOf } from './notes-program.ts';

const ROOT = join(import.meta.dirname, '../../..');
const page = readFileSync(join(ROOT, 'docs/guides/protect-an-api-python.md'), 'utf8');
const files = filesOf(page, 'python');
const folder = mkdtempSync(join(tmpdir(), 'grantry-guide-'));
const impatient = join(folder, 'impatient');

beforeAll(() => {
  mkdirSync(impatient);
  for (const [name, code] of files) {
    writeFileSync(join(folder, name), code);
    const changed = code
      .replace('timeout=2)', 'timeout=2, lifespan=0.1)')
      .replace('FRESH_FOR = 300', 'FRESH_FOR = 0.1');
    writeFileSync(join(impatient, name), changed);
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

it('the programs of the guide in Python are cut out of the page', () => {
  expect([...files.keys()]).toEqual(['access.py', 'api.py', 'fastapi_api.py', 'flask_api.py']);
});

it('the versions that the page installs are those that are tried', () => {
  const pinned = readFileSync(join(ROOT, 'scripts/client-libraries/python.mjs'), 'utf8');
  const versions = [...page.matchAll(/[\w[\]]+==[\d.]+/g)].map(([version]) => version);
  expect(versions).toHaveLength(5);
  for (const version of versions) expect(pinned).toContain(`'${version}'`);
});

describePython('the API of the guide in Python', () => {
  const programs = (file: string) => ({
    program: { command: PYTHON, words: [file], cwd: folder },
    impatient: { command: PYTHON, words: [file], cwd: impatient },
    findsKeysAtOnce: file === 'flask_api.py',
  });
  describeNotesApi(page, {
    PyJWT: programs('api.py'),
    FastAPI: programs('fastapi_api.py'),
    Authlib: programs('flask_api.py'),
  });
});
