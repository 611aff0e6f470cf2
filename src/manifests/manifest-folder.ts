// The objects of a folder of manifests over time: every object once, the last good state of a file that is broken now,
// and the faults to show. folder.ts and folder-watch.ts read and watch the disk; `admission/` admits the objects.

import { join } from 'node:path';
import { CLIENT_POLICY } from '../admission/kinds/client-policy.ts';
import type { FieldPath } from '../admission/kinds/field-path.ts';
import { IDENTITY_PROVIDER } from '../admission/kinds/identity-provider.ts';
import { readManifest } from '../admission/kinds/manifest.ts';
import { OAUTH_CLIENT } from '../admission/kinds/oauth-client.ts';
import { PROTECTED_RESOURCE } from '../admission/kinds/protected-resource.ts';
import { SIGNING_KEY } from '../admission/kinds/signing-key.ts';
import { FileReader } from './file-reader.ts';
import type { FolderContents } from './folder.ts';
import { type FileObjects, type ManifestObject, readObjects } from './objects.ts';
import { placeIn } from './outline.ts';
import { formatPlace, type ManifestFault, type Place } from './place.ts';

const SCHEMAS = {
  OAuthClient: OAUTH_CLIENT,
  ProtectedResource: PROTECTED_RESOURCE,
  IdentityProvider: IDENTITY_PROVIDER,
  SigningKey: SIGNING_KEY,
  ClientPolicy: CLIENT_POLICY,
} as const;

/** The objects and faults of one scan of a folder. */
export interface ManifestSet {
  /** In path order, each kind, namespace and name once; `createdAt` orders them by age. */
  readonly objects: readonly ManifestObject[];
  /** Faults of files and objects. The objects of a file named here may be those of an earlier, good state. */
  readonly faults: readonly ManifestFault[];
  /** Unknown fields: ignored here as by a server, though kubectl would refuse them. */
  readonly warnings: readonly ManifestFault[];
  /** `apiVersion/Kind` of objects that were ignored, each once. */
  readonly ignoredKinds: readonly string[];
  /** Every file that exists. */
  readonly files: readonly string[];
  /** Files that are broken now and whose last good state is used. */
  readonly staleFiles: readonly string[];
  /** Files with a list of users instead of objects. */
  readonly userFiles: readonly UserFile[];
}

/** A file as `grantry server` reads its users from. */
export interface UserFile {
  /** The whole file. */
  readonly text: string;
  /** The place of a field of its list. */
  readonly locate: (path: FieldPath) => Place;
}

interface FileState {
  /** Undefined while it cannot be read. */
  readonly bytes: Buffer | undefined;
  readonly read: FileObjects;
  readonly warnings: readonly ManifestFault[];
  /**
   * The used objects: those of the last state without fault, or the valid ones of a file that never was without fault.
   */
  readonly kept: readonly ManifestObject[];
  readonly good: boolean;
}

const NOTHING: FileObjects = { objects: [], faults: [], ignoredKinds: [], userList: undefined };

/** The most faults of one file that are shown: comparing and printing thousands would be slow. */
const MAX_FAULTS = 100;
const MAX_IGNORED_KINDS = 100;

// Objects without a creationTimestamp are younger than any with one, in path order.
const AFTER_ALL_TIMES = 8.64e15;

/** Keeps the files of one folder from scan to scan. */
export class ManifestFolder {
  readonly #reader = new FileReader();
  #files = new Map<string, FileState>();

