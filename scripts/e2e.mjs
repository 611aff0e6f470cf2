// `npm run test:e2e`: the suite in test/e2e/ against a whole Kubernetes. With KUBECONFIG it is that one, which then has the
// image GRANTRY_E2E_IMAGE (default grantry:e2e) or can pull it, and likewise GRANTRY_E2E_REDIS_IMAGE (default redis:7) and
// GRANTRY_E2E_PREVIOUS_IMAGE, which upgrades begin with (default: the image itself).
// Without, the line of README makes one (`scripts/cluster`), and it is ended afterwards unless it was up before or `--keep`
// is said; upgrades begin with the release before, if the clone has its tag. One run at a time: another one of this machine
// is waited for, one of another machine is refused.
// A cluster of the line also gets the image of oauth2-proxy, and its API server takes the issuers of tests from a file. A given
// one pulls that image, and can name such a file, which its API server reads, in GRANTRY_E2E_AUTHENTICATION_CONFIG.
// Helm is the one in HELM, else the newer of those that the chart is tested with. Other arguments go to vitest: `npm run
// test:e2e -- test/e2e/tokens.test.ts`.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { installGo } from './apt.mjs';
import { chartAssets } from './assets/chart-assets.mjs';
import { cacheFolder } from './cache-folder.mjs';
import { chooseCluster } from './clusters/clusters.mjs';
import { consumerProgram } from './consumers/consumer-programs.mjs';
import { writeProgramImage } from './consumers/program-image.mjs';
import { lock } from './lock.mjs';
import { setUpPrograms } from './tests/set-up.mjs';
import { fail, installPackages, modernNode, root, run } from './toolchain.mjs';

const VITEST = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const FIGURES = join(root, 'test-results', 'e2e', 'figures.txt');
const CLUSTER = join(root, 'scripts', 'cluster');
/** As its example names it. */
const OAUTH2_PROXY_IMAGE = 'quay.io/oauth2-proxy/oauth2-proxy:v7.15.3';

installPackages();
const node = modernNode();
const keep = process.argv.includes('--keep');
const filters = process.argv.slice(2).filter((argument) => argument !== '--keep');

const whyNot = process.env.KUBECONFIG ? undefined : chooseCluster().whyNot;
if (whyNot !== undefined) skip(whyNot);
else process.exitCode = await runSuite().catch((error) => fail(error.message));

async function runSuite() {
  const unlock = await lock(cacheFolder('grantry-cluster', 'e2e'), 'another npm run test:e2e is at it');
  // Ctrl-C ends what runs just now; what was started is ended all the same.
  process.on('SIGINT', () => {});
  const wasUp = process.env.KUBECONFIG !== undefined || cluster('status').status === 0;
  try {
    const { kubeconfig, kubectl, previousImage, authenticationConfig } = process.env.KUBECONFIG
      ? givenCluster()
      : await ownCluster();
    const kubelogin = authenticationConfig && { kubelogin: await consumerProgram('kubelogin') };
    const programs = linkPrograms({ kubectl, helm: process.env.HELM || newestHelm(), ...kubelogin });
    try {
      const environment = {
        KUBECONFIG: kubeconfig,
        PATH: [programs, process.env.PATH].join(delimiter),
        ...(keep && { GRANTRY_E2E_KEEP: 'yes' }),
        ...(previousImage && { GRANTRY_E2E_PREVIOUS_IMAGE: previousImage }),
        ...(authenticationConfig && { GRANTRY_E2E_AUTHENTICATION_CONFIG: authenticationConfig }),
      };
      return run(node, [VITEST, 'run', '--project=e2e', ...filters], environment);
    } finally {
      rmSync(programs, { recursive: true });
    }
  } finally {
    if (existsSync(FIGURES)) console.log(`\nFigures:\n${readFileSync(FIGURES, 'utf8').replaceAll(/^(?=.)/gm, '  ')}`);
    if (!wasUp && !keep) cluster('down');
    unlock();
  }
}

