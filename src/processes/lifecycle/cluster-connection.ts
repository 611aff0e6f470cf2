// The connection of a process to the API server: by the ServiceAccount of its pod, or by kubeconfig.

import { readFileSync } from 'node:fs';
import { ApiClient } from '../../kubernetes/api/api-client.ts';
import type { CallsOptions } from '../../kubernetes/api/calls.ts';
import { type ClusterAccess, inClusterAccess } from '../../kubernetes/api/cluster-access.ts';
import type { ClusterPlace } from '../config/cluster-config.ts';
import { StartError } from '../config/start-error.ts';
import { systemClock } from './machine.ts';

/** A client of the API server; it sends no request yet. @throws StartError for an unusable kubeconfig */
export async function connectCluster(
  place: ClusterPlace,
  limits: Pick<CallsOptions, 'callLimit'> = {},
): Promise<ApiClient> {
  return new ApiClient({ ...limits, access: await clusterAccess(place), userAgent: `grantry/${version()}` });
}

async function clusterAccess(place: ClusterPlace): Promise<ClusterAccess> {
  if (place.kind === 'pod') return inClusterAccess({ ...place, clock: systemClock });
  // Imported only outside a pod.
  const { kubeconfigAccess } = await import('../../kubernetes/api/kubeconfig.ts');
  try {
    return kubeconfigAccess({ files: place.files, clock: systemClock });
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    throw new StartError(`no cluster: ${fault}; name a kubeconfig with KUBECONFIG, or run in a pod`, 2);
  }
}

function version(): string {
  const file = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(file) as { readonly version: string }).version;
}
