// Runs on the servers' core: the CPU time in which one library checks a token that it sees the first time, and one that it has
// seen before, in microseconds.

import { text } from 'node:stream/consumers';
import { CHECKERS, type IssuerFacts, type TokenCheck } from './peer/token-checkers.ts';

/** What is measured. */
export interface CheckOrder {
  readonly checker: keyof typeof CHECKERS;
  readonly facts: IssuerFacts;
  readonly tokens: readonly string[];
  /** One that has to be refused. */
  readonly forged: string;
}

export interface CheckCost {
  readonly first: number;
  readonly repeated: number;
}

/** So many of the tokens warm up, and so many callers come again and again with one of theirs. */
const WARM_UP = 2000;
const CALLERS = 100;
const CALLS_OF_EACH = 200;

const { checker, facts, tokens, forged } = JSON.parse(await text(process.stdin)) as CheckOrder;
const check: TokenCheck = await CHECKERS[checker](facts);
const isForgedRefused = await check(forged).then(
  () => false,
  () => true,
);
if (!isForgedRefused) throw new Error(`${checker} accepts a forged token`);

const callers = tokens.slice(-CALLERS);
await costOf(tokens.slice(0, WARM_UP));
for (let count = 0; count < 10; count += 1) await costOf(tokens.slice(0, CALLERS));
const first = await costOf(tokens.slice(WARM_UP));
const repeated = await costOf(Array.from({ length: CALLS_OF_EACH }, () => callers).flat());
process.stdout.write(JSON.stringify({ first, repeated } satisfies CheckCost));
process.exitCode = 0;

/** For each, one after the other. */
async function costOf(presented: readonly string[]): Promise<number> {
  const before = process.cpuUsage();
  for (const token of presented) await check(token);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / presented.length;
}
