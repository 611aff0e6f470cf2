// Assembles what reads the issuer of ServiceAccount tokens from the API server, and logs when that begins to fail or works
// again.

import type { Logger } from 'pino';
import type { ReadinessCheck } from '../../http/admin/admin.ts';
import type { ApiClient } from '../../kubernetes/api/api-client.ts';
import { ApiServerIssuer, type IssuerRead } from '../../kubernetes/api/api-server-issuer.ts';
import { systemClock } from '../lifecycle/machine.ts';

export interface ClusterIssuerOptions {
  readonly api: Pick<ApiClient, 'document'>;
  readonly log: Logger;
}

/** The issuer of the cluster. */
export function assembleClusterIssuer({ api, log }: ClusterIssuerOptions): ApiServerIssuer {
  let before: IssuerRead['outcome'] = 'read';
  return new ApiServerIssuer({
    api,
    clock: systemClock,
    onRead: ({ outcome, error }) => {
      if (outcome !== before && outcome === 'read') log.info('the issuer of ServiceAccount tokens is read again');
      if (outcome !== before && outcome !== 'read') {
        log.warn({ outcome, err: error }, 'the issuer of ServiceAccount tokens cannot be read');
      }
      before = outcome;
    },
  });
}

/** The readiness check of the issuer. It never makes the replica not ready: other clients are served. */
export function clusterIssuerCheck(issuer: ApiServerIssuer): ReadinessCheck {
  return { name: 'cluster issuer', fault: () => issuer.fault, required: false };
}
