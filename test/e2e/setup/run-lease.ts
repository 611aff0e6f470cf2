// One run at a time in a cluster, held by a Lease. The names of namespaces and clients are the same in every
// run, and each begins by removing what it takes for the leftovers of the one before.

import { hostname } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { find, get, kubectl, run } from './kubectl.ts';

const [KIND, NAMESPACE, NAME] = ['lease', 'default', 'grantry-e2e'] as const;
const SECONDS = 60;
const RENEW_MILLISECONDS = 15_000;
const POLL_MILLISECONDS = 2000;
const ME = `${hostname()}_${process.pid}`;

let renewing: NodeJS.Timeout | undefined;

/**
 * Acquires the Lease until `releaseRunLease`. That of a killed run expires, which this waits for.
 * @throws while another run has it
 */
export async function acquireRunLease(): Promise<void> {
  let before = await find(KIND, NAME, NAMESPACE);
  for (const seen = before?.spec.renewTime; before !== undefined && !isOver(before.spec); ) {
    await setTimeout(POLL_MILLISECONDS);
    before = await find(KIND, NAME, NAMESPACE);
    if (before === undefined || before.spec.renewTime === seen) continue;
    throw new Error(`another run of this suite, ${before.spec.holderIdentity}, uses this cluster just now`);
  }
  // A concurrent run has made it, or changed its version: then this write fails.
  if (before === undefined) await write('create');
  else await write('replace', before.metadata);
  renewing = setInterval(
    () => void renew().catch((error: Error) => console.error(error.message)),
    RENEW_MILLISECONDS,
  ).unref();
}

export async function releaseRunLease(): Promise<void> {
  clearInterval(renewing);
  await kubectl('delete', KIND, NAME, '-n', NAMESPACE);
}

async function renew(): Promise<void> {
  await write('replace', (await get(KIND, NAME, NAMESPACE)).metadata);
}

async function write(
  verb: 'create' | 'replace',
  metadata: object = { name: NAME, namespace: NAMESPACE },
): Promise<void> {
  const renewTime = new Date().toISOString().replace('Z', '000Z');
  const spec = { holderIdentity: ME, leaseDurationSeconds: SECONDS, renewTime };
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec };
  await run('kubectl', [verb, '-f', '-'], JSON.stringify(lease));
}

function isOver({ renewTime }: { readonly renewTime: string }): boolean {
  return Date.now() - Date.parse(renewTime) > SECONDS * 1000;
}
