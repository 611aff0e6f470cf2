// What `grantry check` prints and how it ends. Most tests check in this process; the last block starts the program.

import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { hashPassword } from '../../../src/login/local/local-users.ts';
import { type CheckInput, checkPaths } from '../../../src/processes/check/check.ts';
import { type CheckOptions, check } from '../../../src/processes/check/check-in-thread.ts';
import { folderOfTest, machineClient } from '../../manifests/a-folder.ts';
import { endProcesses, grantry } from '../grantry-process.ts';

afterEach(endProcesses);

const WRONG_SCOPE = machineClient('job', '  scopes:\n    - default/read\n    - "other/read%"\n');
const GITHUB = '{type: GitHub, gitHub: {anyone: true}, clientSecretRef: {name: github}}';
const POLICY = `apiVersion: grantry.dev/v1alpha1
kind: ClientPolicy
metadata: {name: wide}
spec:
  namespaceSelector: {}
  allow: {scopes: ['**']}
`;

/** The output, the error output and the exit code for these paths, seen from `cwd`. */
async function checked(
  paths: readonly string[],
  { cwd, ...options }: Partial<CheckInput> & { readonly cwd?: string } = {},
) {
  const before = process.cwd();
  if (cwd !== undefined) process.chdir(cwd);
  try {
    const { code, stdout, stderr } = await checkPaths({
      paths,
      format: 'text',
      policies: undefined,
      namespace: undefined,
      strict: false,
      stdin: '',
      now: Date.now(),
      ...options,
    });
    return { code, output: stdout, errors: stderr };
  } finally {
    process.chdir(before);
  }
}

