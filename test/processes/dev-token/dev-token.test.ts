// `grantry dev-token`: what it prints authenticates the client of that ServiceAccount at the `grantry dev` of the same folder.

import { existsSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { afterEach, describe, expect, it } from 'vitest';
import { freePort } from '../../free-port.ts';
import { folderOfTest } from '../../manifests/a-folder.ts';
import { endProcesses, GrantryProcess, grantry, post, startDev } from '../grantry-process.ts';

afterEach(endProcesses);

const JOB = `apiVersion: v1
kind: ServiceAccount
metadata: { name: job, namespace: reports }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: other, namespace: reports }
---
apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: { name: job, namespace: reports }
spec:
  auth: { method: kubernetes_service_account, serviceAccounts: [{ name: job }] }
  grantTypes: [client_credentials]
  scopes: [reports/run]
  defaultScopes: [reports/run]
`;

function request(issuer: string, assertion: string) {
  return post(`${issuer}/token`, {
    grant_type: 'client_credentials',
    client_id: 'reports.job',
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertion.trim(),
  });
}

describe('grantry dev-token', () => {
  it('given the account of a client → its token, which expires in an hour, gets one of the running grantry dev', async () => {
    const folder = await folderOfTest({ 'job.yaml': JOB });
    const { issuer } = await startDev(folder);
    const { code, output } = await grantry(['dev-token', 'reports/job', folder, '--issuer', issuer]);
    expect(code).toBe(0);
    const { exp = 0, iat = 0 } = decodeJwt(output.trim());
    expect(exp - iat).toBe(3600);
    expect(await request(issuer, output)).toMatchObject({ status: 200, body: { scope: 'reports/run' } });
  });

  it('given another account of the folder, or another issuer → a token that the client is refused with', async () => {
    const folder = await folderOfTest({ 'job.yaml': JOB });
    const { issuer } = await startDev(folder);
    for (const args of [
      ['reports/other', folder, '--issuer', issuer],
      ['reports/job', folder],
    ]) {
      const { code, output } = await grantry(['dev-token', ...args]);
      expect([code, (await request(issuer, output)).status]).toEqual([0, 401]);
    }
  });

  it('before the first grantry dev of the folder → a token that it takes', async () => {
    const folder = await folderOfTest({ 'job.yaml': JOB });
    const port = await freePort();
    const expected = `http://localhost:${port}`;
    const { output } = await grantry(['dev-token', 'reports/job', '--issuer', expected], { cwd: folder });
    const started = new GrantryProcess(['dev', folder, '--port', `${port}`]);
    const [, issuer = ''] = await started.printed(/Issuer +(\S+)/);
    expect(issuer).toBe(expected);
    expect((await request(issuer, output)).status).toBe(200);
  });

  it('given an account that is in no manifest → 1, and nothing is made', async () => {
    const folder = await folderOfTest({ 'job.yaml': JOB });
    const { code, output, errors } = await grantry(['dev-token', 'reports/stranger', folder]);
    expect([code, output]).toEqual([1, '']);
    expect(errors).toContain('reports/stranger');
    expect(existsSync(join(folder, '.grantry'))).toBe(false);
  });

  it('given a .grantry that is a link → 1, and nothing is written there', async () => {
    const folder = await folderOfTest({ 'job.yaml': JOB });
    const elsewhere = await folderOfTest({});
    await mkdir(join(elsewhere, 'state'), { mode: 0o700 });
    await symlink(join(elsewhere, 'state'), join(folder, '.grantry'));
    const { code, output, errors } = await grantry(['dev-token', 'reports/job', folder]);
    expect([code, output]).toEqual([1, '']);
    expect(errors).toContain('.grantry');
    expect(existsSync(join(elsewhere, 'state/service-accounts.pem'))).toBe(false);
  });

  it.each([
    [[]],
    [['reports']],
    [['reports/job/more']],
    [['/job']],
    [['reports/job', join(tmpdir(), 'grantry-no-such-folder')]],
    [['reports/job', 'package.json']],
    [['reports/job', 'examples', '--issuer', 'http://localhost:9400/']],
  ])('given %j → 2, and nothing printed', async (args) => {
    expect(await grantry(['dev-token', ...args])).toMatchObject({
      code: 2,
      output: '',
      errors: expect.stringMatching(/\S/),
    });
  });
});
