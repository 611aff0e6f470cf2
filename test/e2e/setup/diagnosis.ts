// The diagnosis of a failed test: a log of CI alone does not show what happened inside the cluster.

import { appendFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OURS, outcomeOf } from './kubectl.ts';

const RESULTS = join(import.meta.dirname, '../../test-results/e2e');
/** What `npm run test:e2e` prints in the end. */
const FIGURES = join(RESULTS, 'figures.txt');

/** What the run before left is not of this one. */
export function forgetResults(): void {
  rmSync(RESULTS, { recursive: true, force: true });
}

/** A measured number that a person should see, such as how long an install took. */
export function figure(sentence: string): void {
  mkdirSync(RESULTS, { recursive: true });
  appendFileSync(FIGURES, `${sentence}\n`);
}

/** Writes what is known of the cluster into a file, and the most useful part of it to the output. */
export async function diagnose(test: string): Promise<void> {
  const overview = await sections([
    ['helm', 'list', '--all-namespaces'],
    ['kubectl', 'get', 'nodes,namespaces', '-o', 'wide'],
    ['kubectl', 'get', 'pods,jobs,services,endpointslices', '--all-namespaces', '-o', 'wide'],
    [
      'kubectl',
      'get',
      'oauthclients,protectedresources,clientpolicies,signingkeys,identityproviders',
      '--all-namespaces',
    ],
    ['kubectl', 'get', 'events', '--all-namespaces', '--sort-by=.metadata.creationTimestamp'],
  ]);
  const { output } = await outcomeOf('kubectl', ['get', 'namespaces', '-l', OURS, '-o', 'name']);
  const namespaces = output.split('\n').flatMap((line) => line.split('/')[1] ?? []);
  const details = await sections(
    namespaces.flatMap((namespace) => [
      ['kubectl', 'describe', 'pods,oauthclients', '-n', namespace],
      ...['--previous=false', '--previous'].map((which) => logsOf(namespace, which)),
    ]),
  );
  mkdirSync(RESULTS, { recursive: true });
  const file = join(RESULTS, `${test.replaceAll(/\W+/g, '-').slice(0, 100)}.txt`);
  writeFileSync(file, `${overview}\n${details}`);
  const logs = await sections(namespaces.map((namespace) => logsOf(namespace, '--previous=false', 15)));
  console.error(`${test}\n${overview}\n${logs}\nAll of it, with logs and descriptions: ${file}`);
}

function logsOf(namespace: string, which: string, tail = 500): readonly string[] {
  const every = ['--selector', 'app.kubernetes.io/instance', '--all-containers', '--prefix', '--max-log-requests=50'];
  return ['kubectl', 'logs', '-n', namespace, ...every, `--tail=${tail}`, which];
}

async function sections(commands: readonly (readonly string[])[]): Promise<string> {
  const parts = commands.map(async ([program = '', ...args]) => {
    const { output, errors } = await outcomeOf(program, args);
    return `== ${program} ${args.join(' ')}\n${output}${errors}`;
  });
  return (await Promise.all(parts)).join('\n');
}
