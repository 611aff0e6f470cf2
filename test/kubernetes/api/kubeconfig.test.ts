// Access by kubeconfig: its user, its files, and the errors of one that cannot be used.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { kubeconfigAccess } from '../../../src/kubernetes/api/kubeconfig.ts';

const root = mkdtempSync(join(tmpdir(), 'grantry-kubeconfig-'));
afterAll(() => rmSync(root, { recursive: true }));

let folder: string;
let now: number;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'test-'));
  now = 0;
});
const clock = { now: () => now };

interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly current?: string;
}

function write(parts: Parts = {}, name = 'config'): string {
  const { cluster = {}, user = {}, current = 'here' } = parts;
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': current,
    clusters: [{ name: 'here', cluster: { server: 'https://api.example:6443', ...cluster } }],
    users: [{ name: 'me', user }],
    contexts: [{ name: 'here', context: { cluster: 'here', user: 'me' } }],
  };
  writeFileSync(join(folder, name), JSON.stringify(config));
  return join(folder, name);
}

const access = (parts: Parts) => kubeconfigAccess({ files: [write(parts)], clock });
const tokenOf = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`;

describe('a kubeconfig', () => {
  it('says where the API server is, by which CA, and with which token', async () => {
    const token = tokenOf({ sub: 'system:serviceaccount:auth:grantry' });
    const ca = Buffer.from('the CA').toString('base64');
    const cluster = { 'certificate-authority-data': ca, 'tls-server-name': 'kubernetes' };
    const made = access({ cluster, user: { token } });
    expect(made.server).toBe('https://api.example:6443');
    expect(await made.credentials()).toEqual({
      headers: { authorization: `Bearer ${token}` },
      tls: { ca: Buffer.from('the CA'), servername: 'kubernetes' },
      user: 'system:serviceaccount:auth:grantry',
    });
  });

  it('reads the files it names beside itself, again after a minute and when it was not believed', async () => {
    for (const name of ['token', 'cert', 'key', 'ca']) writeFileSync(join(folder, name), `${name} 1`);
    const user = { tokenFile: 'token', 'client-certificate': './cert', 'client-key': 'key' };
    const { credentials, renew } = access({ cluster: { 'certificate-authority': 'ca' }, user });
    expect(await credentials()).toMatchObject({
      headers: { authorization: 'Bearer token 1' },
      tls: { ca: Buffer.from('ca 1'), cert: Buffer.from('cert 1'), key: Buffer.from('key 1') },
      user: 'user me of the kubeconfig',
    });
    const authorization = async () => (await credentials()).headers.authorization;
    writeFileSync(join(folder, 'token'), 'token 2');
    now += 59_999;
    expect(await authorization()).toBe('Bearer token 1');
    now += 1;
    expect(await authorization()).toBe('Bearer token 2');
    writeFileSync(join(folder, 'token'), 'token 3');
    renew();
    expect(await authorization()).toBe('Bearer token 3');
  });

  it('asks an exec plugin, and asks it again when it was not believed', async () => {
    const counter = join(folder, 'counter');
    const script = `
      const fs = require('node:fs');
      fs.appendFileSync(process.argv[1], 'x');
      const info = JSON.parse(process.env.KUBERNETES_EXEC_INFO);
      const token = process.env.PREFIX + fs.statSync(process.argv[1]).size;
      console.log(JSON.stringify({ apiVersion: info.apiVersion, kind: info.kind, status: { token } }));`;
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: process.execPath,
      args: ['-e', script, counter],
      env: [{ name: 'PREFIX', value: 'made-' }],
    };
    const { credentials, renew } = access({ user: { exec } });
    const authorization = async () => (await credentials()).headers.authorization;
    expect([await authorization(), await authorization()]).toEqual(['Bearer made-1', 'Bearer made-1']);
    renew();
    expect(await authorization()).toBe('Bearer made-2');
  });

  it('says what a failed plugin said, and asks it again the next time', async () => {
    const script = `console.error('your session has ended\\nand more'); process.exit(1)`;
    const { credentials } = access({ user: { exec: { command: process.execPath, args: ['-e', script] } } });
    await expect(credentials()).rejects.toThrow(/the plugin .* failed: your session has ended$/);
    await expect(credentials()).rejects.toThrow(/failed/);
  });

  it('ends no process whose plugin cannot be started because too many files are open', () => {
    const file = write({ user: { exec: { command: process.execPath } } });
    const script = `
      import { openSync } from 'node:fs';
      import { setTimeout as sleep } from 'node:timers/promises';
      import { kubeconfigAccess } from ${JSON.stringify(new URL('../../../src/kubernetes/api/kubeconfig.ts', import.meta.url))};
      const { credentials } = kubeconfigAccess({ files: [${JSON.stringify(file)}], clock: Date });
      try { for (;;) openSync('/dev/null', 'r'); } catch {}
      await credentials().catch((error) => console.log(error.message));
      await sleep(100);
      console.log('alive');`;
    const limited = ['-c', 'ulimit -n 100; exec "$0" --input-type=module -e "$1"', process.execPath, script];
    const output = execFileSync('sh', limited, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    expect(output).toMatch(/^the plugin .* failed: too many files .*\nalive\n$/);
  });

  it('says which file is missing, and reads it as soon as it is there', async () => {
    const { credentials } = access({ user: { tokenFile: 'gone' } });
    await expect(credentials()).rejects.toThrow(`${join(folder, 'gone')} cannot be read: ENOENT`);
    writeFileSync(join(folder, 'gone'), 'here');
    expect((await credentials()).headers.authorization).toBe('Bearer here');
  });

  it('is merged from several files: the first one that names something wins', async () => {
    mkdirSync(join(folder, 'second'));
    const one = write({ current: '', user: { token: 'first' } }, 'one');
    const two = write({ user: { token: 'second' } }, 'second/two');
    const made = kubeconfigAccess({ files: [one, two], clock });
    expect((await made.credentials()).headers.authorization).toBe('Bearer first');
  });

  it.each<[string, Parts, RegExp]>([
    ['the API server is not asked over https', { cluster: { server: 'http://api.example' } }, /not served over https/],
    ['there is a proxy', { cluster: { 'proxy-url': 'http://proxy.example' } }, /proxy-url/],
    ['there is an auth-provider', { user: { 'auth-provider': { name: 'gcp' } } }, /exec plugin/],
    ['its context is missing', { current: 'elsewhere' }, /no context elsewhere/],
    ['it has no server', { cluster: { server: '' } }, /clusters\[0\].cluster.server is missing/],
  ])('is refused when %s', (_, parts, message) => {
    expect(() => access(parts)).toThrow(message);
  });

  it('is refused when it is not there or not readable', () => {
    expect(() => kubeconfigAccess({ files: [join(folder, 'gone')], clock })).toThrow(/gone cannot be read/);
    writeFileSync(join(folder, 'broken'), 'clusters: [');
    expect(() => kubeconfigAccess({ files: [join(folder, 'broken')], clock })).toThrow(/broken cannot be read/);
    writeFileSync(join(folder, 'empty'), '');
    expect(() => kubeconfigAccess({ files: [join(folder, 'empty')], clock })).toThrow(/no context chosen/);
  });
});