  /** Applies a scan of the folder and returns its objects. One call at a time; never rejects. */
  async update(contents: FolderContents): Promise<ManifestSet> {
    const files = new Map<string, FileState>();
    for (const [file, bytes] of contents.files) files.set(file, await this.#file(file, bytes));
    await this.#reader.close();
    // A file that exists and cannot be read, or lies in an unreadable folder, is broken and not deleted.
    for (const [file, before] of this.#files) {
      const isUnreadable = contents.faults.some(
        ({ place }) => file === place.file || file.startsWith(join(place.file, '/')),
      );
      if (isUnreadable && !files.has(file)) files.set(file, { ...before, read: NOTHING, bytes: undefined });
    }
    this.#files = files;
    const states = [...files.values()];
    const { objects, faults } = distinct(states.flatMap((state) => state.kept));
    return {
      objects,
      faults: [...contents.faults, ...states.flatMap((state) => state.read.faults), ...faults],
      warnings: states.flatMap((state) => state.warnings),
      ignoredKinds: [...new Set(states.flatMap((state) => state.read.ignoredKinds))],
      files: [...files.keys()],
      staleFiles: [...files].flatMap(([file, state]) => (state.kept === state.read.objects ? [] : [file])),
      userFiles: states.flatMap(userFileOf),
    };
  }

  async #file(file: string, bytes: Buffer): Promise<FileState> {
    const before = this.#files.get(file);
    if (before?.bytes?.equals(bytes)) return before;
    const parsed = readObjects(await this.#reader.read(file, bytes));
    const shapeFaults = parsed.objects.flatMap((object) => shapeFaultsOf(object, 'ignore'));
    const read: FileObjects = {
      objects: parsed.objects,
      faults: bounded(file, [...parsed.faults, ...shapeFaults]),
      ignoredKinds: parsed.ignoredKinds.slice(0, MAX_IGNORED_KINDS),
      userList: parsed.userList,
    };
    const good = read.faults.length === 0;
    if (!good && before?.good) return { ...before, bytes, read };
    // A malformed object that never was valid stays in the set: admission refuses it by name.
    const warnings = bounded(file, read.objects.flatMap(unknownFieldsOf));
    return { bytes, read, warnings, kept: read.objects, good };
  }
}

function userFileOf({ bytes, read: { userList } }: FileState): UserFile | readonly [] {
  if (bytes === undefined || userList === undefined) return [];
  return { text: bytes.toString(), locate: (path) => placeIn(userList, path) };
}

/** The fields in which an object of a grantry kind violates its schema; with `refuse`, unknown fields too. */
function shapeFaultsOf(object: ManifestObject, unknownFields: 'refuse' | 'ignore'): readonly ManifestFault[] {
  const { kind } = object;
  if (!Object.hasOwn(SCHEMAS, kind)) return [];
  return readManifest<unknown>(SCHEMAS[kind as keyof typeof SCHEMAS][unknownFields], object.manifest).faults.map(
    (fault) => ({
      place: object.locate(fault.path),
      reason: fault.reason,
      message: fault.message,
    }),
  );
}

/** The fields that do not exist, also of an object with other faults. */
function unknownFieldsOf(object: ManifestObject): readonly ManifestFault[] {
  const known = new Set(shapeFaultsOf(object, 'ignore').map(({ place }) => formatPlace(place)));
  return shapeFaultsOf(object, 'refuse').filter(({ place }) => !known.has(formatPlace(place)));
}

/** The first of many faults, and how many more there are. */
function bounded(file: string, faults: readonly ManifestFault[]): readonly ManifestFault[] {
  if (faults.length <= MAX_FAULTS) return faults;
  const place = { file, document: undefined, line: undefined, field: undefined };
  const message = `There are ${faults.length - MAX_FAULTS} more in this file.`;
  return [...faults.slice(0, MAX_FAULTS), { place, reason: 'TooManyFaults', message }];
}

/**
 * Removes duplicates by kind, namespace and name, or by uid: the first object is kept, and the fault names both places.
 * A uid that is derived from a name belongs to that name only, even if another object claims it in an earlier file.
 */
function distinct(candidates: readonly ManifestObject[]): Pick<ManifestSet, 'objects' | 'faults'> {
  const owners = new Map(candidates.map((object) => [object.derivedUid, object]));
  const seen = new Map<string, ManifestObject>();
  const objects: ManifestObject[] = [];
  const faults: ManifestFault[] = [];
  for (const object of candidates) {
    const name = nameOf(object);
    const owner = owners.get(object.uid);
    const claimed = owner === undefined || nameOf(owner) === name ? undefined : owner;
    const first = seen.get(name) ?? claimed ?? seen.get(object.uid);
    if (first !== undefined) {
      const isName = seen.has(name);
      const what = isName ? `${object.kind} ${object.name}` : `The uid of ${object.kind} ${object.name}`;
      const message = `${what} is given twice; the one at ${formatPlace(first.place)} counts.`;
      const place = isName ? object.place : object.locate(['metadata', 'uid']);
      faults.push({ place, reason: 'DuplicateObject', message });
      continue;
    }
    seen.set(name, object).set(object.uid, object);
    objects.push({ ...object, createdAt: object.creationTime ?? AFTER_ALL_TIMES + objects.length });
  }
  return { objects, faults };
}

function nameOf({ kind, namespace, name }: ManifestObject): string {
  return `${kind}/${namespace}/${name}`;
}
