// What it costs an API to check a token by our library, against two that Node APIs use, as ratios inside one run; and how large
// the library is. By itself: `node bench/resource-server.ts [rounds]`.

import { execFileSync } from 'node:child_process';
import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestIssuer } from '../src/resource-server/testing.ts';
import type { CheckCost, CheckOrder } from './check-cost.ts';
import { runPinned, SERVER_CORE, stopAll } from './load/pinned-process.ts';
import { CHECKERS } from './peer/token-checkers.ts';
import { verdictOn } from './rows.ts';
import { summarize } from './statistics.ts';

type Checker = keyof typeof CHECKERS;
type Costs = Readonly<Record<Checker, CheckCost>>;

const ROUNDS = Number(process.argv[2] ?? 9);
const TOKENS = 6000;
const LIFETIME_SECONDS = 3600;
const NAMES = Object.keys(CHECKERS) as readonly Checker[];

const AHEAD = { floor: 0.9, goal: 1 };
const FIVE_TIMES = { floor: 3, goal: 5 };
const ROWS = [
  { ours: 'ours, Connect', peer: 'express-oauth2-jwt-bearer', kind: 'first', target: AHEAD },
  { ours: 'ours, Fastify', peer: '@fastify/jwt', kind: 'first', target: AHEAD },
  { ours: 'ours, Connect', peer: 'express-oauth2-jwt-bearer', kind: 'repeated', target: FIVE_TIMES },
  { ours: 'ours, Fastify', peer: '@fastify/jwt', kind: 'repeated', target: FIVE_TIMES },
  { ours: 'ours, Fastify', peer: '@fastify/jwt with its cache', kind: 'first', target: undefined },
  { ours: 'ours, Fastify', peer: '@fastify/jwt with its cache', kind: 'repeated', target: undefined },
] as const;

try {
  const order = await prepare();
  const rounds: Costs[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    rounds.push(await measureRound(round % 2 === 0 ? NAMES : NAMES.toReversed(), order));
  }
  print(rounds);
  printSize();
} finally {
  stopAll();
}

/** Tokens of one issuer with one key, and what an API knows of it. */
async function prepare(): Promise<Omit<CheckOrder, 'checker'>> {
  const { issuer, audience, token, forgedToken, fetch } = createTestIssuer({
    audience: 'https://notes.example.com/api',
  });
  const jwks = (await (await fetch(`${issuer}/.well-known/jwks.json`, {})).json()) as {
    readonly keys: readonly JsonWebKey[];
  };
  const [key = {}] = jwks.keys;
  const publicKey = createPublicKey({ key, format: 'jwk' }).export({ format: 'pem', type: 'spki' }).toString();
  const claims = { scope: 'notes.read notes.write', exp: Math.floor(Date.now() / 1000) + LIFETIME_SECONDS };
  const tokens = Array.from({ length: TOKENS }, () => token({ claims }));
  return { facts: { issuer, audience, jwks, publicKey }, tokens, forged: forgedToken({ claims }) };
}

async function measureRound(names: readonly Checker[], order: Omit<CheckOrder, 'checker'>): Promise<Costs> {
  const costs: [Checker, CheckCost][] = [];
  for (const checker of names) {
    const whole: CheckOrder = { checker, ...order };
    costs.push([checker, (await runPinned(SERVER_CORE, 'bench/check-cost.ts', whole)) as CheckCost]);
  }
  return Object.fromEntries(costs) as Costs;
}

function print(rounds: readonly Costs[]): void {
  console.log(`${'CPU of a check'.padEnd(60)} first token   repeated`);
  for (const name of NAMES) {
    const median = (kind: keyof CheckCost) => summarize(rounds.map((costs) => costs[name][kind])).median;
    const [first, repeated] = [median('first'), median('repeated')].map((value) => `${value.toFixed(1)} µs`);
    console.log(`${name.padEnd(60)} ${first?.padStart(11)} ${repeated?.padStart(10)}`);
  }
  console.log(`\n${'ratio: theirs / ours'.padEnd(60)}  median  quartiles    goal`);
  for (const { ours, peer, kind, target } of ROWS) {
    const { median, lowerQuartile, upperQuartile } = summarize(
      rounds.map((costs) => costs[peer][kind] / costs[ours][kind]),
    );
    const quartiles = `${lowerQuartile.toFixed(2)}–${upperQuartile.toFixed(2)}`.padEnd(12);
    const verdict = target === undefined ? '' : `${target.goal}  ${verdictOn(median, target)}`;
    const name = `${kind === 'first' ? 'a first token' : 'a repeated token'} against ${peer}`;
    console.log(`${name.padEnd(60)} ${median.toFixed(2).padStart(7)}  ${quartiles} ${verdict}`);
  }
}

function printSize(): void {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-size-'));
  try {
    execFileSync(process.execPath, ['scripts/library/pack.mjs', folder], { stdio: ['ignore', 2, 2] });
    for (const name of readdirSync(folder)) console.log(`\n${name}: ${statSync(join(folder, name)).size} bytes`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
