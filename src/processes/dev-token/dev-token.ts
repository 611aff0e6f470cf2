// `grantry dev-token`: prints the token that the kubelet would mount into a pod of a ServiceAccount, for the `grantry dev` of
// the same folder.

import { DevAccountIssuer, type MintedAccount } from '../../local-state/account-issuer.ts';
import { StateFiles } from '../../local-state/state-files.ts';
import { readFolder } from '../../manifests/folder.ts';
import { ManifestFolder } from '../../manifests/manifest-folder.ts';
import { issuerFault } from '../../oauth/values/issuer.ts';
import { StartError } from '../config/start-error.ts';
import { requireFolder } from '../dev/required-folder.ts';
import { systemClock, systemRandom } from '../lifecycle/machine.ts';
import { runProcess } from '../lifecycle/run-process.ts';

export interface DevTokenOptions {
  /** `namespace/name` of the ServiceAccount. */
  readonly account: string;
  readonly directory: string;
  /** The audience: the issuer of the running `grantry dev`. */
  readonly issuer: string;
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

/** Prints the token. @returns 0; 1 when there is no such ServiceAccount, or no usable `.grantry/`; 2 for wrong usage */
export async function devToken(options: DevTokenOptions): Promise<number> {
  return await runProcess({ command: 'grantry dev-token', stderr: options.stderr }, async () => {
    options.stdout.write(`${await mint(options)}\n`);
    return 0;
  });
}

async function mint({ account, directory, issuer }: DevTokenOptions): Promise<string> {
  const fault = issuerFault(issuer);
  if (fault !== undefined) throw new StartError(`the issuer ${issuer} ${fault}`, 2);
  await requireFolder(directory);
  const found = await findAccount(account, directory);
  const state = await StateFiles.open(directory);
  // A key in the memory of this process alone is not the one of the running server.
  if (state.memoryReason !== undefined) {
    throw new StartError(`${state.path} cannot be written (${state.memoryReason})`, 1);
  }
  const accounts = await DevAccountIssuer.open(state);
  return accounts.mint(found, issuer, { clock: systemClock, random: systemRandom });
}

async function findAccount(account: string, directory: string): Promise<MintedAccount> {
  const [namespace, name, ...more] = account.split('/');
  if (!namespace || !name || more.length > 0) throw new StartError(`${account} is not NAMESPACE/NAME`, 2);
  const { objects } = await new ManifestFolder().update(await readFolder(directory));
  const found = objects.find(
    (object) => object.kind === 'ServiceAccount' && object.namespace === namespace && object.name === name,
  );
  if (found !== undefined) return found;
  throw new StartError(`there is no ServiceAccount ${account} in the manifests of ${directory}`, 1);
}
