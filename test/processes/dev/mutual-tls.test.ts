// `grantry dev --mtls-port`: mutual TLS on a laptop, with certificates that it makes once and keeps.

import { execFileSync } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { folderOfTest, machineClient } from '../../manifests/a-folder.ts';
import { endProcesses, grantry, shell, startDev } from '../grantry-process.ts';

afterEach(endProcesses);

const JOB = machineClient(
  'job',
  `  scopes: [default/read]
  defaultScopes: [default/read]
  auth: {method: tls_client_auth, tls: {sanDns: client.localhost}}
  senderConstraint: MutualTLS
`,
);

describe('grantry dev --mtls-port', () => {
  it('serves clients with certificates, and the curl line it prints works as pasted', async () => {
    const folder = await folderOfTest({ 'job.yaml': JOB });
    const { grantry } = await startDev(folder, ['--mtls-port', '0']);
    const [line = ''] = await grantry.printed(/^ +curl .*--cert .*$/m);
    expect(JSON.parse(await shell(line))).toMatchObject({ token_type: 'Bearer' });
    expect(grantry.output).toMatch(/default\.job .*Ready/);
  });

  it('the curl line is of a client that the certificate authenticates', async () => {
    const other = machineClient('a-other', '  auth: {method: tls_client_auth, tls: {sanDns: other.localhost}}\n');
    const folder = await folderOfTest({ 'a-other.yaml': other, 'job.yaml': JOB });
    const { grantry } = await startDev(folder, ['--mtls-port', '0']);
    const [line = ''] = await grantry.printed(/^ +curl .*--cert .*$/m);
    expect(line).toContain('client_id=default.job');
  });

  it('keeps the files that are there, and makes those that are missing', async () => {
    const folder = await folderOfTest({ 'job.yaml': JOB });
    const file = (name: string) => join(folder, '.grantry/mtls', name);
    const read = (name: string) => readFile(file(name), 'utf8');
    const first = await startDev(folder, ['--mtls-port', '0']);
    await first.grantry.end();
    const before = await Promise.all(['ca.crt', 'server.crt', 'client.key'].map(read));
    await rm(file('client.crt'));
    const { grantry } = await startDev(folder, ['--mtls-port', '0']);
    expect(await Promise.all(['ca.crt', 'server.crt', 'client.key'].map(read))).toEqual(before);
    const [line = ''] = await grantry.printed(/^ +curl .*--cert .*$/m);
    expect(JSON.parse(await shell(line))).toMatchObject({ token_type: 'Bearer' });
    const purposes = execFileSync('openssl', ['x509', '-in', file('client.crt'), '-noout', '-purpose'], {
      encoding: 'utf8',
    });
    expect(purposes).toMatch(/SSL client : Yes/);
    expect(purposes).toMatch(/SSL server : No/);
    execFileSync('openssl', [
      'verify',
      '-x509_strict',
      '-CAfile',
      file('ca.crt'),
      file('server.crt'),
      file('client.crt'),
    ]);
  });

  it('without it no client has a certificate, and the fault names the variable', async () => {
    const folder = await folderOfTest({ 'job.yaml': JOB });
    const { grantry } = await startDev(folder);
    await grantry.printed(/UnsupportedAuthMethod: .*GRANTRY_MTLS_URL/);
  });

  it('given a broken certificate of the server → it says which file, and ends with 2', async () => {
    const folder = await folderOfTest({
      'job.yaml': JOB,
      '.grantry/mtls/server.crt': 'nothing\n',
      '.grantry/.gitignore': '*\n',
    });
    execFileSync('chmod', ['-R', 'go=', join(folder, '.grantry')]);
    const ended = await grantry(['dev', folder, '--port', '0', '--mtls-port', '0']);
    expect(ended.code).toBe(2);
    expect(ended.errors).toMatch(/GRANTRY_MTLS_CERT_FILE and GRANTRY_MTLS_KEY_FILE: /);
  });
});
