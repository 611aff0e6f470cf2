// Stand-ins for the base images, made of Debian's and npm's packages and of programs from Go modules. Each behaves as the
// image it stands for where grantry and its chart rely on it.

import { chmodSync, chownSync, copyFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COREDNS_VERSION } from '../kubernetes-assets.mjs';
import { call } from './processes.mjs';
import { inScratchFolder } from './scratch-folder.mjs';

export const PAUSE_IMAGE = 'pause:cluster-stand-in';
/** With its version: the store outlives a change of it. */
export const COREDNS_IMAGE = `coredns:v${COREDNS_VERSION}`;
const DEBIAN = 'debian:cluster-stand-in';
const REDIS_COMMAND = ['--entrypoint', '["docker-entrypoint.sh"]', '--cmd', '["redis-server"]'];
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/**
 * Each image, what it is built on, what comes on top (`fill` puts it into a folder), and how it is run; those that stand only
 * below others are not for the node. `programs` has the path of each program by its name.
 */
export function baseImages(programs) {
  const place = (name) => (folder) => {
    copyFileSync(programs[name], join(folder, name));
    chmodSync(join(folder, name), 0o755);
  };
  return [
    {
      name: PAUSE_IMAGE,
      fill: place('pause'),
      config: ['--entrypoint', '["/pause"]', '--user', '65535:65535'],
    },
    { name: COREDNS_IMAGE, fill: place('coredns'), config: ['--entrypoint', '["/coredns"]'] },
    { name: DEBIAN, fill: fillDebian, config: ['--cmd', '["bash"]'], onNode: false },
    {
      name: 'node:24-bookworm-slim',
      from: DEBIAN,
      fill: fillNode,
      // Behind a proxy that signs with a certificate of its own, npm trusts what the machine trusts.
      config: ['--cmd', '["node"]', '--env', `NODE_EXTRA_CA_CERTS=${CERTIFICATES}`],
    },
    {
      name: 'redis:7',
      from: DEBIAN,
      fill: fillRedis,
      config: [...REDIS_COMMAND, '--workingdir', '/data', '--port', '6379'],
    },
  ];
}

/** A minimal Debian of this machine's release, from where its own packages come, with a Redis server. */
function fillDebian(folder) {
  const sources = call('apt-get', ['indextargets', '--format', '$(REPO_URI) $(CODENAME)', 'Created-By: Packages']);
  const [mirror, release] = sources.split('\n', 1)[0].split(' ');
  const archive = `${folder}.tar`;
  const noManuals = ['doc', 'info', 'man', 'locale'].map((name) => `--dpkgopt=path-exclude=/usr/share/${name}/*`);
  const packages = '--include=ca-certificates,redis-server';
  const source = `deb ${mirror} ${release} main`;
  call('mmdebstrap', ['--quiet', '--mode=root', '--variant=minbase', packages, ...noManuals, release, archive, source]);
  call('tar', ['--extract', '--file', archive, '--directory', folder, '--exclude=./dev/*']);
  rmSync(archive);
}

function fillNode(folder) {
  const [binaries, npm] = [join(folder, 'usr/local/bin'), join(folder, 'usr/local/lib/node_modules/npm')];
  const certificates = join(folder, 'etc/ssl/certs');
  for (const path of [binaries, npm, certificates]) mkdirSync(path, { recursive: true });
  unpackFromNpm(`node-linux-${process.arch}@24`, binaries, ['--strip-components=2', 'package/bin/node']);
  unpackFromNpm('npm@11', npm, ['--strip-components=1']);
  for (const name of ['npm', 'npx']) symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(binaries, name));
  copyFileSync(CERTIFICATES, join(folder, CERTIFICATES));
}

/** What users of the image rely on: options alone are for the server, which is not in protected mode. */
function fillRedis(folder) {
  const [binaries, data] = [join(folder, 'usr/local/bin'), join(folder, 'data')];
  for (const path of [binaries, data]) mkdirSync(path, { recursive: true });
  // The user of the image that this one stands for.
  chownSync(data, 999, 999);
  const scripts = {
    'docker-entrypoint.sh': 'case "$1" in -*) set -- redis-server "$@" ;; esac\nexec "$@"',
    'redis-server': 'exec /usr/bin/redis-server "$@" --protected-mode no',
  };
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(binaries, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  }
}

function unpackFromNpm(name, folder, options) {
  inScratchFolder((scratch) => {
    const file = call('npm', ['pack', name, '--silent', '--pack-destination', scratch]).trim().split('\n').at(-1);
    call('tar', ['--extract', '--gzip', '--file', join(scratch, file), '--directory', folder, ...options]);
  });
}
