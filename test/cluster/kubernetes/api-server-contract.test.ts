// The contract of the API server in memory, on a real one.

import { afterAll } from 'vitest';
import { ApiClient } from '../../../src/kubernetes/api/api-client.ts';
import { kubeconfigAccess } from '../../../src/kubernetes/api/kubeconfig.ts';
import type { NewObject, ObjectPlace } from '../../../src/kubernetes/api/kubernetes-api.ts';
import {
  apiVersionOf,
  type KubernetesObject,
  type Resource,
  resourcePath,
} from '../../../src/kubernetes/objects/resources.ts';
import { apiServerContract } from '../../model/api-server/api-server-contract.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const cluster = sharedCluster();
const clock = { now: () => Date.now() };
const access = kubeconfigAccess({ files: [cluster.adminKubeconfig], clock });
const api = new ApiClient({ access, userAgent: 'grantry/test' });

afterAll(() => api.close());

async function call(method: string, path: string, body: object, contentType?: string): Promise<KubernetesObject> {
  const answer = await cluster.call(method, `${path}?fieldManager=test${contentType === APPLY ? '&force=true' : ''}`, {
    body,
    ...(contentType !== undefined && { contentType }),
  });
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.body.message}`);
  return answer.body;
}

const APPLY = 'application/apply-patch+yaml';

function whole(resource: Resource, object: NewObject): object {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
}

apiServerContract('of Kubernetes', async () => ({
  api,
  other: {
    apply: (resource, object) => call('PATCH', resourcePath(resource, object.metadata), whole(resource, object), APPLY),
    merge: (resource: Resource, place: ObjectPlace, patch: object) =>
      call('PATCH', resourcePath(resource, place), patch),
    create: (resource, object) => {
      const { namespace } = object.metadata;
      return call('POST', resourcePath(resource, { namespace }), whole(resource, object));
    },
  },
  namespace: await cluster.namespace(),
}));
