// The API server that all suites of a run share: global-setup.ts starts it and provides its address to the workers.

import { inject } from 'vitest';
import type { ApiServerAddress } from './api-server.ts';
import { Cluster } from './cluster.ts';

declare module 'vitest' {
  interface ProvidedContext {
    apiServer: ApiServerAddress;
  }
}

/** One for all suites of a run: each test takes a namespace of its own, and leaves what is cluster-scoped to others. */
export function sharedCluster(): Cluster {
  return new Cluster(inject('apiServer'));
}
