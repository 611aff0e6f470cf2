// `scripts/cluster`: a Kubernetes with one node, to install grantry on. With kind it is kind's; without, on Debian as root,
// it is made of Go modules and Debian's packages, and no image is pulled. Runs on Node 20 and without node_modules.
//
//   scripts/cluster [up]    starts it, unless it runs; prints lines for a shell (`eval "$(scripts/cluster up)"`):
//                           `export KUBECONFIG=…`    the administrator's kubeconfig
//                           `export NODE_ADDRESS=…`  where node ports are reached from this machine
//                           `export KUBECTL=…`       a kubectl of the cluster's version
//   scripts/cluster image   builds grantry's image from the checkout and loads it as `grantry:e2e`
//   scripts/cluster load X  loads an image, by its name in the builder's store or from an archive X.tar
//   scripts/cluster status  prints what `up` prints; exit code 3 when no cluster is ready
//   scripts/cluster down    ends it, and returns when nothing of it runs or is mounted
//
// Once up, the images `grantry:e2e` (after `image`), `redis:7` and, without kind, `node:24-bookworm-slim` are on the node,
// for pods whose imagePullPolicy is IfNotPresent. Only what is for a shell goes to stdout.

import { cacheFolder } from './cache-folder.mjs';
import { kind } from './kind.mjs';
import { lock } from './lock.mjs';
import { oneNode } from './one-node/node.mjs';

const IMAGE = 'grantry:e2e';
const NOT_READY = 3;
const USAGE = 'usage: scripts/cluster [up | image | load IMAGE | status | down]';

const COMMANDS = {
  up: {
    async run(cluster) {
      await cluster.up();
      printFacts(cluster);
    },
  },
  image: {
    async run(cluster) {
      await cluster.up();
      await cluster.image(IMAGE);
      console.error(`grantry: the cluster has the image ${IMAGE}`);
    },
  },
  load: {
    operands: 1,
    async run(cluster, image) {
      if (!cluster.isReady()) fail('no cluster is ready; start one with scripts/cluster up', NOT_READY);
      await cluster.load(image);
    },
  },
  status: {
    run(cluster) {
      if (!cluster.isReady()) fail('no cluster is ready; start one with scripts/cluster up', NOT_READY);
      printFacts(cluster);
    },
  },
  down: { run: (cluster) => cluster.down() },
};

const [name = 'up', ...operands] = process.argv.slice(2);
const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
if (['help', '--help', '-h'].includes(name)) console.log(USAGE);
else if (command === undefined || operands.length !== (command.operands ?? 0)) fail(USAGE, 2);
else await runCommand();

async function runCommand() {
  const cluster = chooseCluster();
  // Two runs at once would start the same programs twice.
  const unlock = await lock(cacheFolder('grantry-cluster', 'lock'), 'another scripts/cluster runs');
  try {
    await command.run(cluster, ...operands);
  } catch (error) {
    console.error(`grantry: ${error.message}`);
    process.exitCode = 1;
  } finally {
    unlock();
  }
}

/** kind where it is installed; but one of our own that is up stays the one that is meant. */
function chooseCluster() {
  if (oneNode.exists() || kind.whyNot() !== undefined) {
    const why = oneNode.whyNot();
    return why === undefined ? oneNode : fail(`${kind.whyNot()}, and ${why}`, 1);
  }
  return kind;
}

function printFacts(cluster) {
  const { kubeconfig, nodeAddress, kubectl } = cluster.facts();
  console.log(`export KUBECONFIG=${kubeconfig}\nexport NODE_ADDRESS=${nodeAddress}\nexport KUBECTL=${kubectl}`);
}

function fail(message, code) {
  console.error(`grantry: ${message}`);
  process.exit(code);
}
