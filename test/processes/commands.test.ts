import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { variableReference } from '../../src/processes/config/config.ts';
import { grantry } from './grantry-process.ts';

describe('the command line', () => {
  it('prints help and version and ends with 0', async () => {
    const help = await grantry(['--help']);
    expect([help.code, help.errors]).toEqual([0, '']);
    for (const command of ['dev', 'check', 'hash-password', 'generate-key']) expect(help.output).toContain(command);
    expect(await grantry(['--version'])).toMatchObject({ code: 0, output: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
    const dev = await grantry(['dev', '--help']);
    expect((await grantry(['check', '--help'])).output).toMatch(/0: no faults, 1: faults .*, 2: wrong usage/);
    for (const flag of ['--port', '--host', '--admin-port', '--issuer', '--user']) expect(dev.output).toContain(flag);
  });

  it.each([[], ['dev'], ['server'], ['controller'], ['check'], ['dev-token'], ['hash-password'], ['generate-key']])(
    'given -h after "%s" → the same as --help',
    async (...command) => {
      const [short, long] = [await grantry([...command, '-h']), await grantry([...command, '--help'])];
      expect(short).toEqual({ code: 0, output: expect.stringMatching(/^Usage: grantry/), errors: '' });
      expect(long).toEqual(short);
    },
  );

  it('given --help of a command → the variables that it reads, and no others', async () => {
    const variables = async (command: string) =>
      (await grantry([command, '--help'])).output.match(/^ {2}GRANTRY_\w+/gm)?.map((line) => line.trim()) ?? [];
    const [dev, server, controller] = [
      await variables('dev'),
      await variables('server'),
      await variables('controller'),
    ];
    const all = ['GRANTRY_ISSUER', 'GRANTRY_NAMESPACE', 'GRANTRY_DEFAULT_POLICY', 'GRANTRY_LOG_LEVEL'];
    for (const listed of [dev, server, controller]) expect(listed).toEqual(expect.arrayContaining(all));
    const listedBy = (name: string) => [dev, server, controller].map((listed) => listed.includes(`GRANTRY_${name}`));
    expect(listedBy('PORT')).toEqual([true, true, false]);
    expect(listedBy('FETCH_NETWORKS')).toEqual([true, true, false]);
    expect(listedBy('CLASS')).toEqual([false, true, true]);
    expect(listedBy('USERS_FILE')).toEqual([false, true, true]);
    expect(listedBy('SERVER_SERVICE')).toEqual([false, false, true]);
    expect(listedBy('INITIAL_USER')).toEqual([false, false, true]);
    expect(listedBy('ALERT_WEBHOOK_SECRET_FILE')).toEqual([true, true, true]);
    const every = new Set([...dev, ...server, ...controller]);
    expect([...every].sort()).toEqual(
      variableReference()
        .map(({ name }) => name)
        .sort(),
    );
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
