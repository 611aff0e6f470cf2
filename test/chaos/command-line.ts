// The options of `npm run test:chaos`, and what it refuses before anything is started.

import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { GROUNDS } from './rounds.ts';

/** A form of Redis. */
type GroundName = keyof typeof GROUNDS;

const NAMES = Object.keys(GROUNDS) as GroundName[];

/** The most a seed can be: 32 bits. */
const MOST_SEED = 2 ** 32 - 1;

export const USAGE = `npm run test:chaos -- [options]
  --seed N        repeat the faults and the clients of a run
  --rounds N      how many faults (200)
  --replicas N    of grantry (3)
  --ground NAME   only this form of Redis: ${NAMES.join(' | ')}
  --fault NAME    only this fault, as a round calls it
  --help          this`;

/** A run as it was asked for. */
export interface Run {
  readonly seed: number;
  readonly rounds: number;
  readonly replicas: number;
  /** In turn; at least one. */
  readonly grounds: readonly GroundName[];
  readonly fault: string | undefined;
}

/** What was asked for cannot be run; the message is one line that says why. */
export class CommandLineError extends Error {}

/** @throws CommandLineError for what is not in {@link USAGE} */
export function parseCommandLine(words: readonly string[]): Run | 'help' {
  const { help, seed, rounds, replicas, ground, fault } = read(words);
  if (help === true) return 'help';
  return {
    seed: seed === undefined ? randomInt(2 ** 31) : wholeNumber('--seed', seed, [0, MOST_SEED]),
    rounds: wholeNumber('--rounds', rounds ?? '200', [1, 100_000]),
    replicas: wholeNumber('--replicas', replicas ?? '3', [1, 20]),
    grounds: groundsOf(ground, fault),
    fault,
  };
}

function read(words: readonly string[]) {
  try {
    return parseArgs({
      args: [...words],
      options: {
        help: { type: 'boolean' },
        seed: { type: 'string' },
        rounds: { type: 'string' },
        replicas: { type: 'string' },
        ground: { type: 'string' },
        fault: { type: 'string' },
      },
    }).values;
  } catch (error) {
    // Node goes on with advice about positional arguments, of which there are none here.
    throw new CommandLineError(String((error as Error).message).split(/[.\n]/)[0]);
  }
}

function wholeNumber(option: string, text: string, [least, most]: readonly [number, number]): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw new CommandLineError(`${option}: ${JSON.stringify(text)} is no whole number from ${least} to ${most}`);
}

/** Those that were asked for, where what was asked for can happen. */
function groundsOf(ground: string | undefined, fault: string | undefined): readonly GroundName[] {
  const named = NAMES.filter((name) => ground === undefined || name === ground);
  if (named.length === 0) {
    throw new CommandLineError(`--ground: there is none called ${JSON.stringify(ground)}, but ${NAMES.join(' | ')}`);
  }
  const able = named.filter((name) => fault === undefined || GROUNDS[name].faults.includes(fault));
  if (able.length > 0) return able;
  const faults = [...new Set(named.flatMap((name) => GROUNDS[name].faults))].join(' | ');
  throw new CommandLineError(`--fault: there is none called ${JSON.stringify(fault)} there, but ${faults}`);
}
