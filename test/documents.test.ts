// The documents point at things that exist (every relative link, and every path of ours that is named in backticks), and
// the manifests they show are accepted.

import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { expect, it } from 'vitest';
import { hashPassword } from '../src/login/local/local-users.ts';
import { checkPaths } from '../src/processes/check/check.ts';

const root = join(import.meta.dirname, '..');
const documents = globSync(['*.md', 'docs/**/*.md', 'bench/*.md', 'examples/**/*.md'], { cwd: root });

/** `text` of every match in every document that names nothing which exists. */
function missing(pattern: RegExp, resolve: (document: string, target: string) => string): readonly string[] {
  return documents.flatMap((document) =>
    [...readFileSync(join(root, document), 'utf8').matchAll(pattern)]
      .map(([, target = '']) => target)
      .filter((target) => !existsSync(resolve(join(root, document), target)))
      .map((target) => `${relative(root, join(root, document))}: ${target}`),
  );
}

it('links lead somewhere', () => {
  const link = /\]\((?!https?:|mailto:|#)([^)#]+)(?:#[^)]*)?\)/g;
  expect(documents).toContain('README.md');
  expect(missing(link, (document, target) => join(dirname(document), target))).toEqual([]);
});

it('anchors exist in the document they lead to', () => {
  const slugs = (file: string) =>
    [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    );
  const broken = documents.flatMap((document) => {
    const file = join(root, document);
    return [...readFileSync(file, 'utf8').matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)]
      .filter(
        ([, target = '', anchor = '']) => !slugs(target === '' ? file : join(dirname(file), target)).includes(anchor),
      )
      .map(([link]) => `${document}: ${link}`);
  });
  expect(broken).toEqual([]);
});

it('paths named in the text exist', () => {
  // Files, and folders with their slash; a name with a star or an ellipsis stands for several.
  const path = /`((?:src|test|docs|scripts|bench|crds|examples)\/[\w./-]*(?:\/|\.\w+))`/g;
  expect(missing(path, (_, target) => join(root, target))).toEqual([]);
});

const manifests = documents.flatMap((document) =>
  [...readFileSync(join(root, document), 'utf8').matchAll(/```yaml\n(apiVersion:.*?)```/gs)].map(
    ([, yaml = ''], index) => [`${document}, manifest ${index + 1}`, document, yaml] as const,
  ),
);

it('there are manifests to hold to account', () => {
  expect(manifests.length).toBeGreaterThanOrEqual(4);
});

// What a page leaves to the reader is refused as it stands, and accepted with what the page says to put there.
const placeholders: readonly (readonly [string, string])[] = [
  ['REPLACE-ME', Buffer.alloc(32, 'secret').toString('base64')],
  ['PASTE-A-HASH-HERE', await hashPassword('a password of the test')],
];

function filledIn(yaml: string): string {
  return placeholders.reduce((text, [placeholder, value]) => text.replaceAll(placeholder, () => value), yaml);
}

/** Whether a manifest of the kind stands behind a client: `kubectl apply` sends them in this order. */
function followsClient(kind: string, yaml: string): boolean {
  const kinds = [...yaml.matchAll(/^kind: (\w+)/gm)].map(([, name = '']) => name);
  return kinds.includes('OAuthClient') && kinds.lastIndexOf(kind) > kinds.indexOf('OAuthClient');
}

const examples = globSync('examples/**/*.yaml', { cwd: root }).toSorted();
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');

it.each([
  ...manifests.map(([name, , yaml]) => [name, yaml] as const),
  ...examples.map((file) => [file, textOf(file)] as const),
])('%s → policies and resources come before the clients that are refused without them', (_, yaml) => {
  expect(['ClientPolicy', 'ProtectedResource'].filter((kind) => followsClient(kind, yaml))).toEqual([]);
});

it.each([...new Set(examples.map(dirname))])('the files of %s → policies come first', (folder) => {
  const files = examples.filter((file) => dirname(file) === folder);
  expect(followsClient('ClientPolicy', files.map(textOf).join('\n'))).toBe(false);
});

it.each(manifests)('grantry check accepts %s', async (_, _document, yaml) => {
  const { code, output } = await checkFiles([filledIn(yaml)]);
  expect(output).toContain('no faults');
  expect(code).toBe(0);
});

it.each([...new Set(manifests.map(([, document]) => document))])(
  'the manifests of %s can stand in one folder',
  async (page) => {
    const ofPage = manifests.filter(([, document]) => document === page);
    const { output } = await checkFiles(ofPage.map(([, , yaml]) => filledIn(yaml)));
    expect(output).toContain('no faults');
  },
);

it('each manifest of the guide to identity providers is one of the examples', () => {
  const folder = join(root, 'crds/examples/valid');
  const examples = globSync('identity-provider-*.yaml', { cwd: folder }).map((file) =>
    readFileSync(join(folder, file), 'utf8').replaceAll(/^#.*\n/gm, ''),
  );
  const page = 'docs/guides/upstream-sign-in.md';
  const shown = manifests.filter(([, document]) => document === page).map(([, , yaml]) => yaml);
  expect(shown.filter((yaml) => !examples.some((example) => isBeginOf(example, yaml)))).toEqual([]);
  expect(examples.filter((example) => !shown.some((yaml) => isBeginOf(example, yaml)))).toEqual([]);
});

/** Whether a text is all documents of a file, or the first ones. */
function isBeginOf(file: string, text: string): boolean {
  return file === text || file.startsWith(`${text}---\n`);
}

it.each(['machine-client', 'web-app', 'native-app', 'people', 'consumers', 'dpop', 'upstream-sign-in'])(
  'the guide %s opens with the command that serves its manifests',
  (name) => {
    const [opening = ''] = readFileSync(join(root, `docs/guides/${name}.md`), 'utf8').split('\n## ');
    expect(opening).toContain('`grantry dev FOLDER`');
  },
);

it.each(placeholders)('%s stands in a manifest and is refused there', async (placeholder) => {
  const holding = manifests.filter(([, , yaml]) => yaml.includes(placeholder));
  expect(holding).not.toEqual([]);
  for (const [, , yaml] of holding) expect((await checkFiles([yaml])).code).toBe(1);
});

/** What `grantry check` says to a folder of these files. Not in a thread: a hundred that strip types crash Node at times. */
async function checkFiles(files: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-documents-'));
  try {
    for (const [index, yaml] of files.entries()) writeFileSync(join(folder, `shown-${index}.yaml`), yaml);
    const { code, stdout } = await checkPaths({
      paths: [folder],
      format: 'text',
      policies: undefined,
      strict: false,
      namespace: undefined,
      stdin: '',
      now: Date.now(),
    });
    return { code, output: stdout };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