describe('grantry check', () => {
  it('ends with 0 for manifests without a fault, files and folders alike', async () => {
    const folder = await folderOfTest({
      'a.yaml': machineClient('a'),
      'sub/b.json': JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } }),
    });
    expect(await checked([folder])).toMatchObject({ code: 0, errors: '' });
    expect(await checked([join(folder, 'a.yaml'), join(folder, 'sub')])).toMatchObject({ code: 0 });
    for (const example of ['quickstart', 'credentials']) {
      expect(await checked([`examples/${example}`])).toMatchObject({ code: 0 });
    }
  });

  it('ends with 1 for a fault and prints file, line, document, field and reason', async () => {
    const folder = await folderOfTest({ 'a.yaml': `---\n${WRONG_SCOPE}` });
    const { code, output } = await checked(['a.yaml'], { cwd: folder });
    expect(code).toBe(1);
    expect(output).toMatch(/^a\.yaml:10 \(document 1, spec\.scopes\[1\]\): PolicyViolation: /);
  });

  it('prints nothing of a manifest or a file name that would begin a line or steer a terminal', async () => {
    const odd = '\\n::error::injected\\e[31mRED\\L\\u202E';
    const folder = await folderOfTest({
      'a.yaml': `apiVersion: v1\nkind: "Foo${odd}"\n`,
      'b\n::error::\x1b[31m.yaml': `apiVersion: grantry.dev/v1alpha1\nkind: "Foo${odd}"\n`,
    });
    for (const format of ['text', 'github'] as const) {
      const { output } = await checked(['.'], { cwd: folder, format });
      expect(output).not.toMatch(/[^\P{C}\n]|[\p{Zl}\p{Zp}]|^::error::/mu);
      expect(output).toContain('\\u{1b}');
    }
    const { errors } = await checked(['no\n::error::'], { cwd: folder });
    expect(errors).not.toMatch(/^::error/m);
  });

  it('given file names and texts that CI systems take for commands → no line is one', async () => {
    const folder = await folderOfTest({
      '::error::a.yaml': 'kind: A\n',
      ' ::error::b.yaml': 'kind: A\n',
      'c##[add-mask]##vso[task.x].yaml': 'kind: A\n',
    });
    const { output } = await checked(['.'], { cwd: folder });
    expect(output).toMatch(/^\.\/::error::a\.yaml:1 /m);
    expect(output).toMatch(/^\.\/ ::error::b\.yaml:1 /m);
    expect(output).toMatch(/^c#\\u\{23\}\[add-mask\]/m);
    const json = await checked(['.'], { cwd: folder, format: 'json' });
    expect(JSON.parse(json.output).faults).toContainEqual(
      expect.objectContaining({ file: 'c##[add-mask]##vso[task.x].yaml' }),
    );
    const { errors } = await checked(['::no', '##[debug]'], { cwd: folder });
    for (const line of [...output.split('\n'), ...json.output.split('\n'), ...errors.split('\n')]) {
      expect(line).not.toMatch(/^\s*::|##\w*\[/);
    }
  });

  it('that takes longer than its limit → ended, with one fault in each format', async () => {
    const files = Array.from({ length: 300 }, (_, index) => [`${index}.yaml`, '- a\n'.repeat(2000)]);
    const folder = await folderOfTest(Object.fromEntries(files));
    const run = async (format: CheckOptions['format']) => {
      const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
      let turns = 0;
      const code = check({
        paths: [folder],
        policies: undefined,
        strict: false,
        namespace: undefined,
        format,
        stdin,
        stdout,
        stderr,
        timeLimitMilliseconds: 100,
      });
      let isRunning = true;
      void code.finally(() => {
        isRunning = false;
      });
      while (isRunning) {
        await nextTurn();
        turns++;
      }
      return { code: await code, turns, output: await text(stdout.end()) };
    };
    const json = await run('json');
    expect(JSON.parse(json.output).faults).toMatchObject([{ file: folder, reason: 'TooLarge' }]);
    expect((await run('text')).output).toMatch(/: TooLarge: .*\n.* 1 fault\.\n$/);
    expect((await run('github')).output).toMatch(/^::error .*title=TooLarge::/);
    // Reading on the thread of the caller, the event loop would run once a file at most.
    expect([json.code, json.turns > files.length]).toEqual([1, true]);
  });

  it('reads a bare list of users as grantry server does, with the line of its fault', async () => {
    const passwordHash = await hashPassword('correct horse');
    const sound = await folderOfTest({ 'users.yaml': `- username: ada\n  passwordHash: ${passwordHash}\n` });
    const { code, output, errors } = await checked([join(sound, 'users.yaml')]);
    expect([code, output, errors]).toEqual([0, '0 clients, 0 signing keys, 0 policies, 1 user: no faults.\n', '']);
    const faulty = await folderOfTest({
      'people.yaml': `- username: ada\n  passwordHash: ${passwordHash}\n- username: bob\n  passwordHash: hunter2\n`,
      'users.yaml': '- ada\n',
      'yes.yaml': `- username: ada\n  passwordHash: ${passwordHash}\n  disabled: yes\n`,
      'two.yaml': `- username: ada\n  passwordHash: ${passwordHash}\n---\n${machineClient('a')}`,
    });
    const json = await checked(['.'], { cwd: faulty, format: 'json' });
    expect(JSON.parse(json.output).faults).toMatchObject([
      { file: 'people.yaml', line: 4, reason: 'InvalidUsers' },
      { file: 'two.yaml', line: 1, reason: 'InvalidUsers' },
      { file: 'users.yaml', line: 1, reason: 'InvalidUsers' },
      { file: 'yes.yaml', line: 3, reason: 'InvalidUsers' },
    ]);
    expect(json.output).not.toMatch(/hunter2|argon2id\$/);
  });

  it('a list of anything else is no Kubernetes object', async () => {
    const folder = await folderOfTest({ 'a.yaml': '- name: web\n' });
    const { output } = await checked(['.'], { cwd: folder, format: 'json' });
    expect(JSON.parse(output).faults).toMatchObject([{ file: 'a.yaml', reason: 'InvalidManifest' }]);
  });

  it('refuses unknown fields as kubectl does, wherever they are', async () => {
    const folder = await folderOfTest({ 'a.yaml': machineClient('a', '  scope: [a]\n  tokens: {lifetime: 5m}\n') });
    const { code, output } = await checked([folder], { format: 'json' });
    expect(code).toBe(1);
    expect(JSON.parse(output).faults).toMatchObject([
      { field: 'spec.scope', line: 7, reason: 'InvalidManifest' },
      { field: 'spec.tokens.lifetime', line: 8, reason: 'InvalidManifest' },
    ]);
  });

  it('prints JSON that names each fault and what was checked', async () => {
    const folder = await folderOfTest({ 'a.yaml': WRONG_SCOPE, 'b.yaml': 'a: [' });
    const { output } = await checked(['.'], { cwd: folder, format: 'json' });
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
    const { output } = await checked(['.'], { cwd: folder, format: 'github' });
    expect(output).toMatch(
      /^::error file=a%2Cb\.yaml,line=9,title=PolicyViolation::spec\.scopes\[1\]: .*other\/read%25.*\n$/,
    );
  });

  it('reads standard input as -', async () => {
    const { code, output } = await checked(['-'], { stdin: WRONG_SCOPE });
    expect(code).toBe(1);
    expect(output).toMatch(/^<stdin>:9 /);
    expect(await checked(['-'], { stdin: machineClient('a') })).toMatchObject({ code: 0 });
  });

  it('validates by the policies of another folder', async () => {
    const folder = await folderOfTest({ 'a.yaml': WRONG_SCOPE });
    const policies = await folderOfTest({ 'p.yaml': POLICY });
    expect(await checked([folder], { policies })).toMatchObject({ code: 0 });
  });

  it('takes for granted what the files do not hold', async () => {
    const existing = machineClient('a', '  auth: {clientSecret: {source: Existing, secretName: elsewhere}}\n');
    const folder = await folderOfTest({ 'a.yaml': existing });
    expect(await checked([folder])).toMatchObject({ code: 0 });
  });

  it('names what an accepted client waits for, unless the files hold it', async () => {
    const existing = machineClient('a', '  auth: {clientSecret: {source: Existing, secretName: elsewhere}}\n');
    const secret = 'apiVersion: v1\nkind: Secret\nmetadata: {name: elsewhere}\n';
    const value = `stringData: {client-secret: ${'x'.repeat(32)}}\n`;
    const folder = await folderOfTest({ 'a.yaml': existing, 'b.yaml': machineClient('b') });
    const { code, output } = await checked([folder]);
    expect([code, output.split('\n')[0]]).toEqual([0, 'default.a waits for the Secret "elsewhere"']);
    const json = await checked([folder], { format: 'json' });
    expect(JSON.parse(json.output).waiting).toEqual([
      { clientId: 'default.a', kind: 'Secret', namespace: 'default', name: 'elsewhere' },
    ]);
    expect((await checked([folder], { format: 'github' })).output).toMatch(/^::notice file=.*elsewhere/);
    const complete = await folderOfTest({ 'a.yaml': existing, 's.yaml': secret + value });
    expect((await checked([complete])).output).not.toContain('waits');
  });

  it('given the release namespace → objects that count only there, and those that never count there, are faults elsewhere and here', async () => {
    const inNamespace = (kind: string, namespace: string, name: string, spec: string) =>
      `apiVersion: grantry.dev/v1alpha1\nkind: ${kind}\nmetadata: {namespace: ${namespace}, name: ${name}}\nspec: ${spec}\n`;
    const every = (namespace: string) => [
      inNamespace('SigningKey', namespace, 'ring', '{}'),
      inNamespace('IdentityProvider', namespace, 'github', GITHUB),
      inNamespace('OAuthClient', namespace, 'job', '{grantTypes: [client_credentials]}'),
      inNamespace('ProtectedResource', namespace, 'api', '{}'),
    ];
    const folder = await folderOfTest({
      'release.yaml': every('auth').join('---\n'),
      'team.yaml': every('team').join('---\n'),
    });
    const faults = async (namespace?: string) => {
      const { output } = await checked(['.'], { cwd: folder, format: 'json', namespace });
      const found = JSON.parse(output).faults as readonly {
        file: string;
        document: number;
        reason: string;
        message: string;
      }[];
      return found.map(({ file, document, reason, message }) => [file, document, reason, message] as const);
    };
    expect(await faults()).toEqual([]);
    const named = expect.stringContaining('only in auth,');
    expect(await faults('auth')).toEqual([
      ['release.yaml', 3, 'NamespaceReserved', expect.any(String)],
      ['release.yaml', 4, 'NamespaceReserved', expect.any(String)],
      ['team.yaml', 1, 'NamespaceNotHonoured', named],
      ['team.yaml', 2, 'NamespaceNotHonoured', named],
    ]);
  });

  it('warns of a path without any manifest, in every format', async () => {
    const [empty, full] = [
      await folderOfTest({ 'empty.yaml': '# nothing\n' }),
      await folderOfTest({ 'a.yaml': machineClient('a') }),
    ];
    for (const format of ['text', 'json'] as const) {
      const { code, errors } = await checked([full, empty], { format });
      expect([code, errors]).toEqual([0, `grantry check: warning: ${empty}: no manifests found\n`]);
    }
  });

  it('an id that two namespaces may claim → a warning with its place, in every format, and no fault', async () => {
    const variable = '$' + '{namespace}';
    const gold = (name: string) =>
      `{apiVersion: v1, kind: Namespace, metadata: {name: ${name}, labels: {tier: gold}}}\n`;
    const ofTwo = POLICY.replace('wide', 'gold').replace('{}', '{matchLabels: {tier: gold}}');
    const folder = await folderOfTest({
      'p.yaml': POLICY.replace("{scopes: ['**']}", `{clientIds: ['${variable}_*', '${variable}-*']}`),
      'q.yaml': [ofTwo.replace("{scopes: ['**']}", '{clientIds: [shared]}'), gold('a'), gold('b')].join('---\n'),
    });
    const text = await checked(['.'], { cwd: folder });
    expect([text.code, ...text.output.split('\n')]).toEqual([
      0,
      expect.stringMatching(/^p\.yaml:6 \(document 1, spec\.allow\.clientIds\[1\]\): warning: AmbiguousClientIds: /),
      expect.stringMatching(/^q\.yaml:6 \(document 1, spec\.allow\.clientIds\[0\]\): warning: AmbiguousClientIds: /),
      '0 clients, 0 signing keys, 2 policies: no faults, 2 warnings.',
      '',
    ]);
    const json = await checked([join(folder, 'q.yaml')], { format: 'json' });
    expect(JSON.parse(json.output)).toMatchObject({
      faults: [],
      warnings: [{ line: 6, field: 'spec.allow.clientIds[0]', reason: 'AmbiguousClientIds' }],
    });
    const github = await checked(['p.yaml'], { cwd: folder, format: 'github' });
    expect(github.output).toMatch(
      /^::warning file=p\.yaml,line=6,title=AmbiguousClientIds::spec\.allow\.clientIds\[1\]: [^\n]*\n$/,
    );
  });

  it('a reference that no file grants → a warning with its place, and no fault; one that a file grants → none', async () => {
    const referring =
      '  defaultAudience: urn:grantry:ns:default:notes\n  resources:\n    - name: notes\n    - {namespace: elsewhere, name: api}\n';
    const folder = await folderOfTest({
      'client.yaml': machineClient('a', referring),
      'notes.yaml': 'apiVersion: grantry.dev/v1alpha1\nkind: ProtectedResource\nmetadata: {name: notes}\nspec: {}\n',
    });
    const { code, output } = await checked(['.'], { cwd: folder });
    expect([code, ...output.split('\n')]).toEqual([
      0,
      expect.stringMatching(/^client\.yaml:\d+ \(document 1, spec\.resources\[1\]\): warning: ResourceNotGranted: /),
      '1 client, 0 signing keys, 0 policies, 1 resource: no faults, 1 warning.',
      '',
    ]);
    const json = JSON.parse((await checked(['.'], { cwd: folder, format: 'json' })).output);
    expect(json).toMatchObject({
      faults: [],
      warnings: [{ reason: 'ResourceNotGranted' }],
      checked: { resources: 1, providers: 0 },
    });
  });

  it('given a client for people of a provider that no file has, and a block of one → a warning each; without any provider in the files → none', async () => {
    const client = (providers: string) =>
      machineClient('a', `  signIn:\n    identityProviders: ${providers}\n    groups: [ops]\n`);
    const provider =
      'apiVersion: grantry.dev/v1alpha1\nkind: IdentityProvider\nmetadata: {name: corp}\nspec:\n  type: GitHub\n  clientSecretRef: {name: corp}\n  gitHub: {anyone: true}\n';
    const block = (name: string) => `  - {provider: ${name}, username: eve, disabled: true}\n`;
    const users = `apiVersion: v1\nkind: Secret\nmetadata: {name: block}\ntype: grantry.dev/users\nstringData:\n  users.yaml: |\n  ${['local', 'corp', 'crop'].map(block).join('  ')}`;
    const folder = await folderOfTest({
      'client.yaml': client('[local, corp, crop]'),
      'corp.yaml': provider,
      'users.yaml': users,
    });
    const { code, output } = await checked(['.'], { cwd: folder });
    expect([code, ...output.split('\n')]).toEqual([
      0,
      expect.stringMatching(
        /^client\.yaml:\d+ \(document 1, spec\.signIn\.identityProviders\[2\]\): warning: IdentityProviderNotFound: /,
      ),
      expect.stringMatching(/^users\.yaml:\d+ .*: warning: IdentityProviderNotFound: users\[2\]\.provider: /),
      '1 client, 0 signing keys, 0 policies, 1 identity provider: no faults, 2 warnings.',
      '',
    ]);
    const alone = await checked(['client.yaml'], { cwd: folder });
    expect(alone.output).toBe('1 client, 0 signing keys, 0 policies: no faults.\n');
  });

  it('given identity providers → their faults with their lines; Secrets that are elsewhere are assumed', async () => {
    const provider = (name: string, host: string, ref: string) =>
      `apiVersion: grantry.dev/v1alpha1\nkind: IdentityProvider\nmetadata: {name: ${name}}\nspec:\n  type: GitHub\n  clientSecretRef: {name: ${ref}}\n  gitHub:\n    host: ${host}\n    anyone: true\n`;
    const folder = await folderOfTest({
      'good.yaml': provider('good', 'github.com', 'elsewhere'),
      'bad.yaml': provider('local', 'git.example', 'there'),
      'secret.yaml': 'apiVersion: v1\nkind: Secret\nmetadata: {name: there}\nstringData: {client-id: a}\n',
    });
    const { code, output } = await checked(['.'], { cwd: folder });
    expect([code, output.split('\n').slice(0, -1)]).toEqual([
      1,
      [
        expect.stringMatching(/^bad\.yaml:3 \(document 1, metadata\.name\): NameReserved: /),
        expect.stringMatching(/^bad\.yaml:6 \(document 1, spec\.clientSecretRef\.name\): SecretTypeMismatch: /),
        '0 clients, 0 signing keys, 0 policies, 2 identity providers: 2 faults.',
      ],
    ]);
  });

  it('a resource with a fault → named with its line, and the exit code is 1', async () => {
    const folder = await folderOfTest({
      'notes.yaml': `apiVersion: grantry.dev/v1alpha1
kind: ProtectedResource
metadata: {name: notes}
spec:
  resource: https://Notes.example.com
`,
    });
    const { code, output } = await checked(['.'], { cwd: folder });
    expect([code, output.split('\n')[0]]).toEqual([
      1,
      expect.stringMatching(/^notes\.yaml:5 \(document 1, spec\.resource\): InvalidResource: /),
    ]);
  });

  it('a revokeTokensBefore in the future → a warning with its place, and no fault', async () => {
    const revoked = (name: string, time: string) => machineClient(name, `  revokeTokensBefore: "${time}"\n`);
    const folder = await folderOfTest({
      'a.yaml': revoked('a', '9999-01-31T12:00:00Z'),
      'b.yaml': revoked('b', '2026-01-31T12:00:00Z'),
    });
    const { code, output } = await checked(['.'], { cwd: folder });
    expect([code, ...output.split('\n')]).toEqual([
      0,
      expect.stringMatching(
        /^a\.yaml:7 \(document 1, spec\.revokeTokensBefore\): warning: RevokeTokensBeforeInFuture: /,
      ),
      '2 clients, 0 signing keys, 0 policies: no faults, 1 warning.',
      '',
    ]);
  });

  it('--strict → a warning or a folder without manifests ends with 1, what a client waits for with 0', async () => {
    const revoked = machineClient('a', '  revokeTokensBefore: "9999-01-31T12:00:00Z"\n');
    const waiting = machineClient('b', '  auth: {clientSecret: {source: Existing, secretName: own}}\n');
    const folder = await folderOfTest({ 'warned/a.yaml': revoked, 'waiting/b.yaml': waiting, 'empty/c.txt': '' });
    for (const [path, code] of Object.entries({ warned: 1, waiting: 0, empty: 1 })) {
      expect([path, (await checked([path], { cwd: folder })).code]).toEqual([path, 0]);
      expect([path, (await checked([path], { cwd: folder, strict: true })).code]).toEqual([path, code]);
    }
  });

  it('misspelt fields beside other faults → all of them at once, each with its place', async () => {
    const provider = `apiVersion: grantry.dev/v1alpha1\nkind: IdentityProvider\nmetadata: {name: corp}\nspec:\n  type: OIDC\n  nmae: x\n  clientSecretRef: {name: corp}\n`;
    const folder = await folderOfTest({
      'client.yaml': machineClient(
        'job',
        '  scope: [x]\n  scopes: [other/read]\n  audiences: [urn:grantry:ns:other:a]\n',
      ),
      'shape.yaml': machineClient('odd', '  displayNmae: x\n  scopes: 5\n'),
      'provider.yaml': provider,
    });
    const { code, output } = await checked(['.'], { cwd: folder });
    expect(code).toBe(1);
    const found = output.match(/^\S+ \(document 1, [^)]+\): \w+/gm);
    expect(found).toEqual([
      expect.stringMatching(/^client.* spec\.scope\): InvalidManifest/),
      expect.stringMatching(/^client.* spec\.scopes\[0\]\): PolicyViolation/),
      expect.stringMatching(/^client.* spec\.audiences\[0\]\): PolicyViolation/),
      expect.stringMatching(/^provider.* spec\): InvalidManifest/),
      expect.stringMatching(/^provider.* spec\.nmae\): InvalidManifest/),
      expect.stringMatching(/^shape.* spec\.displayNmae\): InvalidManifest/),
      expect.stringMatching(/^shape.* spec\.scopes\): InvalidManifest/),
    ]);
  });

  it('a misspelt field of a policy → one fault: the policy permits what it permits without the field', async () => {
    const folder = await folderOfTest({
      'policy.yaml': `${POLICY}  allows: {}\n`,
      'client.yaml': machineClient('job', '  scopes: [other/read]\n'),
    });
    const { output } = await checked(['.'], { cwd: folder });
    expect(output).toMatch(/^policy\.yaml:\d+ \(document 1, spec\.allows\): InvalidManifest: .*\n.*: 1 fault\.$/m);
  });

  it('an identity provider whose revokeTokensBefore is in the future → a warning with its place, and no fault', async () => {
    const provider = (name: string, time: string) =>
      `apiVersion: grantry.dev/v1alpha1\nkind: IdentityProvider\nmetadata: {name: ${name}}\nspec:\n  type: OIDC\n  clientSecretRef: {name: corp}\n  oidc: {issuer: https://${name}.example}\n  revokeTokensBefore: "${time}"\n`;
    const folder = await folderOfTest({
      'a.yaml': provider('a', '9999-01-31T12:00:00Z'),
      'b.yaml': provider('b', '2026-01-31T12:00:00Z'),
    });
    const { code, output } = await checked(['.'], { cwd: folder });
    const warnings = output.split('\n').filter((line) => line.includes('warning: '));
    expect([code, ...warnings]).toEqual([
      0,
      expect.stringMatching(
        /^a\.yaml:8 \(document 1, spec\.revokeTokensBefore\): warning: RevokeTokensBeforeInFuture: /,
      ),
    ]);
  });

  it('a person whose revokeTokensBefore is in the future → a warning with its place, and no fault', async () => {
    const passwordHash = await hashPassword('correct horse');
    const person = (username: string, time: string) =>
      `- username: ${username}\n  passwordHash: ${passwordHash}\n  revokeTokensBefore: ${time}\n`;
    const [past, ahead] = ['2026-01-31T12:00:00Z', '9999-01-31T12:00:00Z'];
    const list = person('ada', past) + person('bob', ahead) + person('eve', ahead);
    const folder = await folderOfTest({
      'secret.yaml': `apiVersion: v1\nkind: Secret\ntype: grantry.dev/users\nmetadata: {name: u}\nstringData:\n  users.yaml: |\n${list.replaceAll(/^/gm, '    ')}`,
      'users.yaml': list,
    });
    const { code, output } = await checked(['.'], { cwd: folder });
    const named = 'warning: RevokeTokensBeforeInFuture';
    expect([code, ...output.split('\n')]).toEqual([
      0,
      expect.stringMatching(
        `^secret\\.yaml:6 \\(document 1, stringData\\["users\\.yaml"\\]\\): ${named}: users\\[1\\].*users\\[2\\]`,
      ),
      expect.stringMatching(`^users\\.yaml:6 \\(document 1, \\[1\\]\\.revokeTokensBefore\\): ${named}: `),
      expect.stringMatching(`^users\\.yaml:9 \\(document 1, \\[2\\]\\.revokeTokensBefore\\): ${named}: `),
      '0 clients, 0 signing keys, 0 policies, 6 users: no faults, 3 warnings.',
      '',
    ]);
  });

  it('validates keys and users too', async () => {
    const folder = await folderOfTest({
      'k.yaml':
        'apiVersion: grantry.dev/v1alpha1\nkind: SigningKey\nmetadata: {name: k, namespace: auth}\nspec: {algorithm: HS256}\n',
      'u.yaml':
        'apiVersion: v1\nkind: Secret\ntype: grantry.dev/users\nmetadata: {name: u}\nstringData: {users.yaml: "[{}]"}\n',
    });
    const { output } = await checked(['.'], { cwd: folder, format: 'json' });
    expect(JSON.parse(output).faults).toMatchObject([
      { file: 'k.yaml', field: 'spec.algorithm', reason: 'InvalidManifest' },
      { file: 'u.yaml', reason: 'InvalidUsers' },
    ]);
  });

  it('ends with 2 for a path that is not there', async () => {
    expect(await checked(['nowhere.yaml'])).toMatchObject({ code: 2, output: '' });
  });
});

