// The archive of an image with one program, read by `tar` as a container runtime reads it. That pods start from one is proven by
// the suite on a whole Kubernetes (test/e2e/).

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';

const { writeProgramImage }: { writeProgramImage: (folder: string, image: object) => string } = await import(
  join(import.meta.dirname, '../../scripts/consumers/program-image.mjs')
);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'grantry-program-image-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function unpack(archive: string, name: string): string {
  const into = join(folder, name);
  mkdirSync(into);
  execFileSync('tar', ['--extract', '--file', archive, '--directory', into]);
  return into;
}

it('given a program → an image of that name with one layer, which has the program for a user without rights', () => {
  const path = join(folder, 'proxy-1a2b');
  writeFileSync(path, '#!/bin/sh\n', { mode: 0o600 });
  const made = join(folder, 'made');
  mkdirSync(made);
  const archive = writeProgramImage(made, { name: 'example.com/proxy:v1', program: 'proxy', path });

  const image = unpack(archive, 'image');
  const [manifest] = JSON.parse(readFileSync(join(image, 'manifest.json'), 'utf8'));
  expect(manifest.RepoTags).toEqual(['example.com/proxy:v1']);
  const layer = join(image, manifest.Layers[0]);
  const { config, rootfs } = JSON.parse(readFileSync(join(image, manifest.Config), 'utf8'));
  expect(config).toEqual({ Entrypoint: ['/bin/proxy'], User: '65532:65532' });
  expect(rootfs.diff_ids).toEqual([`sha256:${createHash('sha256').update(readFileSync(layer)).digest('hex')}`]);
  const listed = execFileSync('tar', ['--list', '--verbose', '--numeric-owner', '--file', layer], { encoding: 'utf8' });
  expect(listed).toMatch(/^-rwxr-xr-x 0\/0 .* bin\/proxy$/m);
  expect(readFileSync(join(unpack(layer, 'layer'), 'bin/proxy'), 'utf8')).toBe('#!/bin/sh\n');
});
