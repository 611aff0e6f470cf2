// `scripts/cluster`: a Kubernetes with one node, to install grantry on. With kind it is kind's; without, on Debian as root,
// it is made of Go modules and Debian's packages, and no image is pulled. Runs on Node 20 and without node_modules.
//
//   scripts/cluster [up]    starts it, unless it runs; prints lines for a shell (`eval "$(scripts/cluster up)"`):
//                           `export KUBECONFIG=…`    the administrator's kubeconfig
//                           `export NODE_ADDRESS=…`  where node ports are reached from this machine
//                           `export KUBECTL=…`       a kubectl of the cluster's version
//                           `export AUTHENTICATION_CONFIG=…`  the file of that flag of the API server, which reads it
//                                                    again when it changes; not with kind
//   scripts/cluster image   builds grantry's image from the checkout and loads it as `grantry:e2e`;
//                           `image X DIR`: from another checkout, as X
//   scripts/cluster load X  loads an image, by its name in the builder's store or from an archive X.tar
//   scripts/cluster tools   fetches Helm and kubectl, for Linux on x86-64, and prints `export PATH=…`, which has them
//   scripts/cluster status  prints what `up` prints; exit code 3 when no cluster is ready
//   scripts/cluster down    ends it, and returns when nothing of it runs or is mounted
//
// Once up, the images `grantry:e2e` (after `image`), `redis:7` and, without kind, `node:24-bookworm-slim` are on the node,
// for pods whose imagePullPolicy is IfNotPresent. Only what is for a shell goes to stdout.

import { helmAndKubectl } from './assets/chart-assets.mjs';
import { cacheFolder } from './cache-folder.mjs';
import { chooseCluster } from './clusters/clusters.mjs';
import { lock } from './lock.mjs';
import { root } from './toolchain.mjs';

const IMAGE = 'grantry:e2e';
const NOT_READY = 3;
const NO_CLUSTER = 'no cluster is ready; scripts/cluster up starts one';
const USAGE = 'usage: scripts/cluster [up | image [NAME FOLDER] | load IMAGE | tools | status | down]';

const COMMANDS = {
  up: {
    async run(cluster) {
      await cluster.up();
      printFacts(cluster);
    },
  },
  image: {
    operands: [0, 2],
    async run(cluster, name = IMAGE, folder = root) {
      await cluster.up();
      await cluster.image(name, folder);
      console.error(`grantry: the cluster has the image ${name}`);
    },
  },
  load: { operands: [1], needsCluster: true, run: (cluster, image) => cluster.load(image) },
  tools: { asks: true, needsNone: true, run: () => console.log(`export PATH=${helmAndKubectl()}:$PATH`) },
  status: { asks: true, needsCluster: true, run: printFacts },
  down: { run: (cluster) => cluster.down() },
};

const [name = 'up', ...operands] = process.argv.slice(2);
const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
if (['help', '--help', '-h'].includes(name)) console.log(USAGE);
else if (command === undefined || !(command.operands ?? [0]).includes(operands.length)) complain(USAGE, 2);
else await runCommand();

async function runCommand() {
  const { cluster, whyNot } = command.needsNone ? {} : chooseCluster();
  if (cluster === undefined && !command.needsNone) return complain(whyNot, 1);
  // Two runs at once would start the same programs twice; who only asks need not wait.
  const unlock = command.asks ? undefined : await lock(cacheFolder('grantry-cluster', 'lock'), 'another run is at it');
  try {
    if (command.needsCluster && !cluster.isReady()) complain(NO_CLUSTER, NOT_READY);
    else await command.run(cluster, ...operands);
  } catch (error) {
    complain(error.message, 1);
  } finally {
    unlock?.();
  }
}

function printFacts(cluster) {
  const { kubeconfig, nodeAddress, kubectl, authenticationConfig } = cluster.facts();
  console.log(`export KUBECONFIG=${kubeconfig}\nexport NODE_ADDRESS=${nodeAddress}\nexport KUBECTL=${kubectl}`);
  if (authenticationConfig !== undefined) console.log(`export AUTHENTICATION_CONFIG=${authenticationConfig}`);
}

function complain(message, exitCode) {
  console.error(`grantry: ${message}`);
  process.exitCode = exitCode;
}
