// The guide to DPoP as a newcomer follows it: its manifests in a folder, its program beside them, and an API that verifies
// the proof with the library for resource servers.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { decodeJwt } from 'jose';
import { afterEach, expect, it, onTestFinished } from 'vitest';
import { ProofNonces } from '../../src/oauth/dpop/nonces.ts';
import { ProofVerifier } from '../../src/oauth/dpop/proof.ts';
import { folderOfTest } from '../manifests/a-folder.ts';
import { endProcesses, startDev } from '../processes/grantry-process.ts';

const ROOT = join(import.meta.dirname, '../..');
const page = readFileSync(join(ROOT, 'docs/guides/dpop.md'), 'utf8');
const manifests = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, yaml = '']) => yaml);
const [program = ''] = [...page.matchAll(/```js\n(.*?)```/gs)].map(([, code = '']) => code);

afterEach(endProcesses);

/** An API: answers 200 to a token that is bound to the key of the proof beside it. */
async function startApi() {
  const verifier = new ProofVerifier();
  const nonces = new ProofNonces({ issuer: 'https://api.example', peppers: [Buffer.alloc(32)], rule: 'on-demand' });
  const server = createServer((request, response) => {
    const [scheme, accessToken = ''] = (request.headers.authorization ?? '').split(' ');
    const { jkt: thumbprint = '' } = (decodeJwt(accessToken).cnf ?? {}) as { readonly jkt?: string };
    const about = { method: 'GET', urls: [url], now: Date.now(), nonces };
    const answer = verifier.verify(String(request.headers.dpop), { ...about, accessToken, thumbprint });
    const isGood = scheme === 'DPoP' && typeof answer !== 'string' && answer.thumbprint === thumbprint;
    response.writeHead(isGood ? 200 : 401).end(isGood ? 'bound' : JSON.stringify(answer));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/reports`;
  return url;
}

it.each(['on-demand', 'required'])(
  'the program of the guide gets a token and uses it at an API, with nonces %s',
  async (rule) => {
    expect(manifests).toHaveLength(2);
    const folder = await folderOfTest({ 'client.yaml': manifests[0] ?? '', 'policy.yaml': manifests[1] ?? '' });
    const { issuer } = await startDev(folder, [], { environment: { GRANTRY_DPOP_NONCE: rule } });
    const secretFile = join(folder, '.grantry/secrets/reports.nightly-report.secret');
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
      cwd: ROOT,
      env: {
        PATH: process.env.PATH,
        ISSUER: issuer,
        API: await startApi(),
        CLIENT_SECRET: (await readFile(secretFile, 'utf8')).trim(),
      },
    });
    expect(stdout.trim()).toBe('200 bound');
  },
  60_000,
);
