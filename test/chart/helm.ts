// Helm as the tests of the chart use it: two versions, each on the chart as it lies here.

import { execFileSync, spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { Manifest } from '../cluster/setup/cluster.ts';

const ROOT = join(import.meta.dirname, '../..');
export const CHART = join(ROOT, 'charts/grantry');

/** Where the programs and the CRDs of others are; fetching them takes some seconds, once. */
export const ASSETS = execFileSync(process.execPath, [join(ROOT, 'scripts/assets/chart-assets.mjs')], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
}).trim();

export const HELMS = ['helm-3.17', 'helm-4.1'] as const;
export type HelmName = (typeof HELMS)[number];

/** The files of ci/ by what they show, such as `minimal`. */
export const CI_VALUES: Readonly<Record<string, string>> = Object.fromEntries(
  globSync('ci/*-values.yaml', { cwd: CHART })
    .sort()
    .map((file) => [basename(file, '-values.yaml'), join(CHART, file)]),
);

/** The least that has to be set. */
export const MINIMAL = ['--set', 'issuer=https://id.example.com', '--set', 'redis.dev.enabled=true'];

export interface HelmResult {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** One Helm, run to its end. @param kubeconfig of the cluster it works on; without it, it sees none */
export async function helm(name: HelmName, args: readonly string[], kubeconfig = '/dev/null'): Promise<HelmResult> {
  // What it learns of a cluster goes where the cluster goes: another one may come at the same address.
  const env = { PATH: process.env.PATH, HOME: dirname(kubeconfig), KUBECONFIG: kubeconfig };
  const child = spawn(join(ASSETS, name), args, { env });
  let [output, errors] = ['', ''];
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  const code = await new Promise<number | null>((resolve, reject) => child.on('close', resolve).on('error', reject));
  return { code, output, errors };
}

interface TemplateOptions {
  readonly name?: HelmName;
  readonly release?: string;
  readonly namespace?: string;
}

/** What a release `grantry` in `grantry-system` would be made of, as text. @throws when the values are refused */
export async function template(
  args: readonly string[],
  { name = 'helm-3.17', release = 'grantry', namespace = 'grantry-system' }: TemplateOptions = {},
): Promise<string> {
  const { code, output, errors } = await helm(name, [
    ...['template', release, CHART, '--namespace', namespace],
    ...args,
  ]);
  if (code !== 0) throw new Error(errors);
  return output;
}

/** The same as objects. */
export async function render(...[args, options]: Parameters<typeof template>): Promise<readonly Manifest[]> {
  return manifests(await template(args, options));
}

/** The objects of a text; those of a List are separated, with its annotations. */
export function manifests(text: string): readonly Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null)
    .flatMap((manifest) => {
      if (manifest.kind !== 'List') return [manifest];
      const { annotations } = manifest.metadata;
      return (manifest.items as Manifest[]).map((item) => ({ ...item, metadata: { ...item.metadata, annotations } }));
    });
}