function givenCluster() {
  const { KUBECONFIG: kubeconfig, KUBECTL: kubectl = 'kubectl', GRANTRY_E2E_IMAGE: image } = process.env;
  if (image === undefined) {
    console.log(
      'grantry: pods run the image grantry:e2e, which the cluster must have; GRANTRY_E2E_IMAGE names another',
    );
  }
  return { kubeconfig, kubectl, authenticationConfig: process.env.GRANTRY_E2E_AUTHENTICATION_CONFIG };
}

async function ownCluster() {
  // Chromium among them.
  await setUpPrograms();
  const [line] = readFileSync(join(root, 'README.md'), 'utf8').match(/^eval "\$\(scripts\/cluster up\)".*$/m) ?? [];
  if (line === undefined) throw new Error('README.md shows no line that makes a cluster');
  console.log(`grantry: ${line}`);
  // What the line leaves behind in the shell is what people go on with.
  const thenTell = `${line} && "$NODE" --print 'JSON.stringify(process.env)'`;
  const { status, stdout } = spawnSync('bash', ['-c', thenTell], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, NODE: process.execPath },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error('there is no cluster; the reason is above');
  const { KUBECONFIG: kubeconfig, KUBECTL: kubectl, AUTHENTICATION_CONFIG: authenticationConfig } = JSON.parse(stdout);
  await loadOauth2Proxy();
  const previousImage = process.env.GRANTRY_E2E_PREVIOUS_IMAGE || previousRelease();
  return { kubeconfig, kubectl, previousImage, authenticationConfig };
}

/** Gives the cluster the image of oauth2-proxy, which is built of Go modules. */
async function loadOauth2Proxy() {
  const path = await consumerProgram('oauth2-proxy');
  const folder = mkdtempSync(join(tmpdir(), 'grantry-e2e-'));
  try {
    const archive = writeProgramImage(folder, { name: OAUTH2_PROXY_IMAGE, program: 'oauth2-proxy', path });
    if (cluster('load', archive).status !== 0) throw new Error('the cluster did not take the image of oauth2-proxy');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The image of the release before this commit, built and given to the cluster; undefined where the clone has no tag of one. */
function previousRelease() {
  const { status, stdout } = git('describe', '--tags', '--abbrev=0', '--match=v*', 'HEAD^');
  if (status !== 0) return undefined;
  const [tag, folder] = [stdout.trim(), mkdtempSync(join(tmpdir(), 'grantry-e2e-'))];
  const [image, archive] = [`grantry:${tag}`, join(folder, 'checkout.tar')];
  try {
    if (git('archive', '--output', archive, tag).status !== 0) throw new Error(`git has no files of ${tag}`);
    run('tar', ['--extract', '--file', archive, '--directory', folder]);
    if (cluster('image', image, folder).status !== 0)
      throw new Error(`there is no image of ${tag}; the reason is above`);
    return image;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function git(...args) {
  return spawnSync('git', args, { cwd: root, encoding: 'utf8' });
}

function newestHelm() {
  const { folder, missing } = chartAssets({ installGo });
  if (folder === undefined) throw new Error(missing.join('; '));
  return join(folder, 'helm-4.1');
}

/** Runs `scripts/cluster`; what it says to people is seen. */
function cluster(...command) {
  return spawnSync(process.execPath, [`${CLUSTER}.mjs`, ...command], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** A folder for the PATH in which programs have the names that people call them by. */
function linkPrograms(programs) {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-e2e-'));
  for (const [name, path] of Object.entries(programs)) if (path !== name) symlinkSync(path, join(folder, name));
  return folder;
}

function skip(why) {
  const listed = spawnSync(node, [VITEST, 'list', '--project=e2e', ...filters], { cwd: root, encoding: 'utf8' });
  console.log(`Skipped, because ${why}:`);
  for (const name of listed.stdout.split('\n').filter(Boolean)) console.log(`  ${name}`);
}