describe('the program grantry check', () => {
  it('given a file and a folder without a fault → exit code 0, the counts on standard output', async () => {
    const folder = await folderOfTest({ 'a.yaml': machineClient('a'), 'sub/b.yaml': machineClient('b') });
    expect(await grantry(['check', 'a.yaml', 'sub'], { cwd: folder })).toEqual({
      code: 0,
      output: '2 clients, 0 signing keys, 0 policies: no faults.\n',
      errors: '',
    });
  });

  it('given a fault on standard input, which only --namespace makes one → exit code 1, file and reason', async () => {
    const stdin =
      'apiVersion: grantry.dev/v1alpha1\nkind: SigningKey\nmetadata: {name: k, namespace: team}\nspec: {}\n';
    const { code, output } = await grantry(['check', '-', '--namespace', 'auth'], { stdin });
    expect([code, output]).toEqual([1, expect.stringMatching(/^<stdin>:\d+ .*: NamespaceNotHonoured: /)]);
  });

  it('given --policies that allow all, --strict and a warning → exit code 1, JSON without a fault', async () => {
    const folder = await folderOfTest({ 'a.yaml': `${WRONG_SCOPE}  revokeTokensBefore: "9999-01-31T12:00:00Z"\n` });
    const policies = await folderOfTest({ 'p.yaml': POLICY });
    const { code, output } = await grantry(['check', folder, '--policies', policies, '--strict', '--format', 'json']);
    expect(code).toBe(1);
    expect(JSON.parse(output)).toMatchObject({ faults: [], warnings: [{ reason: 'RevokeTokensBeforeInFuture' }] });
  });

  it('given a path that does not exist → exit code 2, nothing on standard output, the path on standard error', async () => {
    const { code, output, errors } = await grantry(['check', 'nowhere.yaml']);
    expect([code, output, errors]).toEqual([2, '', expect.stringContaining('nowhere.yaml')]);
  });
});
