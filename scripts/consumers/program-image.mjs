// An image with one program of ours, for clusters that cannot pull it: an archive as `docker save` writes it, which
// `scripts/cluster load` takes, for pods that name the image as its own project does.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ARCHITECTURES = { x64: 'amd64', arm64: 'arm64' };
/** Files of one owner and moment, for an image depends on its program alone. */
const SAME = ['--owner=0', '--group=0', '--mtime=@0'];

/**
 * Writes the archive into a folder. The image starts the program as a user without rights.
 * @param name `repository:tag`
 * @param path that of a program that needs no library
 * @returns the path of the archive
 */
export function writeProgramImage(folder, { name, path, program }) {
  const [content, layer, archive] = ['content', 'layer.tar', 'image.tar'].map((file) => join(folder, file));
  mkdirSync(join(content, 'bin'), { recursive: true });
  copyFileSync(path, join(content, 'bin', program));
  chmodSync(join(content, 'bin', program), 0o755);
  tar(layer, content, ['bin']);
  const config = {
    architecture: ARCHITECTURES[process.arch],
    os: 'linux',
    config: { Entrypoint: [`/bin/${program}`], User: '65532:65532' },
    rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(readFileSync(layer))}`] },
  };
  const manifest = [{ Config: 'config.json', RepoTags: [name], Layers: ['layer.tar'] }];
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
  tar(archive, folder, ['manifest.json', 'config.json', 'layer.tar']);
  return archive;
}

function tar(archive, folder, names) {
  execFileSync('tar', ['--create', ...SAME, '--file', archive, '--directory', folder, ...names]);
}

function sha256(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}
