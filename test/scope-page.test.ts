// Holds docs/scope.md to its promise: every rule is there once, and each either links to tests that exist, by file and
// title, or says that it is not built yet.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CallExpression, parseSync, Visitor } from 'oxc-parser';
import { describe, expect, it } from 'vitest';

const docs = join(import.meta.dirname, '..', 'docs');
const page = readFileSync(join(docs, 'scope.md'), 'utf8');

interface Row {
  readonly id: string;
  readonly proof: string;
}

/** Table rows whose first cell is a rule's id; the last cell is the proof. */
function rowsOf(text: string): readonly Row[] {
  return [...text.matchAll(/^\| ([0-9A-Z]+-[0-9A-Zax]+|[A-Z]{1,2}[0-9]+) \|.*?([^|]*(?:\\\|[^|]*)*)\|$/gm)].map(
    ([, id = '', proof = '']) => ({ id, proof: proof.trim() }),
  );
}

/** `[title](../test/file)` links, with the backslashes of Markdown taken away. */
function linksOf(proof: string): readonly { readonly title: string; readonly file: string }[] {
  return [...proof.matchAll(/\[((?:\\.|[^\]\\])+)\]\(([^)]+)\)/g)].map(([, title = '', file = '']) => ({
    title: title.replaceAll(/\\(.)/g, '$1'),
    file,
  }));
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

/** Every rule the page must speak of: the wire rules by RFC, and the security checklist. */
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

describe('docs/scope.md', () => {
  const rows = rowsOf(page);
  const known = new Map<string, ReadonlySet<string>>();

  it('speaks of every rule, once', () => {
    expect(rows.map((row) => row.id).sort()).toEqual(RULES.toSorted());
  });

  it('links every rule to a test, or says that it is not built yet', () => {
    const unproven = rows.filter(({ proof }) => linksOf(proof).length === 0 && !proof.startsWith('not yet'));
    expect(unproven.map((row) => row.id)).toEqual([]);
  });

  it('links only to tests that exist, by file and title', () => {
    const broken = rows.flatMap(({ id, proof }) =>
      linksOf(proof)
        .filter(({ title, file }) => {
          const path = join(docs, file);
          if (!file.startsWith('../test/') || !existsSync(path)) return true;
          const titles = known.get(path) ?? titlesOf(path);
          known.set(path, titles);
          return !titles.has(title);
        })
        .map(({ title, file }) => `${id}: ${file}: ${title}`),
    );
    expect(broken).toEqual([]);
  });

  it('names for every advisory only rules of its own', () => {
    const advisories = page.slice(page.indexOf('## Advisories'));
    const held = [...advisories.matchAll(/^\| .* \| ([^|]+) \|$/gm)].map(([, ids = '']) => ids.trim()).slice(2);
    expect(held.length).toBeGreaterThan(40);
    expect(held.flatMap((ids) => ids.split(', ')).filter((id) => !RULES.includes(id))).toEqual([]);
  });
});

describe('the reader of the page', () => {
  it('finds rows, proofs and titles, escaped ones too', () => {
    const text =
      '| R1 | a \\| b | [says \\[no\\]](../test/a.test.ts); [x \\| y](../test/b.test.ts) |\n| --- | --- |\n| word | no row |';
    const rows = rowsOf(text);
    expect(rows.map((row) => row.id)).toEqual(['R1']);
    expect(linksOf(rows[0]?.proof ?? '')).toEqual([
      { title: 'says [no]', file: '../test/a.test.ts' },
      { title: 'x | y', file: '../test/b.test.ts' },
    ]);
  });

  it('knows the tests of a file, and does not know others', () => {
    const titles = titlesOf(import.meta.filename);
    expect(titles).toContain('docs/scope.md › speaks of every rule, once');
    expect(titles).not.toContain('speaks of every rule, once');
    const layers = titlesOf(join(import.meta.dirname, 'architecture.test.ts'));
    expect(layers).toContain('the layer table › refuses it when %s');
    expect(titlesOf(join(import.meta.dirname, 'contracts', 'grant-redemption.ts'))).toContain(
      '…: redeeming a code › works until just before the code has lived its time',
    );
  });
});
