// A folder of manifests in memory or on disk, and the manifests that tests put into it.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { FolderContents } from '../../src/manifests/folder.ts';
import { ManifestFolder, type ManifestSet } from '../../src/manifests/manifest-folder.ts';

/** A reading of a folder with these texts. */
export function contentsOf(files: Readonly<Record<string, string>>): FolderContents {
  const bytes = Object.entries(files).map(([path, text]) => [path, Buffer.from(text)] as const);
  return { files: new Map(bytes), directories: new Set(), faults: [] };
}

/** What a folder with these texts means at first sight. */
export function manifestsOf(files: Readonly<Record<string, string>>): Promise<ManifestSet> {
  return new ManifestFolder().update(contentsOf(files));
}

/** A client_credentials client as YAML. */
export function machineClient(name: string, extra = ''): string {
  return `apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata:
  name: ${name}
spec:
  grantTypes: [client_credentials]
${extra}`;
}

/** A new folder on disk with these files; parents are made. */
export async function folderOf(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'grantry-test-'));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
}

/** A new folder like that, for the rest of the test. */
export async function folderOfTest(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await folderOf(files);
  onTestFinished(() => removeFolder(folder));
  return folder;
}

export function removeFolder(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true });
}
