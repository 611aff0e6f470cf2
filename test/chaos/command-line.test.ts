// What `npm run test:chaos` refuses: a run that plays nothing must not say that every promise was kept.

import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { CommandLineError, parseCommandLine } from './command-line.ts';
import { GROUNDS } from './rounds.ts';

const ALL = Object.keys(GROUNDS);

describe('the command line of a chaos run', () => {
  it('asks for 200 rounds on every form of Redis, with a seed of its own', () => {
    const run = parseCommandLine([]);
    expect(run).toMatchObject({ rounds: 200, replicas: 3, grounds: ALL, fault: undefined });
    expect(parseCommandLine([])).not.toEqual(run);
  });

  it('says which seed, how many rounds and replicas, where, and what', () => {
    const fault = 'a fail-over on command';
    const words = ['--seed', '0', '--rounds', '1', '--replicas=2', '--ground', 'sentinel', '--fault', fault];
    expect(parseCommandLine(words)).toEqual({ seed: 0, rounds: 1, replicas: 2, grounds: ['sentinel'], fault });
  });

  it('goes only where its fault can happen', () => {
    expect(parseCommandLine(['--fault', 'Redis drops its clients'])).toMatchObject({ grounds: ['standalone'] });
    expect(parseCommandLine(['--fault', 'a replica of grantry is killed'])).toMatchObject({ grounds: ALL });
  });

  it.each([
    ['a number of rounds that is none', ['--rounds', 'abc'], '--rounds'],
    ['no rounds', ['--rounds', '0'], '--rounds'],
    ['fewer than none', ['--rounds=-3'], '--rounds'],
    ['half a round', ['--rounds', '1.5'], '--rounds'],
    ['endless rounds', ['--rounds', 'Infinity'], '--rounds'],
    ['an empty number', ['--rounds='], '--rounds'],
    ['no replicas', ['--replicas', '0'], '--replicas'],
    ['a seed that is no number', ['--seed', 'x'], '--seed'],
    ['a seed of more than 32 bits', ['--seed', '4294967296'], '--seed'],
    ['an option without its value', ['--seed'], '--seed'],
    ['an unknown form of Redis', ['--ground', 'moon'], '--ground'],
    ['an unknown fault', ['--fault', 'nothing'], '--fault'],
    ['a fault of another form', ['--ground', 'cluster', '--fault', 'Redis drops its clients'], '--fault'],
    ['an unknown option', ['--wat'], '--wat'],
    ['a stray word', ['more'], 'more'],
  ])('is refused with one line that names it: %s', (_what, words, named) => {
    const refused = () => parseCommandLine(words);
    expect(refused).toThrow(CommandLineError);
    expect(refused).toThrow(named);
    expect(refused).not.toThrow('\n');
  });
});

describe('npm run test:chaos', () => {
  const run = (...words: readonly string[]) =>
    spawnSync(process.execPath, [new URL('main.ts', import.meta.url).pathname, ...words], { encoding: 'utf8' });

  it.each([
    ['--rounds', 'abc'],
    ['--rounds', '0'],
    ['--fault', 'nothing'],
  ])('ends with 2 and one line where it cannot run, and plays nothing: %s %s', (...words) => {
    const { status, stdout, stderr } = run(...words);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^test:chaos: [^\n]+\n$/);
    expect(stderr).toContain(`${words[0]}: `);
  });

  it('says what it takes when it is asked', () => {
    const { status, stdout, stderr } = run('--help');
    expect([status, stderr]).toEqual([0, '']);
    for (const option of ['--seed', '--rounds', '--replicas', '--ground', '--fault']) expect(stdout).toContain(option);
  });
});
