// Pods of tests: they run a file of pods/ with the image under test, which has a Node, as the restricted Pod Security
// standard wants it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubernetesObject } from './kubectl.ts';
import { apply } from './kubectl.ts';

/** The image that is tested. */
export const IMAGE = process.env.GRANTRY_E2E_IMAGE ?? 'grantry:e2e';

export interface ScriptOptions {
  readonly namespace: string;
  readonly name: string;
  /** A file of pods/. */
  readonly script:
    | 'traffic.mts'
    | 'get-token.mts'
    | 'account-api.mts'
    | 'call-api.mts'
    | 'tls-front.mts'
    | 'echo-headers.mts';
  /** Mounted at /client; of a pod that needs none undefined. */
  readonly secretName?: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** As much of the spec of a pod as tests read; the rest is as the API server has it. */
export interface PodSpec {
  readonly containers: readonly [
    {
      readonly env: readonly { readonly name: string; readonly value: string }[];
      readonly volumeMounts: readonly object[];
      readonly [field: string]: unknown;
    },
  ];
  readonly volumes: readonly object[];
  readonly [field: string]: unknown;
}

/** Puts a script where its pod finds it. @returns the spec of a pod that runs it once */
export async function scriptPod(options: ScriptOptions): Promise<PodSpec> {
  const { namespace, name, script, secretName, environment } = options;
  await apply(configMap(namespace, name, script));
  return {
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 1,
    securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'script',
        image: IMAGE,
        imagePullPolicy: 'IfNotPresent',
        command: ['node', `/script/${script}`],
        // As much as a token server asks for: what is measured is not to be the time that this pod waits for a core.
        resources: { requests: { cpu: '250m' } },
        env: Object.entries(environment).map(([key, value]) => ({ name: key, value })),
        securityContext: {
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
          readOnlyRootFilesystem: true,
        },
        volumeMounts: [
          { name: 'script', mountPath: '/script' },
          ...(secretName === undefined ? [] : [{ name: 'client', mountPath: '/client', readOnly: true }]),
        ],
      },
    ],
    volumes: [
      { name: 'script', configMap: { name } },
      ...(secretName === undefined ? [] : [{ name: 'client', secret: { secretName } }]),
    ],
  };
}

function configMap(namespace: string, name: string, script: string): KubernetesObject {
  const text = readFileSync(join(import.meta.dirname, 'pods', script), 'utf8');
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data: { [script]: text } };
}
