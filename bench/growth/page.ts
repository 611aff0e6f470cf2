// The tables of docs/performance.md: each stands between two comments, and the command that measures it writes it.

import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';

const PAGE = 'docs/performance.md';

/**
 * Replaces one table of the page, with a line that says when and on what it was measured.
 * @param name in the comments around it
 * @param details what else is to be said of the measurement
 * @throws Error where the page has no such table
 */
export function writeTable(name: string, table: string, details: string): void {
  const page = readFileSync(PAGE, 'utf8');
  const [begin, end] = [`<!-- ${name} -->\n`, `<!-- end of ${name} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`${PAGE} has no table "${name}"`);
  const day = new Date().toISOString().slice(0, 10);
  const machine = `${cpus().length} cores of ${cpus()[0]?.model ?? 'an unknown processor'}`;
  const caption = `Measured on ${day}: ${machine}, Node ${process.versions.node}, ${details}.`;
  writeFileSync(PAGE, `${page.slice(0, from)}${begin}${caption}\n\n${table}\n${page.slice(to)}`);
}

/** A table in Markdown whose first column is text, and the others numbers. */
export function markdownTable(heads: readonly string[], lines: readonly (readonly string[])[]): string {
  return [heads, ['---', ...heads.slice(1).map(() => '--:')], ...lines]
    .map((line) => `| ${line.join(' | ')} |`)
    .join('\n');
}
