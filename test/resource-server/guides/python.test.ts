// docs/guides/protect-an-api-python.md: its programs, cut out of the page, against tokens of a running grantry (docs/scope.md: 6750-1 to
// 6750-6, 9068-1).

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describePython, PYTHON } from '../../clients/python.ts';
import { describeNotesApi } from './notes-api-suite.ts';
import { filesOf, manifestsOf } from './notes-program.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/guides/protect-an-api-python.md'), 'utf8');
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
  expect([...files.keys()]).toEqual(['access.py', 'api.py', 'flask_api.py']);
});

describePython('the API of the guide in Python', () => {
  const programs = (file: string) => ({
    program: { command: PYTHON, words: [file], cwd: folder },
    impatient: { command: PYTHON, words: [file], cwd: impatient },
  });
  describeNotesApi(manifestsOf(page), { PyJWT: programs('api.py'), Authlib: programs('flask_api.py') });
});
