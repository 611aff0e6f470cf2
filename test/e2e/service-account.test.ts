// Clients without any secret: the pod that docs/guides/service-accounts.md shows gets a token of grantry by the token that the
// kubelet mounts, and calls an API, which asks grantry about it as a client of the same kind.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import {
  apply,
  createNamespace,
  deleteNamespaces,
  eventually,
  get,
  type KubernetesObject,
  kubectl,
  list,
  waitReady,
} from './setup/kubectl.ts';
import { type PodSpec, type ScriptOptions, scriptPod } from './setup/pods.ts';
import { ISSUER, sharedInstall } from './setup/shared-install.ts';
import { oauthClient } from './setup/tenants.ts';

/** That of the guide. */
const NAMESPACE = 'reports';
const CALLER = 'reports.nightly-report';
const API_PORT = 8080;

/** The manifests of the guide, for the issuer of the shared install. */
function shown(): readonly KubernetesObject[] {
  const page = readFileSync(join(import.meta.dirname, '../../docs/guides/service-accounts.md'), 'utf8');
  const [, yaml = ''] = /```yaml\n(.*?)```/s.exec(page.replaceAll('https://id.example.com', ISSUER)) ?? [];
  return parseAllDocuments(yaml).map((document) => document.toJS() as KubernetesObject);
}

const [account, client, pod] = shown() as readonly [KubernetesObject, KubernetesObject, KubernetesObject];

/** The pod of the guide as it runs a script, under the account that has the name of the pod. */
async function accountPod(options: Omit<ScriptOptions, 'namespace'>): Promise<KubernetesObject> {
  const { name } = options;
  const script = await scriptPod({ namespace: NAMESPACE, ...options });
  const guide = pod.spec as PodSpec & { readonly automountServiceAccountToken: boolean };
  const [[container], [mounted]] = [script.containers, guide.containers];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: NAMESPACE, name, labels: { app: name } },
    spec: {
      ...script,
      serviceAccountName: name,
      automountServiceAccountToken: guide.automountServiceAccountToken,
      containers: [
        {
          ...container,
          env: [...mounted.env, ...container.env],
          volumeMounts: [...mounted.volumeMounts, ...container.volumeMounts],
        },
      ],
      volumes: [...guide.volumes, ...script.volumes],
    },
  };
}

/** The lines that a pod printed until it ended. */
async function reportOf(name: string): Promise<unknown> {
  await eventually(`pod ${name} ends`, async () => {
    const { status } = await get('pod', name, NAMESPACE);
    return ['Succeeded', 'Failed'].includes(status?.phase);
  });
  const printed = await kubectl('logs', '-n', NAMESPACE, name);
  return JSON.parse(printed.trim().split('\n').at(-1) ?? '');
}

const apiUrl = `http://api.${NAMESPACE}.svc:${API_PORT}/`;

beforeAll(async () => {
  await createNamespace(NAMESPACE);
  await apply(account, client);
  const auth = { method: 'kubernetes_service_account', serviceAccounts: [{ name: 'api' }] };
  await apply(
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: NAMESPACE, name: 'api' } },
    oauthClient(NAMESPACE, 'api', {
      auth,
      grantTypes: [],
      resourceServer: { audiences: [`urn:grantry:ns:${NAMESPACE}:default`] },
    }),
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: NAMESPACE, name: 'api' },
      spec: { selector: { app: 'api' }, ports: [{ port: API_PORT }] },
    },
  );
  await waitReady(NAMESPACE, 'oauthclient/nightly-report', 'oauthclient/api');
});
afterAll(() => deleteNamespaces(NAMESPACE));

it('the pod of the guide gets a token and calls an API that introspects, and its namespace holds no Secret', async () => {
  const api = await accountPod({
    name: 'api',
    script: 'account-api.mts',
    environment: {
      INTROSPECT_URL: `${sharedInstall.url}/introspect`,
      CLIENT_ID: `${NAMESPACE}.api`,
      PORT: String(API_PORT),
    },
  });
  const caller = await accountPod({
    name: 'nightly-report',
    script: 'call-api.mts',
    environment: { TOKEN_URL: sharedInstall.tokenUrl, API_URL: apiUrl, CLIENT_ID: CALLER },
  });
  await apply(api, caller);
  expect(await reportOf('nightly-report')).toEqual({
    status: 200,
    called: { status: 200, text: CALLER },
    calledWithAnother: { status: 401, text: '' },
  });
  expect(await list('secret', NAMESPACE)).toEqual([]);
});

it('a pod of the namespace with another account is refused, whatever client it names', async () => {
  await apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: NAMESPACE, name: 'stranger' } });
  const stranger = await accountPod({
    name: 'stranger',
    script: 'call-api.mts',
    environment: { TOKEN_URL: sharedInstall.tokenUrl, API_URL: apiUrl, CLIENT_ID: CALLER },
  });
  await apply(stranger);
  expect(await reportOf('stranger')).toMatchObject({ status: 401, refusal: { error: 'invalid_client' } });
});
