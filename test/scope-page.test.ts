// Holds docs/scope/, which docs/scope.md is made from, to its promise: every rule is there once, and each either names tests
// that exist, by file and title, or says that it is not built yet.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CallExpression, parseSync, Visitor } from 'oxc-parser';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';

const ROOT = join(import.meta.dirname, '..');
const SCOPE = join(ROOT, 'docs/scope');

const text = z.string().min(1);

const testsByFile = z
  .record(z.string().startsWith('test/'), z.array(text).min(1))
  .refine((files) => Object.keys(files).length > 0);

/** A rule, and the names of its tests by file; or what is not built yet. */
const rule = z.strictObject({
  id: text,
  rule: text,
  level: z.enum(['C', 'H', 'M', 'L']).optional(),
  tests: z.union([z.string().startsWith('not yet'), testsByFile]),
});

const chapter = z.strictObject({
  title: text,
  intro: text.optional(),
  column: text.optional(),
  rules: z.array(rule).min(1),
});

const advisories = z.strictObject({
  advisories: z.array(z.strictObject({ advisory: text, fault: text, heldBy: z.array(text).min(1) })),
});

const read = (name: string): unknown => parse(readFileSync(join(SCOPE, name), 'utf8'));

/** The tests that a rule names, each with its file. */
function testsOf({ tests }: z.infer<typeof rule>): readonly { readonly file: string; readonly title: string }[] {
  if (typeof tests === 'string') return [];
  return Object.entries(tests).flatMap(([file, titles]) => titles.map((title) => ({ file, title })));
}

/** What stands between the names of nested suites and a test. */
const WITHIN = ' › ';

/** The names of all tests in a file, each with the suites around it; `…` stands for what is filled in at run time. */
function titlesOf(file: string): ReadonlySet<string> {
  const titles = new Set<string>();
  const suites: string[] = [];
  const { program } = parseSync(file, readFileSync(file, 'utf8'));
  new Visitor({
    CallExpression: (call) => {
      const [kind, title] = namedCall(call);
      if (kind === 'describe') suites.push(title);
      if (kind === 'it') titles.add([...suites, title].join(WITHIN));
    },
    'CallExpression:exit': (call) => {
      if (namedCall(call)[0] === 'describe') suites.pop();
    },
  }).visit(program);
  return titles;
}

/** `describe('…')`, `it('…')` and their `.each(…)('…')`: which of the two, and the title. */
function namedCall({ callee, arguments: [title] }: CallExpression): readonly [string, string] {
  const each = callee.type === 'CallExpression' ? callee.callee : callee;
  const name = each.type === 'MemberExpression' ? each.object : each;
  if (name.type !== 'Identifier') return ['', ''];
  const kind = name.name === 'describeRedis' ? 'describe' : name.name;
  if (title?.type === 'Literal' && typeof title.value === 'string') return [kind, title.value];
  if (title?.type !== 'TemplateLiteral') return ['', ''];
  return [kind, title.quasis.map((quasi) => quasi.value.cooked).join('…')];
}

const numbered = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index + 1}`);

/** Every rule docs/scope/ has: the wire rules by RFC, and the security checklist. */
const RULES = [
  ...numbered('6749-', 15),
  ...numbered('6750-', 6),
  ...numbered('7636-', 3),
  ...numbered('7009-', 6),
  ...numbered('7662-', 4),
  ...numbered('8252-', 2),
  ...numbered('8414-', 4),
  ...numbered('8628-', 5),
  ...numbered('8693-', 3),
  ...numbered('8705-', 4),
  ...numbered('8707-', 2),
  ...numbered('9068-', 3),
  ...numbered('9101-', 5),
  ...numbered('9126-', 7),
  ...numbered('9207-', 1),
  ...numbered('9396-', 2),
  ...numbered('9449-', 7),
  ...numbered('9728-', 3),
  ...numbered('USERINFO-', 6),
  ...numbered('DISCOVERY-', 2),
  ...numbered('RPL-', 6),
  ...numbered('BCL-', 4),
  ...numbered('UPSTREAM-', 12),
  ...numbered('F2-', 3),
  ...numbered('9110-', 2),
  ...numbered('9470-', 1),
  ...numbered('OIDC-A', 13),
  ...numbered('OIDC-T', 6),
  ...numbered('OIDF-', 8),
  ...['9700-M', '7591-x', '7592-x', '8725-1', '9325-1', '6585-1', '3986-1'],
  ...numbered('7521-', 4),
  ...numbered('7523-', 4),
  ...numbered('6819-', 2),
  ...numbered('R', 13),
  ...numbered('P', 9),
  ...numbered('K', 8),
  ...numbered('RF', 15),
  ...numbered('C', 26),
  ...numbered('D', 8),
  ...numbered('M', 4),
  ...numbered('S', 8),
  ...numbered('U', 15),
  ...numbered('T', 9),
  ...numbered('I', 25),
];

describe('docs/scope/', () => {
  const chapters = readdirSync(SCOPE).filter((name) => !['contents.yaml', 'advisories.yaml'].includes(name));
  const known = new Map<string, ReadonlySet<string>>();

  it.each(chapters)('%s is a chapter: each rule with tests, or not built yet', (name) => {
    chapter.parse(read(name));
  });

  const rules = chapters.flatMap((name) => chapter.safeParse(read(name)).data?.rules ?? []);

  it('has every rule, once', () => {
    expect(rules.map(({ id }) => id).sort()).toEqual(RULES.toSorted());
  });

  it('names only tests that exist, by file and title', () => {
    const broken = rules.flatMap((each) =>
      testsOf(each)
        .filter(({ title, file }) => {
          const path = join(ROOT, file);
          if (!existsSync(path)) return true;
          const titles = known.get(path) ?? titlesOf(path);
          known.set(path, titles);
          return !titles.has(title);
        })
        .map(({ title, file }) => `${each.id}: ${file}: ${title}`),
    );
    expect(broken).toEqual([]);
  });

  it('names for every advisory only rules of its own', () => {
    const rows = advisories.parse(read('advisories.yaml')).advisories;
    expect(rows.length).toBeGreaterThan(40);
    expect(rows.flatMap(({ heldBy }) => heldBy).filter((id) => !RULES.includes(id))).toEqual([]);
  });

  it('is what docs/scope.md is made from', () => {
    const script = join(ROOT, 'scripts/documents/scope-page.mjs');
    execFileSync(process.execPath, [script, '--check'], { stdio: ['ignore', 'ignore', 'inherit'] });
  });
});

describe('the reader of tests', () => {
  it('knows the tests of a file, and does not know others', () => {
    const titles = titlesOf(import.meta.filename);
    expect(titles).toContain('docs/scope/ › has every rule, once');
    expect(titles).not.toContain('has every rule, once');
    const layers = titlesOf(join(import.meta.dirname, 'architecture.test.ts'));
    expect(layers).toContain('the layer table › refuses it when %s');
    expect(titlesOf(join(import.meta.dirname, 'contracts', 'grant-redemption.ts'))).toContain(
      '…: redeeming a code › works until just before the code has lived its time',
    );
  });
});
