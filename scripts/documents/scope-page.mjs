// docs/scope.md, made from docs/scope/: `node scripts/documents/scope-page.mjs` writes it, `--check` fails if it is not as
// it would be written. contents.yaml has the order of the chapters; a chapter has rules, each with its tests by file and
// name or with the text `not yet`. That the tests exist is checked by test/scope-page.test.ts.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../..');
const SOURCE = join(ROOT, 'docs/scope');
const PAGE = join(ROOT, 'docs/scope.md');

const read = (name) => parse(readFileSync(join(SOURCE, `${name}.yaml`), 'utf8'));

const table = (header, rows) => [
  `| ${header.join(' | ')} |`,
  `| ${header.map(() => '---').join(' | ')} |`,
  ...rows.map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`),
  '',
];

const introOf = ({ intro }) => (intro === undefined ? [] : [intro]);

/** The name of a test as the text of a link. */
const linkText = (name) => name.replaceAll(/[\\[\]]/g, '\\$&');

function testsCell(tests) {
  if (typeof tests === 'string') return tests;
  const links = Object.entries(tests).flatMap(([file, names]) =>
    names.map((name) => `[${linkText(name)}](../${file})`),
  );
  return links.join('; ');
}

function advisoryRows({ advisories }) {
  return table(
    ['advisory', 'what went wrong', 'held by'],
    advisories.map(({ advisory, fault, heldBy }) => [advisory, fault, heldBy.join(', ')]),
  );
}

function chapter(name) {
  const content = read(name);
  if (content.advisories !== undefined) return advisoryRows(content);
  const { title, column = 'rule', rules } = content;
  const hasLevels = rules.some(({ level }) => level !== undefined);
  return [
    `### ${title}`,
    '',
    ...introOf(content),
    ...table(
      hasLevels ? ['id', column, 'level', 'test'] : ['id', column, 'test'],
      rules.map(({ id, rule, level, tests }) => [id, rule, ...(hasLevels ? [level] : []), testsCell(tests)]),
    ),
  ];
}

const contents = read('contents');
const listed = ['contents', ...contents.parts.flatMap(({ chapters }) => chapters)].map((name) => `${name}.yaml`);
const unlisted = readdirSync(SOURCE).filter((file) => !listed.includes(file));
if (unlisted.length > 0) throw new Error(`docs/scope/contents.yaml does not list ${unlisted.join(', ')}`);

const text = [
  `# ${contents.title}`,
  '',
  '<!-- Made from docs/scope/ by scripts/documents/scope-page.mjs. -->',
  '',
  ...introOf(contents),
  ...contents.parts.flatMap((part) => [`## ${part.title}`, '', ...introOf(part), ...part.chapters.flatMap(chapter)]),
].join('\n');

if (!process.argv.includes('--check')) writeFileSync(PAGE, text);
else if (readFileSync(PAGE, 'utf8') !== text) {
  console.error('docs/scope.md is not as docs/scope/ says; run node scripts/documents/scope-page.mjs');
  process.exitCode = 1;
}
