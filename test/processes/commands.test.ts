import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { grantry } from './grantry-process.ts';

describe('the command line', () => {
  it('prints help and version and ends with 0', async () => {
    const help = await grantry(['--help']);
    expect([help.code, help.errors]).toEqual([0, '']);
    for (const command of ['dev', 'check', 'hash-password', 'generate-key']) expect(help.output).toContain(command);
    expect(await grantry(['--version'])).toMatchObject({ code: 0, output: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
    const dev = await grantry(['dev', '--help']);
    expect((await grantry(['check', '--help'])).output).toMatch(/0: no faults, 1: faults, 2: wrong usage/);
    for (const flag of ['--port', '--host', '--admin-port', '--issuer', '--user']) expect(dev.output).toContain(flag);
  });

  it.each([
    ['an unknown flag', ['dev', '--prot', '1'], '--port'],
    ['an unknown flag of check', ['check', '.', '--polices', 'x'], '--policies'],
    ['an unknown command', ['chekc', '.'], 'check'],
  ])('refuses %s with the nearest known one and ends with 2', async (_, args, nearest) => {
    const { code, output, errors } = await grantry(args);
    expect([code, output]).toEqual([2, '']);
    expect(errors).toContain(nearest);
    const help = args[0] === 'chekc' ? 'grantry --help' : `grantry ${args[0]} --help`;
    expect(errors).toContain(`(run ${help} for usage)`);
  });

  it.each([
    ['no command', []],
    ['check without a path', ['check']],
    ['an unknown format', ['check', '.', '--format', 'xml']],
    ['a port that is none', ['dev', '--port', '70000']],
    ['too many folders', ['dev', 'a', 'b']],
  ])('ends with 2 for %s', async (_, args) => {
    expect(await grantry(args)).toMatchObject({ code: 2, output: '' });
  });
});

describe.each(['server', 'controller'])('grantry %s where there is no cluster', (command) => {
  it('ends with 2 and says in one line where it looked and what to name', async () => {
    const home = mkdtempSync(join(tmpdir(), 'grantry-home-'));
    onTestFinished(() => rmSync(home, { recursive: true }));
    const environment = {
      HOME: home,
      GRANTRY_ISSUER: 'https://id.example',
      GRANTRY_NAMESPACE: 'grantry-system',
      GRANTRY_REDIS_URL: 'redis://127.0.0.1:1',
      GRANTRY_ADMIN_PORT: '0',
    };
    const { code, output, errors } = await grantry([command], { environment });
    expect([code, output]).toEqual([2, '']);
    expect(errors.trimEnd().split('\n')).toEqual([
      expect.stringMatching(new RegExp(`^grantry ${command}: .*${join(home, '.kube/config')}.*KUBECONFIG`)),
    ]);
  });
});

describe('grantry hash-password', () => {
  it('hashes what it reads without the line break, with a new salt each time', async () => {
    const [one, two] = await Promise.all([1, 2].map(() => grantry(['hash-password'], { stdin: 'secret\n' })));
    expect(one).toMatchObject({
      code: 0,
      errors: '',
      output: expect.stringMatching(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$\S+\n$/),
    });
    expect(two?.output).not.toBe(one?.output);
  });

  it('ends with 1 for nothing', async () => {
    expect(await grantry(['hash-password'], { stdin: '\n' })).toMatchObject({ code: 1, output: '' });
  });
});
