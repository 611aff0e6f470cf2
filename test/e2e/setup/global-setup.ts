// Before the first story: what an earlier run left is removed, and grantry is installed by the commands that README prints.

import type { TestProject } from 'vitest/node';
import { diagnose, forgetResults } from './diagnosis.ts';
import { deleteNamespaces, find, kubectl, OURS, outcomeOf, RESTRICTED, run } from './kubectl.ts';
import { readmeCommands } from './printed.ts';
import { acquireRunLease, releaseRunLease } from './run-lease.ts';
import { sharedInstall } from './shared-install.ts';

/** In the words of Helm 3 and 4. */
const ANY_STATE = ['--deployed', '--failed', '--pending', '--uninstalling'];
const EXAMPLES = 'examples/quickstart/';

export async function setup(project: TestProject): Promise<void> {
  forgetResults();
  await acquireRunLease();
  try {
    await removeEverything();
    await installAsPrinted(project);
  } catch (error) {
    await releaseRunLease();
    throw error;
  }
}

async function installAsPrinted(project: TestProject): Promise<void> {
  const { namespace } = sharedInstall;
  if ((await find('namespace', namespace)) !== undefined) {
    throw new Error(`the namespace ${namespace} is there already, and no run of this suite has made it`);
  }
  const [, install = '', apply = ''] = readmeCommands().install;
  try {
    const began = performance.now();
    await run('bash', ['-c', [install, otherImages()].filter(Boolean).join(' ')]);
    project.provide('installSeconds', (performance.now() - began) / 1000);
    await run('bash', ['-c', apply]);
  } catch (error) {
    await diagnose('install');
    throw error;
  } finally {
    await outcomeOf('kubectl', ['label', 'namespace', namespace, OURS]);
  }
  // The API server checks the running pods, and warns of those that it would no longer admit.
  const { errors } = await outcomeOf('kubectl', ['label', 'namespace', namespace, RESTRICTED]);
  project.provide('notRestricted', errors);
}

export async function teardown(): Promise<void> {
  if (process.env.GRANTRY_E2E_KEEP !== 'yes') await removeEverything();
  await releaseRunLease();
}

/** In a cluster that cannot have the image README names. */
function otherImages(): string {
  const { GRANTRY_E2E_IMAGE: grantry, GRANTRY_E2E_REDIS_IMAGE: redis } = process.env;
  const set = (prefix: string, image: string) => {
    const [, repository, tag] = image.match(/^(.*):([^:/]+)$/) ?? [];
    return `--set ${prefix}.repository=${repository} --set ${prefix}.tag=${tag}`;
  };
  return [grantry && set('image', grantry), redis && set('redis.dev.image', redis)].filter(Boolean).join(' ');
}

/** Everything that stories made. CustomResourceDefinitions stay: with them would go what others have of their kinds. */
async function removeEverything(): Promise<void> {
  const namespaces = (await kubectl('get', 'namespaces', '-l', OURS, '-o', 'name')).split('\n').filter(Boolean);
  const names = namespaces.map((name) => name.replace('namespace/', ''));
  for (const namespace of names) {
    const releases = (await run('helm', ['list', '-n', namespace, '--short', ...ANY_STATE]))
      .split('\n')
      .filter(Boolean);
    for (const release of releases) await run('helm', ['uninstall', release, '-n', namespace]);
  }
  if (names.length > 0) await deleteNamespaces(...names);
  // Where the kinds do not exist yet there is nothing to delete either.
  await outcomeOf('kubectl', ['delete', '--ignore-not-found', '-f', EXAMPLES]);
  await outcomeOf('kubectl', ['delete', 'clientpolicies,clusterrolebindings', '-l', OURS]);
}
