// `grantry check`: reports what the cluster would report about manifests, before they are committed. It runs the same
// judge offline: objects that the files do not contain (Secrets, ConfigMaps, ServiceAccounts) are assumed to exist, and
// listed.

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

/** Checks and prints. @returns 0; 1 when there is a fault; 2 when a path cannot be found */
export async function check({ paths, format, policies, stdin, stdout, stderr }: CheckOptions): Promise<number> {
  const folders: FolderContents[] = [];
  const names: string[] = [];
  for (const path of [...paths, ...(policies === undefined ? [] : [policies])]) {
    const contents = path === STDIN ? await readStdin(stdin) : await readFolder(path);
    const missing = contents.faults.find(({ place, reason }) => place.file === path && reason === 'Unreadable');
    if (missing !== undefined) {
      stderr.write(`${printable(`grantry check: ${path}: ${missing.message}`)}\n`);
      return 2;
    }
    folders.push(contents);
    names.push(path === STDIN ? STDIN_NAME : path);
  }
  const result = await verdictsOn(folders);
  // Otherwise a misspelt glob or a wrong folder would pass the check, in every format.
  for (const index of result.emptyFolders) {
    stderr.write(`${printable(`grantry check: warning: ${names[index]}: no manifests found`)}\n`);
  }
  stdout.write(WRITERS[format](result));
  return result.faults.length === 0 ? 0 : 1;
}

async function readStdin(stdin: NodeJS.ReadableStream): Promise<FolderContents> {
  const files = new Map([[STDIN_NAME, Buffer.from(await text(stdin))]]);
  return { files, directories: new Set(), faults: [] };
}

interface CheckResult extends ManifestVerdicts {
  readonly waiting: readonly Waiting[];
  /** The indexes of the folders that contain no manifest file. */
  readonly emptyFolders: readonly number[];
}

/**
 * As strict as kubectl. Objects that the folders do not contain are assumed to exist; installs of every class are
 * checked.
 */
async function verdictsOn(folders: readonly FolderContents[]): Promise<CheckResult> {
  const set = await new ManifestFolder().update({
    files: new Map(folders.flatMap((folder) => [...folder.files])),
    directories: new Set(),
    faults: folders.flatMap((folder) => folder.faults),
  });
  const verdicts = await judgeManifests(set, {
    unknownFields: 'refuse',
    classes: 'every',
    releaseNamespace: undefined,
    defaultPolicy: 'Baseline',
    references: { verifiersOf: () => 'assumed', assumeMissing: true },
    programmed: { status: 'True', reason: 'NotObserved', message: 'Checked offline.' },
  });
  return {
    ...verdicts,
    waiting: waitingClients(verdicts.clients, set.objects),
    emptyFolders: set.ignoredKinds.length > 0 ? [] : emptyFolders(folders, set),
  };
}

function emptyFolders(folders: readonly FolderContents[], { objects, faults }: ManifestSet): readonly number[] {
  const speaking = new Set([...objects, ...faults].map(({ place }) => place.file));
  return [...folders.entries()]
    .filter(([, folder]) => folder.faults.length === 0 && ![...folder.files.keys()].some((file) => speaking.has(file)))
    .map(([index]) => index);
}

const WRITERS: Readonly<Record<CheckFormat, (result: CheckResult) => string>> = {
  text: (result) => {
    const lines = result.faults.map(({ place, reason, message }) => `${formatPlace(place)}: ${reason}: ${message}`);
    for (const kind of result.passedOver) lines.push(`(passed over: ${kind})`);
    lines.push(...result.waiting.map((waiting) => `${waiting.clientId} ${waitsFor(waiting)}`));
    const { clients, keys, policies } = numbersOf(result);
    const seen = `${count(clients, 'client')}, ${count(keys, 'signing key')}, ${count(policies, 'policy', 'policies')}`;
    lines.push(`${seen}: ${result.faults.length === 0 ? 'no faults' : count(result.faults.length, 'fault')}.`);
    return `${lines.map(printable).join('\n')}\n`;
  },
  json: (result) => {
    const faults = result.faults.map(({ place, reason, message }) => ({ ...place, reason, message }));
    const waiting = result.waiting.map(({ clientId, kind, namespace, name }) => ({ clientId, kind, namespace, name }));
    const answer = { faults, waiting, checked: numbersOf(result), ignoredKinds: result.passedOver };
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

function numbersOf({ clients, keys, policies }: ManifestVerdicts) {
  return { clients: clients.length, keys: keys.length, policies: policies.length };
}

function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

// The escapes of workflow commands. Line breaks are escaped already (printable.ts).
function command(value: string): string {
  return printable(value).replaceAll('%', '%25');
}

function property(value: string): string {
  return command(value).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
