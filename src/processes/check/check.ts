// `grantry check`: reports what the cluster would report about manifests, before they are committed. It runs the judge
// of the cluster, offline: objects that the files do not contain (Secrets, ConfigMaps, ServiceAccounts) are assumed to
// exist, and the output lists them as what a client waits for.

import { text } from 'node:stream/consumers';
import { type FolderContents, readFolder } from '../../manifests/folder.ts';
import { ManifestFolder, type ManifestSet } from '../../manifests/manifest-folder.ts';
import { formatPlace, type Place } from '../../manifests/place.ts';
import { printable } from '../log/printable.ts';
import { type Waiting, waitingClients } from './check-waiting.ts';
import { judgeManifests, type ManifestVerdicts } from './manifest-verdicts.ts';

/** The spellings of `--format`. */
export type CheckFormat = 'text' | 'json' | 'github';

export interface CheckOptions {
  /** Files, folders, and `-` for standard input. */
  readonly paths: readonly string[];
  readonly format: CheckFormat;
  /** A folder with the ClientPolicies and Namespaces of the cluster, when they are not among `paths`. */
  readonly policies: string | undefined;
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

const STDIN = '-';
const STDIN_NAME = '<stdin>';

/** Checks and prints. @returns the exit code: 0 without faults, 1 with faults, 2 when a given path cannot be read */
export async function check({ paths, format, policies, stdin, stdout, stderr }: CheckOptions): Promise<number> {
  const sources: FolderContents[] = [];
  const names: string[] = [];
  for (const path of [...paths, ...(policies === undefined ? [] : [policies])]) {
    const contents = path === STDIN ? await readStdin(stdin) : await readFolder(path);
    const missing = contents.faults.find(({ place, reason }) => place.file === path && reason === 'Unreadable');
    if (missing !== undefined) {
      stderr.write(`${printable(`grantry check: ${path}: ${missing.message}`)}\n`);
      return 2;
    }
    sources.push(contents);
    names.push(path === STDIN ? STDIN_NAME : path);
  }
  const result = await verdictsOn(sources);
  // Without this warning a misspelt glob or a wrong folder would pass the check unnoticed, in every format.
  for (const index of result.emptySources) {
    stderr.write(`${printable(`grantry check: warning: ${names[index]}: no manifests found`)}\n`);
  }
  stdout.write(FORMATTERS[format](result));
  return result.faults.length === 0 ? 0 : 1;
}

async function readStdin(stdin: NodeJS.ReadableStream): Promise<FolderContents> {
  const files = new Map([[STDIN_NAME, Buffer.from(await text(stdin))]]);
  return { files, directories: new Set(), faults: [] };
}

interface CheckResult extends ManifestVerdicts {
  readonly waiting: readonly Waiting[];
  /** The indexes of the sources that contain no manifests. */
  readonly emptySources: readonly number[];
}

/** Judges the manifests of all sources together. */
async function verdictsOn(sources: readonly FolderContents[]): Promise<CheckResult> {
  const set = await new ManifestFolder().update({
    files: new Map(sources.flatMap((source) => [...source.files])),
    directories: new Set(),
    faults: sources.flatMap((source) => source.faults),
  });
  const verdicts = await judgeManifests(set, {
    // Unknown fields are faults, as in kubectl.
    unknownFields: 'refuse',
    // Manifests for every class are checked.
    classes: 'every',
    // Offline, the release namespace is not known: SigningKeys are accepted in every namespace.
    releaseNamespace: undefined,
    // For namespaces that no ClientPolicy among the sources matches.
    defaultPolicy: 'Baseline',
    // Generated secrets and referenced objects that are not among the sources are assumed to exist.
    references: { verifiersOf: () => 'assumed', assumeMissing: true },
    // Offline, the check asks no replica whether it serves a client.
    programmed: { status: 'True', reason: 'NotObserved', message: 'Checked offline.' },
  });
  return {
    ...verdicts,
    waiting: waitingClients(verdicts.clients, set.objects),
    // Ignored kinds are not known by source: with one of them, a source without objects may hold only ignored kinds.
    emptySources: set.ignoredKinds.length > 0 ? [] : emptySources(sources, set),
  };
}

function emptySources(sources: readonly FolderContents[], { objects, faults }: ManifestSet): readonly number[] {
  const filesWithContent = new Set([...objects, ...faults].map(({ place }) => place.file));
  return [...sources.entries()]
    .filter(
      ([, source]) =>
        source.faults.length === 0 && ![...source.files.keys()].some((file) => filesWithContent.has(file)),
    )
    .map(([index]) => index);
}

const FORMATTERS: Readonly<Record<CheckFormat, (result: CheckResult) => string>> = {
  text: (result) => {
    const lines = result.faults.map(({ place, reason, message }) => `${formatPlace(place)}: ${reason}: ${message}`);
    for (const kind of result.ignoredKinds) lines.push(`(ignored kind: ${kind})`);
    lines.push(...result.waiting.map((waiting) => `${waiting.clientId} ${waitsFor(waiting)}`));
    const { clients, keys, policies } = checkedCounts(result);
    const seen = `${count(clients, 'client')}, ${count(keys, 'signing key')}, ${count(policies, 'policy', 'policies')}`;
    lines.push(`${seen}: ${result.faults.length === 0 ? 'no faults' : count(result.faults.length, 'fault')}.`);
    return `${lines.map(printable).join('\n')}\n`;
  },
  json: (result) => {
    const faults = result.faults.map(({ place, reason, message }) => ({ ...place, reason, message }));
    const waiting = result.waiting.map(({ clientId, kind, namespace, name }) => ({ clientId, kind, namespace, name }));
    const answer = { faults, waiting, checked: checkedCounts(result), ignoredKinds: result.ignoredKinds };
    return `${JSON.stringify(answer, undefined, 2)}\n`;
  },
  github: ({ faults, waiting }) =>
    [
      ...faults.map(({ place, reason, message }) => {
        const field = place.field === undefined ? '' : `${place.field}: `;
        return workflowCommand('error', place, reason, field + message);
      }),
      ...waiting.map((one) => workflowCommand('notice', one.place, 'Waiting', `${one.clientId} ${waitsFor(one)}`)),
    ].join(''),
};

function workflowCommand(name: 'error' | 'notice', { file, line }: Place, title: string, message: string): string {
  const where = line === undefined ? '' : `,line=${line}`;
  return `::${name} file=${property(file)}${where},title=${property(title)}::${command(message)}\n`;
}

function waitsFor({ kind, name }: Waiting): string {
  return `waits for the ${kind} ${JSON.stringify(name)}`;
}

function checkedCounts({ clients, keys, policies }: ManifestVerdicts) {
  return { clients: clients.length, keys: keys.length, policies: policies.length };
}

function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

// The escapes of workflow commands; `printable` escapes line breaks.
function command(value: string): string {
  return printable(value).replaceAll('%', '%25');
}

function property(value: string): string {
  return command(value).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
