// The committed table of costs (ledger.md): how a row of it is written and read, and in what a count may differ from it.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Calls, Cost, Counted, Prepared } from './costs.ts';
import { KINDS } from './process-work.ts';
import type { CostWorld } from './world.ts';

/** One request of the ledger. */
export interface Row<World = CostWorld> {
  readonly name: string;
  /** Makes what the request needs, such as a new code. */
  readonly prepare: (world: World) => Promise<Prepared>;
}

/** The cells of a row, by column. */
export type Cells = Readonly<Record<string, string>>;

/** By how many bytes a request may differ from its row. */
const BYTES = 16;
const BYTE_COLUMNS = ['to Redis', 'from Redis'];
const COLUMNS = ['scripts', 'commands', 'inside scripts', ...BYTE_COLUMNS, 'round trips', ...KINDS];
const NONE = '–';
const FILE = join(import.meta.dirname, 'ledger.md');
/** The table begins after this line. */
const HEAD = `| request | ${COLUMNS.join(' | ')} |`;

const HOW = 'GRANTRY_WRITE_LEDGER=1 npx vitest run --project redis test/redis/costs.test.ts';

/** The rows of the table, by the name of the request. */
export function readLedger(): ReadonlyMap<string, Cells> {
  const [, table = ''] = readFileSync(FILE, 'utf8').split(`${HEAD}\n`);
  const lines = table.split('\n').slice(1);
  return new Map(
    lines
      .filter((line) => line.startsWith('| '))
      .map((line) => {
        const [name = '', ...cells] = line.slice(2, -2).split(' | ');
        return [name, Object.fromEntries(COLUMNS.map((column, index) => [column, cells[index] ?? '']))];
      }),
  );
}

/** Replaces the table by these rows; the text before it stays. */
export function writeLedger(rows: ReadonlyMap<string, Cells>): void {
  const [text = ''] = readFileSync(FILE, 'utf8').split(HEAD);
  const rule = `|${' --- |'.repeat(1 + COLUMNS.length)}`;
  const lines = [...rows].map(([name, cells]) => `| ${[name, ...Object.values(cells)].join(' | ')} |`);
  writeFileSync(FILE, `${text}${[HEAD, rule, ...lines].join('\n')}\n`);
}

/** A cost as the table has it. */
export function cellsOf({ scripts, commands, inside, sent, received, roundTrips, work }: Cost): Cells {
  const numbers = { scripts, 'to Redis': sent, 'from Redis': received, 'round trips': roundTrips, ...work };
  const texts: Cells = { commands: callsText(commands), 'inside scripts': callsText(inside) };
  const all: Readonly<Record<string, string | number>> = { ...numbers, ...texts };
  return Object.fromEntries(COLUMNS.map((column) => [column, String(all[column])]));
}

/** The cells of a count for the table: bytes that are near enough stay as they are. */
export function rewritten(counted: Cost, known: Cells | undefined): Cells {
  const cells = cellsOf(counted);
  const kept = BYTE_COLUMNS.filter((column) => isNear(cells[column], known?.[column]));
  return { ...cells, ...Object.fromEntries(kept.map((column) => [column, known?.[column] ?? ''])) };
}

/** The columns in which a request costs more than another one; names of clients differ by a few bytes. */
export function columnsAbove(cells: Cells, others: Cells): readonly string[] {
  const tolerance = (column: string) => (BYTE_COLUMNS.includes(column) ? BYTES : 0);
  return COLUMNS.filter((column) => total(cells[column]) > total(others[column]) + tolerance(column));
}

/** The names of the commands in a cell. */
export function commandsIn(cell: string | undefined): readonly string[] {
  return [...(cell ?? '').matchAll(/([A-Z|]+) \d+/g)].map(([, name = '']) => name);
}

/** Of a number, or of the calls of commands. */
function total(cell: string | undefined): number {
  return [...(cell ?? '').matchAll(/\d+/g)].reduce((sum, [digits]) => sum + Number(digits), 0);
}

/** In what a count differs from its row, and what is to be done then; undefined where it does not. */
export function differenceFrom(known: Cells | undefined, counted: Counted): string | undefined {
  if (known === undefined) return `ledger.md has no such row. To write it: ${HOW}`;
  const cells = cellsOf(counted);
  const faults = COLUMNS.filter((column) => !isSame(column, cells[column], known[column])).map(
    (column) => `  ${column}: ${known[column]} → ${cells[column]}`,
  );
  if (faults.length === 0) return undefined;
  const places = counted.places.map((place) => `  ${place}`);
  return [
    'the cost of this request is another than its row in test/redis/costs/ledger.md says:',
    ...faults,
    ...(places.length > 0 ? ['where it computes:', ...places] : []),
    `Where that is meant: ${HOW}`,
    'and the message of the commit says why a count rises.',
  ].join('\n');
}

function isSame(column: string, one: string | undefined, other: string | undefined): boolean {
  return one === other || (BYTE_COLUMNS.includes(column) && isNear(one, other));
}

function isNear(one: string | undefined, other: string | undefined): boolean {
  return Math.abs(Number(one) - Number(other)) <= BYTES;
}

/** As `GET 2, TIME 1`. */
function callsText(calls: Calls): string {
  const texts = Object.entries(calls).map(([name, count]) => `${name} ${count}`);
  return texts.length === 0 ? NONE : texts.join(', ');
}
