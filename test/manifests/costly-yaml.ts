// Texts of YAML indicators that would keep a parser busy, and the time for which reading one holds the event loop.

import fc from 'fast-check';

/** The largest text that is parsed on the main thread. */
const BYTES = 8 * 1024;

const INDICATORS = [
  ...[
    '{',
    '}',
    '[',
    ']',
    ',',
    '? ',
    ': ',
    '- ',
    '&a ',
    '*a',
    '!',
    '|\n',
    '>\n',
    '"',
    "'",
    '#',
    '%A\n',
    '---\n',
    '...\n',
  ],
  ...['<<', '\n', ' ', '\t', 'a', '0'],
];

const unit = fc.array(fc.constantFrom(...INDICATORS), { minLength: 1, maxLength: 8 }).map((parts) => parts.join(''));

/** A unit on each line, each a space deeper than the one before: blocks within blocks. */
function staircase(text: string): string {
  let stairs = '';
  for (let depth = 0; stairs.length < BYTES; depth++) stairs += `${' '.repeat(depth)}${text}\n`;
  return stairs;
}

const repeated = unit.map((text) => text.repeat(BYTES));
const stretches = fc
  .array(fc.tuple(unit, fc.integer({ min: 1, max: 500 })), { minLength: 2, maxLength: 6 })
  .map((parts) => parts.map(([text, times]) => text.repeat(times)).join(''));

/** Up to 8 KiB of indicators: one unit again and again, several in a row, or nested line by line. */
export const costlyYaml = fc.oneof(repeated, stretches, unit.map(staircase)).map((text) => text.slice(0, BYTES));

/** Texts that held the event loop for seconds. */
export const COSTLY_BEFORE: readonly (readonly [string, string])[] = [
  ['flow maps in flow maps', '{'.repeat(BYTES)],
  ['a few open braces', '{'.repeat(32)],
  ['lists and maps in turn', '[{'.repeat(BYTES / 2)],
  ['explicit keys on one line', '? '.repeat(BYTES / 2)],
  ['explicit keys and lists', '- ? '.repeat(BYTES / 4)],
  ['explicit keys line by line', staircase('?').slice(0, 434)],
];

/**
 * For how long this holds the event loop, in milliseconds: the median of five, in the time of the thread, so that
 * other processes do not count. A first run far below any limit is not repeated.
 */
export function blockedMilliseconds(work: () => unknown): number {
  const first = threadMilliseconds(work);
  if (first < 100) return first;
  const runs = [first, ...Array.from({ length: 4 }, () => threadMilliseconds(work))];
  return runs.sort((a, b) => a - b)[2] ?? first;
}

/** What it costs this thread, in milliseconds. */
export function threadMilliseconds(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
