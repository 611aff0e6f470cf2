// docs/guides/private-key-jwt.md as a newcomer follows it: the command makes the key, what it prints goes into the manifest of
// the page, and the code of the page gets a token.

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endProcesses, grantry, startDev } from '../processes/grantry-process.ts';
import { describePython, runPython } from './python.ts';

const root = join(import.meta.dirname, '../..');
const page = readFileSync(join(root, 'docs/guides/private-key-jwt.md'), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'grantry-guide-'));

/** The one block of code in a language. */
function shown(language: string): string {
  const [block, ...more] = [...page.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))];
  if (block?.[1] === undefined || more.length > 0) throw new Error(`not one block in ${language}`);
  return block[1];
}

describe('the guide to private_key_jwt', () => {
  let issuer: string;
  beforeAll(async () => {
    const { output } = await grantry(['generate-key', join(folder, 'client-key.json')]);
    const manifest = shown('yaml').replace(/^ {6}jwks:\n(?: {8}.*\n)+/m, output.replace(/^(?=.)/gm, '      '));
    expect(manifest).not.toBe(shown('yaml'));
    writeFileSync(join(folder, 'client.yaml'), manifest);
    ({ issuer } = await startDev(folder));
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  });
  afterAll(async () => {
    await endProcesses();
    rmSync(folder, { recursive: true });
  });

  it('its code for Node → a token of the client', async () => {
    writeFileSync(join(folder, 'client.mjs'), shown('js').replace('http://localhost:9400', issuer));
    const { stdout } = await promisify(execFile)(process.execPath, ['client.mjs'], { cwd: folder });
    expectToken(stdout.trim());
  });

  describePython('in Python', () => {
    it('its code → a token of the client', async () => {
      expectToken(await runPython(shown('python').replace('http://localhost:9400', issuer), folder));
    });

    it('PrivateKeyJWT of Authlib as it is, for the issuer → a token each time, by a key with its id and without', async () => {
      expectToken(await runPython(withAuthlib(issuer), folder));
    });
  });

  function expectToken(token: string): void {
    expect(decodeJwt(token)).toMatchObject({ sub: 'reports.nightly-report', scope: 'reports/run', iss: issuer });
  }
});

/** Its assertions live for an hour, with `iat`. */
function withAuthlib(issuer: string): string {
  return `
import json
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from joserfc.jwk import ECKey

members = json.load(open("client-key.json"))
for headers in ({"kid": members.pop("kid")}, None):
    key = ECKey.import_key(members)
    session = OAuth2Session("reports.nightly-report", key, token_endpoint_auth_method="private_key_jwt", scope="reports/run")
    session.register_client_auth_method(PrivateKeyJWT("${issuer}", headers=headers, alg="ES256"))
    for attempt in range(2):
        token = session.fetch_token("${issuer}/token", grant_type="client_credentials")
print(token["access_token"])
`;
}
