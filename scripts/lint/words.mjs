// The words of a dialect that the project leaves behind: counted per folder in comments, in texts (log messages, errors, names
// of tests), in documents, and in the identifiers and file names of src/, against the committed table of words.json, which may
// only fall. `npm run check` compares;
// `node scripts/lint/words.mjs --write` lowers the table, `node scripts/lint/words.mjs FOLDER…` shows each place.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import { fail, root } from '../toolchain.mjs';

const TABLE = join(import.meta.dirname, 'words.json');

/** What an engineer of the field would say instead is in CONTRIBUTING.md, "Language". */
const WORDS = [
  'told',
  'tells?',
  'telling',
  'an? look',
  '(?:the|this|each|one|every|next|last|first|another) looks?(?! like)',
  'look(?:s|ed|ing)?(?: again)? at',
  'nobody',
  'somebody',
  'anybody',
  'everybody',
  'whoever',
  'whomever',
  'whom',
  "(?:a|the|its|their|whose|one's) turns?(?! (?:on|off))",
  'heard',
  'bring(?:s|ing)?',
  'brought',
  'se(?:en?|es|eing) to(?= it| be|[.,;:]|$)',
  'tak(?:e|es|en|ing) (?:\\w+ )?back',
  'usurpers?',
  'anew',
  'misfortune',
  'askers?',
  'judg\\w*',
  'noted',
  'owed',
  'contenders?',
  'settl(?:e|es|ed|ing|ements?)',
  'living',
  'dead(?! letters?\\b)',
  'vouch(?:es|ed|ing)?',
  'departures?',
  '(?:is|are|was|were|be) (?:back|away)(?= [a-z]|[.,;:]|$)(?! from| in | to )',
  'good for',
];
/** "Who" at the begin of a sentence, and as a subject that no word before it names, beside the list. */
const DIALECT = new RegExp(
  `\\b(?:${WORDS.map((word) => word.replace(/^[a-z]/, (first) => `[${first.toUpperCase()}${first}]`)).join('|')})\\b|(?:^|[.:;] |// |\\* )Who\\b|(?:, |; |: )who(?= \\w+s\\b)`,
  'gm',
);
/** The same words as one part of an identifier: `judge` of `judgeRequest`. */
const PART = new RegExp(`^(?:${WORDS.join('|')})$`);
/** Names of the language, which nothing here can rename. */
const LANGUAGE = /^(?:allSettled|Promise\w*Result)$/;

/** Golden files repeat what other files say, the changelog is history, and the list repeats itself. */
const COUNTED = /^(?:src|test|bench|scripts|docs|charts|crds|examples)\/|^[A-Z]+\.md$|^Dockerfile$/;
const SKIPPED = /\/golden\/|^CHANGELOG\.md$|^scripts\/lint\/words\.|\.(?:svg|tgz|css|go)$/;

const found = new Map();
// New files count before they are added; files that are moved or removed do not.
const LISTED = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
for (const file of execFileSync('git', LISTED, { cwd: root, encoding: 'utf8' }).split('\0')) {
  if (!COUNTED.test(file) || SKIPPED.test(file) || !existsSync(join(root, file))) continue;
  for (const place of placesIn(file)) {
    const folder = folderOf(file);
    found.set(folder, [...(found.get(folder) ?? []), place]);
  }
}
const counts = Object.fromEntries([...found].map(([folder, places]) => [folder, places.length]).sort());

const args = process.argv.slice(2);
const before = JSON.parse(readFileSync(TABLE, 'utf8'));
const risen = Object.entries(counts).filter(([folder, count]) => count > (before[folder] ?? 0));
const fallen = Object.keys(before).filter((folder) => (counts[folder] ?? 0) < before[folder]);

if (args[0] === '--write') {
  if (risen.length > 0) fail(`the table may only fall; it would rise in ${risen.map(([folder]) => folder).join(', ')}`);
  writeFileSync(TABLE, `${JSON.stringify(counts, undefined, 2)}\n`);
} else if (args.length > 0) {
  for (const folder of [...found.keys()].sort()) {
    if (args.some((arg) => folder === arg.replace(/\/$/, '') || folder.startsWith(arg.replace(/\/?$/, '/')))) {
      for (const place of found.get(folder)) console.log(place);
    }
  }
} else {
  for (const [folder, count] of risen) {
    console.log(`${folder}: ${count} words of the list, ${before[folder] ?? 0} are allowed:`);
    for (const place of found.get(folder)) console.log(`  ${place}`);
  }
  if (fallen.length > 0)
    console.log(`fewer than the table says in ${fallen.join(', ')}: node scripts/lint/words.mjs --write`);
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  console.log(`${total} words of the list in ${Object.keys(counts).length} folders`);
  process.exitCode = risen.length + fallen.length === 0 ? 0 : 1;
}

function folderOf(file) {
  const folder = dirname(file);
  return folder === '.' ? file : folder;
}

/** Every occurrence in a file, as `file:line: word: line`. */
function placesIn(file) {
  const source = readFileSync(join(root, file), 'utf8');
  const prose = proseOf(file, source).flatMap(({ text, offset }) =>
    [...text.matchAll(DIALECT)].map(({ 0: word, index }) => {
      const before = source.slice(0, offset + index).split('\n');
      const line = source.split('\n')[before.length - 1]?.trim();
      return `${file}:${before.length}: ${word.replace(/^\W+/, '')}: ${line}`;
    }),
  );
  return file.startsWith('src/') && /\.ts$/.test(file) ? [...prose, ...namesIn(file, source)] : prose;
}

/** Identifiers with a part of the list, each place of each, and the name of the file, as `file:line: word: identifier`. */
function namesIn(file, source) {
  const names = [{ name: basename(file, '.ts'), start: 0 }];
  const add = ({ name, start }) => LANGUAGE.test(name) || names.push({ name, start });
  new Visitor({ Identifier: add, PrivateIdentifier: add }).visit(parseSync(file, source).program);
  return names.flatMap(({ name, start }) =>
    name
      .split(/[^A-Za-z]+|(?<=[a-z])(?=[A-Z])/)
      .filter((part) => PART.test(part.toLowerCase()))
      .map((part) => `${file}:${source.slice(0, start).split('\n').length}: ${part}: ${name}`),
  );
}

/** What a file says to its readers. Of code: comments and texts; of a document: all but its code. */
function proseOf(file, source) {
  if (/\.(?:ts|mts|mjs)$/.test(file)) return proseOfCode(file, source);
  if (/\.md$/.test(file)) return [{ text: source.replaceAll(/^```[\s\S]*?^```|`[^`\n]*`/gm, blank), offset: 0 }];
  return [{ text: source, offset: 0 }];
}

function proseOfCode(file, source) {
  const { program, comments, errors } = parseSync(file, source);
  if (errors.length > 0) fail(`${file}: ${errors[0].message}`);
  const prose = comments.map(({ start, end }) => ({ text: source.slice(start, end), offset: start }));
  const addText = ({ start, end }) => {
    // A text of one word is a name or a value, and no prose.
    const text = source.slice(start, end);
    if (/\s/.test(text.trim())) prose.push({ text, offset: start });
  };
  new Visitor({
    Literal: (node) => {
      if (typeof node.value === 'string') addText(node);
    },
    TemplateElement: addText,
  }).visit(program);
  // A comment goes on from line to line: what begins a sentence there is no new sentence.
  return prose.map(({ text, offset }) => ({ text: text.replaceAll(/`[^`\n]*`/g, blank), offset }));
}

function blank(text) {
  return text.replaceAll(/[^\n]/g, ' ');
}
