// `grantry dev-token`: prints the token that the kubelet would mount into a pod of a ServiceAccount, for the `grantry dev` of
// the same folder.

import { readFolder } from '../../manifests/folder.ts';
import { ManifestFolder } from '../../manifests/manifest-folder.ts';
import { DevAccountIssuer } from '../dev/account-issuer.ts';
import { DevState } from '../dev/dev-state.ts';
import { DevStateError } from '../dev/dev-state-error.ts';
import { systemClock, systemRandom } from '../lifecycle/machine.ts';

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
export async function devToken({ account, directory, issuer, stdout, stderr }: DevTokenOptions): Promise<number> {
  const refuse = (message: string, code: number) => {
    stderr.write(`grantry dev-token: ${message}\n`);
    return code;
  };
  const [namespace, name, ...more] = account.split('/');
  if (!namespace || !name || more.length > 0) return refuse(`${account} is not NAMESPACE/NAME`, 2);
  const { objects } = await new ManifestFolder().update(await readFolder(directory));
  const found = objects.find(
    (object) => object.kind === 'ServiceAccount' && object.namespace === namespace && object.name === name,
  );
  if (found === undefined) return refuse(`there is no ServiceAccount ${account} in the manifests of ${directory}`, 1);
  try {
    const state = await DevState.open(directory);
    // A key in the memory of this process alone is not the one of the running server.
    if (state.memoryReason !== undefined) return refuse(`${state.path} cannot be written (${state.memoryReason})`, 1);
    const accounts = await DevAccountIssuer.open(state);
    stdout.write(`${accounts.mint(found, issuer, { clock: systemClock, random: systemRandom })}\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof DevStateError)) throw error;
    return refuse(error.message, 1);
  }
}
