// The AuthenticationConfiguration of the API server in a file that it reads again when it changes, where the cluster has one.

import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { eventually, kubectl } from './kubectl.ts';

/** Undefined where the cluster has none, or none that this machine can write. */
export const ISSUERS_FILE = process.env.GRANTRY_E2E_AUTHENTICATION_CONFIG || undefined;

/** Gives the API server a configuration, and waits until it counts: its metrics have the hash of what it reads. */
export async function configureIssuers(config: object): Promise<void> {
  if (ISSUERS_FILE === undefined) throw new Error('the API server reads its issuers from no file of this machine');
  const text = JSON.stringify(config);
  writeFileSync(ISSUERS_FILE, text);
  const hash = createHash('sha256').update(text).digest('hex');
  const inUse = new RegExp(`^apiserver_authentication_config_controller_last_config_info{.*${hash}.*} 1$`, 'm');
  await eventually('the API server has read its issuers', async () =>
    inUse.test(await kubectl('get', '--raw', '/metrics')),
  );
}

/** Only those of ServiceAccounts and certificates are left. */
export async function forgetIssuers(): Promise<void> {
  await configureIssuers({ apiVersion: 'apiserver.config.k8s.io/v1', kind: 'AuthenticationConfiguration' });
}
