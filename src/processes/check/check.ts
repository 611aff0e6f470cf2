// What `grantry check` prints: what the cluster would report about manifests, before they are committed. It runs the
// rules of the cluster, offline: objects that the files do not contain (Secrets, ConfigMaps, ServiceAccounts) are
// assumed to exist, and the output lists them as what a client waits for. check-in-thread.ts is the command.

import { type ManifestVerdicts, validateManifests } from '../../folder-registry/manifest-verdicts.ts';
import { type Waiting, waitingClients } from '../../folder-registry/waiting-clients.ts';
import { type FolderContents, readFolder } from '../../manifests/folder.ts';
import { ManifestFolder, type ManifestSet } from '../../manifests/manifest-folder.ts';
import { formatPlace, type ManifestFault, type Place } from '../../manifests/place.ts';
import { CLIENT_AUTH_METHODS } from '../../oauth/client-auth/index.ts';
import { printable } from '../log/printable.ts';

/** The spellings of `--format`. */
export type CheckFormat = 'text' | 'json' | 'github';

/** Plain data: it passes between threads. */
export interface CheckInput {
  /** Files, folders, and `-` for standard input. */
  readonly paths: readonly string[];
  readonly format: CheckFormat;
  /** A folder with the ClientPolicies and Namespaces of the cluster, when they are not among `paths`. */
  readonly policies: string | undefined;
  /** The release namespace; undefined where it is not known. */
  readonly namespace: string | undefined;
  /** Whether a warning fails the check as well. */
  readonly strict: boolean;
  /** What standard input held; empty when it is not among `paths`. */
  readonly stdin: string;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** Plain data: it passes between threads. */
export interface CheckReport {
  readonly stdout: string;
  readonly stderr: string;
  /** 0; 1 when there is a fault, or a warning with `--strict`; 2 when a path cannot be found. */
  readonly code: number;
}

const STDIN = '-';
const STDIN_NAME = '<stdin>';

/** Reads and checks the paths. Takes as long as it takes: the caller limits its time. */
export async function checkPaths({
  paths,
  format,
  policies,
  stdin,
  strict,
  ...place
}: CheckInput): Promise<CheckReport> {
  const folders: FolderContents[] = [];
  const names: string[] = [];
  for (const path of [...paths, ...(policies === undefined ? [] : [policies])]) {
    const contents = path === STDIN ? contentsOfStdin(stdin) : await readFolder(path);
    const missing = contents.faults.find(({ place, reason }) => place.file === path && reason === 'Unreadable');
    if (missing !== undefined) {
      return { stdout: '', stderr: `${logLine(`grantry check: ${path}: ${missing.message}`)}\n`, code: 2 };
    }
    folders.push(contents);
    names.push(path === STDIN ? STDIN_NAME : path);
  }
  const result = await verdictsOn(folders, place);
  // Without this warning a misspelt glob or a wrong folder would pass the check unnoticed, in every format.
  const warnings = result.emptySources.map((index) =>
    logLine(`grantry check: warning: ${names[index]}: no manifests found`),
  );
  const isWarned = warnings.length > 0 || result.advisories.length > 0;
  return {
    stdout: FORMATTERS[format](result),
    stderr: warnings.map((line) => `${line}\n`).join(''),
    code: result.faults.length === 0 && !(strict && isWarned) ? 0 : 1,
  };
}

/** The report of a check that was ended: one fault, at the first path. @param limit what it exceeded */
export function endedCheck({ paths, format }: CheckInput, limit: string): CheckReport {
  const message = `The check was ended at its limit (${limit}): check fewer files at once.`;
  const [path = ''] = paths;
  const place = { file: path === STDIN ? STDIN_NAME : path, document: undefined, line: undefined, field: undefined };
  return {
    stdout: FORMATTERS[format]({ ...NOTHING, faults: [{ place, reason: 'TooLarge', message }] }),
    stderr: '',
    code: 1,
  };
}

function contentsOfStdin(text: string): FolderContents {
  return { files: new Map([[STDIN_NAME, Buffer.from(text)]]), directories: new Set(), faults: [] };
}

interface CheckResult extends ManifestVerdicts {
  readonly waiting: readonly Waiting[];
  /** The indexes of the folders that contain no manifest file. */
  readonly emptySources: readonly number[];
}

const NOTHING: CheckResult = {
  clients: [],
  keys: [],
  policies: [],
  resources: [],
  providers: [],
  grants: new Map(),
  namespaces: new Map(),
  faults: [],
  warnings: [],
  advisories: [],
  ignoredKinds: [],
  files: [],
  staleFiles: [],
  userLists: [],
  userCount: 0,
  waiting: [],
  emptySources: [],
};

/**
 * Validates the manifests of all folders together, for every class; unknown fields are faults, as in kubectl. Objects that
 * the folders do not contain are assumed to exist.
 */
async function verdictsOn(
  folders: readonly FolderContents[],
  { namespace, now }: Pick<CheckInput, 'namespace' | 'now'>,
): Promise<CheckResult> {
  const set = await new ManifestFolder().update({
    files: new Map(folders.flatMap((folder) => [...folder.files])),
    directories: new Set(),
    faults: folders.flatMap((folder) => folder.faults),
  });
  const verdicts = await validateManifests(set, {
    issuer: undefined,
    // Whether an install has mutual TLS is not known: it is assumed.
    supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
    unknownFields: 'refuse',
    now,
    classes: 'every',
    releaseNamespace: namespace,
    reservedNamespace: namespace,
    defaultPolicy: 'Baseline',
    references: { verifiersOf: () => 'assumed', assumeMissing: true },
    programmed: { status: 'True', reason: 'NotObserved', message: 'Checked offline.' },
    reachable: { status: 'Unknown', reason: 'NotObserved', message: 'Checked offline.' },
    userFiles: 'check',
  });
  return {
    ...verdicts,
    waiting: waitingClients(verdicts.clients, set.objects),
    emptySources: set.ignoredKinds.length > 0 ? [] : emptySources(folders, set),
  };
}

function emptySources(
  folders: readonly FolderContents[],
  { objects, faults, userFiles }: ManifestSet,
): readonly number[] {
  const places = [...[...objects, ...faults].map(({ place }) => place), ...userFiles.map(({ locate }) => locate([]))];
  const filesWithContent = new Set(places.map(({ file }) => file));
  return [...folders.entries()]
    .filter(
      ([, folder]) =>
        folder.faults.length === 0 && ![...folder.files.keys()].some((file) => filesWithContent.has(file)),
    )
    .map(([index]) => index);
}

const FORMATTERS: Readonly<Record<CheckFormat, (result: CheckResult) => string>> = {
  text: (result) => {
    const lines = result.faults.map(({ place, reason, message }) => `${formatPlace(place)}: ${reason}: ${message}`);
    lines.push(
      ...result.advisories.map(({ place, reason, message }) => `${formatPlace(place)}: warning: ${reason}: ${message}`),
    );
    for (const kind of result.ignoredKinds) lines.push(`(ignored kind: ${kind})`);
    lines.push(...result.waiting.map((waiting) => `${waiting.clientId} ${waitsFor(waiting)}`));
    const { clients, keys, policies, resources, providers, users } = checkedCounts(result);
    const kinds = `${count(clients, 'client')}, ${count(keys, 'signing key')}, ${count(policies, 'policy', 'policies')}`;
    const seen = [
      kinds,
      ...(resources === 0 ? [] : [count(resources, 'resource')]),
      ...(providers === 0 ? [] : [count(providers, 'identity provider')]),
      ...(users === 0 ? [] : [count(users, 'user')]),
    ].join(', ');
    const { length: warnings } = result.advisories;
    const faults = result.faults.length === 0 ? 'no faults' : count(result.faults.length, 'fault');
    lines.push(`${seen}: ${faults}${warnings === 0 ? '' : `, ${count(warnings, 'warning')}`}.`);
    return `${lines.map(logLine).join('\n')}\n`;
  },
  json: (result) => {
    const flat = ({ place, reason, message }: ManifestFault) => ({ ...place, reason, message });
    const faults = result.faults.map(flat);
    const warnings = result.advisories.map(flat);
    const waiting = result.waiting.map(({ clientId, kind, namespace, name }) => ({ clientId, kind, namespace, name }));
    const answer = { faults, warnings, waiting, checked: checkedCounts(result), ignoredKinds: result.ignoredKinds };
    return `${JSON.stringify(answer, undefined, 2).replace(ANYWHERE, '#\\u0023')}\n`;
  },
  github: ({ faults, advisories, waiting }) =>
    [
      ...faults.map((fault) => annotation('error', fault)),
      ...advisories.map((fault) => annotation('warning', fault)),
      ...waiting.map((one) => workflowCommand('notice', one.place, 'Waiting', `${one.clientId} ${waitsFor(one)}`)),
    ].join(''),
};

function annotation(name: 'error' | 'warning', { place, reason, message }: ManifestFault): string {
  const field = place.field === undefined ? '' : `${place.field}: `;
  return workflowCommand(name, place, reason, field + message);
}

function workflowCommand(
  name: 'error' | 'warning' | 'notice',
  { file, line }: Place,
  title: string,
  message: string,
): string {
  const where = line === undefined ? '' : `,line=${line}`;
  return `::${name} file=${property(file)}${where},title=${property(title)}::${command(message)}\n`;
}

function waitsFor({ kind, name }: Waiting): string {
  return `waits for the ${kind} ${JSON.stringify(name)}`;
}

function checkedCounts({ clients, keys, policies, resources, providers, userCount }: ManifestVerdicts) {
  return {
    clients: clients.length,
    keys: keys.length,
    policies: policies.length,
    resources: resources.length,
    providers: providers.length,
    users: userCount,
  };
}

function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** Begins a command to GitHub's runner (`##[`) or Azure's agent (`##vso[`) wherever it stands in a line. */
const ANYWHERE = /##(?=\w*\[)/g;

/** A line that no CI takes for a command; lines begin with a place, which `formatPlace` keeps from beginning one. */
function logLine(text: string): string {
  return printable(text).replace(ANYWHERE, '#\\u{23}');
}

// The escapes of workflow commands; `printable` escapes line breaks.
function command(value: string): string {
  return printable(value).replaceAll('%', '%25');
}

function property(value: string): string {
  return command(value).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
