// examples/consumers/: each client is accepted, alone and beside all others, and belongs to the program beside it; and the pages
// that show the files show them as they are.

import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { checkPaths } from '../../src/processes/check/check.ts';

const ROOT = join(import.meta.dirname, '../..');
const FOLDER = join(ROOT, 'examples/consumers');
const PROGRAMS = ['apache', 'argo-cd', 'grafana', 'kubernetes', 'oauth2-proxy', 'spring-boot'];
const clients = globSync('*/client.yaml', { cwd: FOLDER }).toSorted();

interface ShownClient {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: { readonly scopes: readonly string[] };
}

/** What `grantry check` prints of these files, without a cluster. */
async function checked(files: readonly string[]): Promise<string> {
  const paths = files.map((file) => join(FOLDER, file));
  return (
    await checkPaths({
      paths,
      format: 'text',
      policies: undefined,
      namespace: undefined,
      strict: false,
      stdin: '',
      now: Date.now(),
    })
  ).stdout;
}

/** The OAuthClient of a file, and the other files of its folder in one text. */
function example(file: string) {
  const manifests = parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8'));
  const client = manifests.find((manifest) => manifest.get('kind') === 'OAuthClient')?.toJS() as ShownClient;
  const others = globSync(`${dirname(file)}/*`, { cwd: FOLDER, exclude: (name) => name.endsWith('client.yaml') });
  return { client, settings: others.map((name) => readFileSync(join(FOLDER, name), 'utf8')).join('\n') };
}

it('there is a client for each program', () => {
  expect(clients.map((file) => dirname(file))).toEqual(PROGRAMS);
});

it('all clients together → no faults', async () => {
  expect(await checked(clients)).toContain('6 clients, 0 signing keys, 6 policies: no faults.');
});

describe.each(clients)('%s', (file) => {
  it('alone → no faults', async () => {
    expect(await checked([file])).toContain('1 client, 0 signing keys, 1 policy: no faults.');
  });

  it('has settings that ask for its scopes, and name its id or its Secret', () => {
    const { client, settings } = example(file);
    expect(client.spec.scopes).toEqual(['openid', 'profile', 'email', 'groups']);
    if (!settings.includes('envFromSecret')) expect(settings).toMatch(/profile,? ?email,? ?groups/);
    const { name, namespace } = client.metadata;
    const named = [`${namespace}\\.${name}`, `${name}-oauth`, 'OIDC_CLIENT_ID', 'oauth\\.client-id'];
    expect(settings).toMatch(new RegExp(named.join('|')));
  });
});

/** The blocks of a text in other languages than the shell's, each with the file that the line before it links to. */
function shownBlocks(text: string): readonly { readonly file: string | undefined; readonly block: string }[] {
  return [...text.matchAll(/([^\n]*)\n\n```(?!sh\n)\w*\n(.*?)```/gs)].map(([, line = '', block = '']) => {
    const [, file] = /\]\((?:\.\.\/)*examples\/consumers\/([\w./-]+\.\w+)\)[^\n]*:$/.exec(line) ?? [];
    return { file, block };
  });
}

describe('docs/guides/consumers.md', () => {
  const blocks = shownBlocks(readFileSync(join(ROOT, 'docs/guides/consumers.md'), 'utf8'));

  it('shows the files as they are', () => {
    for (const { file, block } of blocks) {
      if (file !== undefined) expect(block).toBe(readFileSync(join(FOLDER, file), 'utf8'));
    }
  });

  it('shows all files', () => {
    const files = globSync('**/*.{yaml,conf}', { cwd: FOLDER });
    expect(blocks.flatMap(({ file = [] }) => file).toSorted()).toEqual(files.toSorted());
  });
});
