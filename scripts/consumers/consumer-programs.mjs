// The programs that tests sign in to through grantry, and a provider that grantry signs people in by, as others run them: built or installed at the first use, into our cache
// where they are ours to keep. By itself: `node scripts/consumers/consumer-programs.mjs NAME` prints on stdout what the program
// is started by, and everything else on stderr.

import { fileURLToPath } from 'node:url';
import { installGo } from '../apt.mjs';
import { kubernetesAssets } from '../kubernetes-assets.mjs';
import { apache } from './apache.mjs';
import { builtProgram } from './go-programs.mjs';
import { springBoot } from './spring-boot.mjs';

/** How each is had; each answers what the program is started by, or throws a sentence. */
const PROGRAMS = {
  dex: goProgram('dex', 'github.com/dexidp/dex/cmd/dex'),
  'go-oidc': goProgram('go-oidc', '.'),
  kubelogin: goProgram('kubelogin', 'github.com/int128/kubelogin'),
  'oauth2-proxy': goProgram('oauth2-proxy', 'github.com/oauth2-proxy/oauth2-proxy/v7'),
  'spring-boot': springBoot,
  apache,
  kubernetes,
  'argo-cd': goProgram('argo-cd', '.'),
};

function goProgram(name, source) {
  return () => builtProgram({ name, source });
}

/** The folder with kube-apiserver, etcd and kubectl. */
async function kubernetes() {
  const { folder, missing } = await kubernetesAssets({ installGo });
  if (folder === undefined) throw new Error(missing);
  return folder;
}

/** Their names. */
export const CONSUMER_PROGRAMS = Object.keys(PROGRAMS);

/** What a program is started by. @throws a sentence where it cannot be had */
export async function consumerProgram(name) {
  const find = PROGRAMS[name];
  if (find === undefined) throw new Error(`it is none of ${CONSUMER_PROGRAMS.join(', ')}`);
  return await find();
}

const [, script, name] = process.argv;
if (script === fileURLToPath(import.meta.url)) {
  try {
    console.log(await consumerProgram(name));
  } catch (error) {
    console.error(`grantry: ${name} cannot be had: ${error.message}`);
    process.exitCode = 1;
  }
}
