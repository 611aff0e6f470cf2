// docs/guides/protect-an-api-go.md: its program, built out of the page, against tokens of a running grantry (docs/scope.md: 6750-1 to
// 6750-6, 9068-1).

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildGo, describeGo } from '../../clients/go.ts';
import { describeNotesApi } from './notes-api-suite.ts';
import { filesOf } from './notes-program.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/guides/protect-an-api-go.md'), 'utf8');
const files = filesOf(page, 'go');
const folder = mkdtempSync(join(tmpdir(), 'grantry-guide-'));
const impatient = join(folder, 'impatient');

describeGo('the API of the guide in Go', () => {
  beforeAll(async () => {
    mkdirSync(impatient);
    for (const [name, code] of files) {
      writeFileSync(join(folder, name), code);
      writeFileSync(join(impatient, name), code.replace('5 * time.Minute', 'time.Second / 10'));
    }
    const [, lines = ''] = /```sh\n(go mod init .*?)ISSUER=/s.exec(page) ?? [];
    for (const each of [folder, impatient]) await buildGo(each, { lines, program: 'notes' });
  }, 300_000);
  afterAll(() => rmSync(folder, { recursive: true }));

  it('is cut out of the page', () => {
    expect([...files.keys()]).toEqual(['keys.go', 'access.go', 'main.go']);
  });

  const built = (cwd: string) => ({ command: join(cwd, 'notes'), words: [], cwd });
  describeNotesApi(page, { 'go-oidc': { program: built(folder), impatient: built(impatient), findsKeysAtOnce: true } });
});
