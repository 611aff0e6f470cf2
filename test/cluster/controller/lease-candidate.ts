// A process that takes part in an election and does nothing but say when it would write: `<epoch ms> write`, each 20 ms.
// Arguments: kubeconfig, namespace of the Lease, identity. SIGTERM ends it in order.

import { setInterval } from 'node:timers';
import { type Leadership, LeaseElector } from '../../../src/controller/leadership/lease.ts';
import { ApiClient } from '../../../src/kubernetes/api/api-client.ts';
import { kubeconfigAccess } from '../../../src/kubernetes/api/kubeconfig.ts';
import { systemClock, systemRandom } from '../../../src/processes/lifecycle/machine.ts';

const [kubeconfig = '', namespace = '', identity = ''] = process.argv.slice(2);
const say = (word: string) => console.log(`${Date.now()} ${word}`);
const api = new ApiClient({
  access: kubeconfigAccess({ files: [kubeconfig], clock: systemClock }),
  userAgent: 'grantry/test',
});
let leadership: Leadership | undefined;
const elector = new LeaseElector({
  api,
  namespace,
  name: 'election',
  identity,
  clock: systemClock,
  random: systemRandom,
  log: { info: () => {}, warn: () => {} },
  onStartedLeading: (started) => {
    leadership = started;
    say('started');
  },
  onStoppedLeading: () => say('stopped'),
});
elector.start();

const writing = setInterval(() => {
  try {
    leadership?.assertHeld();
    if (leadership !== undefined) say('write');
  } catch {
    leadership = undefined;
    say('lost');
  }
}, 20);

process.once('SIGTERM', async () => {
  clearInterval(writing);
  await elector.stop();
  process.exit();
});
// The process that started it is gone.
process.stdin.resume().on('end', () => process.exit());
