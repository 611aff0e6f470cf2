import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { folderOfTest, machineClient } from '../../manifests/a-folder.ts';
import { endProcesses, grantry } from '../grantry-process.ts';

afterEach(endProcesses);

const WRONG_SCOPE = machineClient('job', '  scopes:\n    - default/read\n    - "other/read%"\n');
const POLICY = `apiVersion: grantry.dev/v1alpha1
kind: ClientPolicy
metadata: {name: wide}
spec:
  namespaceSelector: {}
  allow: {scopes: ['**']}
`;

describe('grantry check', () => {
  it('ends with 0 for manifests without a fault, files and folders alike', async () => {
    const folder = await folderOfTest({
      'a.yaml': machineClient('a'),
      'sub/b.json': JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } }),
    });
    expect(await grantry(['check', folder])).toMatchObject({ code: 0, errors: '' });
    expect(await grantry(['check', join(folder, 'a.yaml'), join(folder, 'sub')])).toMatchObject({ code: 0 });
    expect(await grantry(['check', 'examples/quickstart'])).toMatchObject({ code: 0 });
  });

  it('ends with 1 for a fault and prints file, line, document, field and reason', async () => {
    const folder = await folderOfTest({ 'a.yaml': `---\n${WRONG_SCOPE}` });
    const { code, output } = await grantry(['check', 'a.yaml'], { cwd: folder });
    expect(code).toBe(1);
    expect(output).toMatch(/^a\.yaml:10 \(document 1, spec\.scopes\[1\]\): PolicyViolation: /);
  });

  it('prints nothing of a manifest or a file name that would begin a line or steer a terminal', async () => {
    const odd = '\\n::error::injected\\e[31mRED\\L\\u202E';
    const folder = await folderOfTest({
      'a.yaml': `apiVersion: v1\nkind: "Foo${odd}"\n`,
      'b\n::error::\x1b[31m.yaml': `apiVersion: grantry.dev/v1alpha1\nkind: "Foo${odd}"\n`,
    });
    for (const format of ['text', 'github']) {
      const { output } = await grantry(['check', '.', '--format', format], { cwd: folder });
      expect(output).not.toMatch(/[^\P{C}\n]|[\p{Zl}\p{Zp}]|^::error::/mu);
      expect(output).toContain('\\u{1b}');
    }
    const { errors } = await grantry(['check', 'no\n::error::'], { cwd: folder });
    expect(errors).not.toMatch(/^::error/m);
  });

  it('refuses unknown fields as kubectl does, wherever they are', async () => {
    const folder = await folderOfTest({ 'a.yaml': machineClient('a', '  scope: [a]\n  tokens: {lifetime: 5m}\n') });
    const { code, output } = await grantry(['check', folder, '--format', 'json']);
    expect(code).toBe(1);
    expect(JSON.parse(output).faults).toMatchObject([
      { field: 'spec.scope', line: 7, reason: 'InvalidManifest' },
      { field: 'spec.tokens.lifetime', line: 8, reason: 'InvalidManifest' },
    ]);
  });

  it('prints JSON that names each fault and what was checked', async () => {
    const folder = await folderOfTest({ 'a.yaml': WRONG_SCOPE, 'b.yaml': 'a: [' });
    const { output } = await grantry(['check', '.', '--format', 'json'], { cwd: folder });
    expect(JSON.parse(output)).toMatchObject({
      faults: [
        { file: 'a.yaml', document: 1, line: 9, field: 'spec.scopes[1]', reason: 'PolicyViolation' },
        { file: 'b.yaml', document: 1, line: 1, reason: 'InvalidYaml' },
      ],
      checked: { clients: 1, keys: 0, policies: 0 },
    });
  });

  it('prints workflow commands for GitHub, escaped', async () => {
    const folder = await folderOfTest({ 'a,b.yaml': WRONG_SCOPE });
    const { output } = await grantry(['check', '.', '--format', 'github'], { cwd: folder });
    expect(output).toMatch(
      /^::error file=a%2Cb\.yaml,line=9,title=PolicyViolation::spec\.scopes\[1\]: .*other\/read%25.*\n$/,
    );
  });

  it('reads standard input as -', async () => {
    const { code, output } = await grantry(['check', '-'], { stdin: WRONG_SCOPE });
    expect(code).toBe(1);
    expect(output).toMatch(/^<stdin>:9 /);
    expect(await grantry(['check', '-'], { stdin: machineClient('a') })).toMatchObject({ code: 0 });
  });

  it('judges by the policies of another folder', async () => {
    const folder = await folderOfTest({ 'a.yaml': WRONG_SCOPE });
    const policies = await folderOfTest({ 'p.yaml': POLICY });
    expect(await grantry(['check', folder, '--policies', policies])).toMatchObject({ code: 0 });
  });

  it('takes for granted what the files do not hold', async () => {
    const existing = machineClient('a', '  auth: {clientSecret: {source: Existing, secretName: elsewhere}}\n');
    const folder = await folderOfTest({ 'a.yaml': existing });
    expect(await grantry(['check', folder])).toMatchObject({ code: 0 });
  });

  it('names what an accepted client waits for, unless the files hold it', async () => {
    const existing = machineClient('a', '  auth: {clientSecret: {source: Existing, secretName: elsewhere}}\n');
    const secret = 'apiVersion: v1\nkind: Secret\nmetadata: {name: elsewhere}\n';
    const value = `stringData: {client-secret: ${'x'.repeat(32)}}\n`;
    const folder = await folderOfTest({ 'a.yaml': existing, 'b.yaml': machineClient('b') });
    const { code, output } = await grantry(['check', folder]);
    expect([code, output.split('\n')[0]]).toEqual([0, 'default.a waits for the Secret "elsewhere"']);
    const json = await grantry(['check', folder, '--format', 'json']);
    expect(JSON.parse(json.output).waiting).toEqual([
      { clientId: 'default.a', kind: 'Secret', namespace: 'default', name: 'elsewhere' },
    ]);
    expect((await grantry(['check', folder, '--format', 'github'])).output).toMatch(/^::notice file=.*elsewhere/);
    const complete = await folderOfTest({ 'a.yaml': existing, 's.yaml': secret + value });
    expect((await grantry(['check', complete])).output).not.toContain('waits');
  });

  it('warns of a path without any manifest, in every format', async () => {
    const [empty, full] = [
      await folderOfTest({ 'empty.yaml': '# nothing\n' }),
      await folderOfTest({ 'a.yaml': machineClient('a') }),
    ];
    for (const format of ['text', 'json']) {
      const { code, errors } = await grantry(['check', full, empty, '--format', format]);
      expect([code, errors]).toEqual([0, `grantry check: warning: ${empty}: no manifests found\n`]);
    }
  });

  it('judges keys and users too', async () => {
    const folder = await folderOfTest({
      'k.yaml':
        'apiVersion: grantry.dev/v1alpha1\nkind: SigningKey\nmetadata: {name: k, namespace: auth}\nspec: {algorithm: HS256}\n',
      'u.yaml':
        'apiVersion: v1\nkind: Secret\ntype: grantry.dev/users\nmetadata: {name: u}\nstringData: {users.yaml: "[{}]"}\n',
    });
    const { output } = await grantry(['check', '.', '--format', 'json'], { cwd: folder });
    expect(JSON.parse(output).faults).toMatchObject([
      { file: 'k.yaml', field: 'spec.algorithm', reason: 'InvalidManifest' },
      { file: 'u.yaml', reason: 'InvalidUsers' },
    ]);
  });

  it('ends with 2 for a path that is not there', async () => {
    expect(await grantry(['check', 'nowhere.yaml'])).toMatchObject({ code: 2, output: '' });
  });
});
