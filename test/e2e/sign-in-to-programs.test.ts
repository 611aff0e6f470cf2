// The guide on programs that sign people in on a whole Kubernetes: oauth2-proxy in a pod, and kubectl at the API server of the
// cluster by kubelogin. Manifests and settings are those of examples/consumers/.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { KUBELOGIN_ADDRESS, kubeloginUser } from '../consumers/setup/kubectl-user.ts';
import { freePort } from '../free-port.ts';
import { succeeds } from '../until.ts';
import { IdentityInstall } from './setup/identity-install.ts';
import { configureIssuers, forgetIssuers, ISSUERS_FILE } from './setup/issuers-file.ts';
import {
  apply,
  eventually,
  get,
  type KubernetesObject,
  kubectl,
  OURS,
  type Outcome,
  outcomeOf,
  waitReady,
} from './setup/kubectl.ts';
import { scriptPod } from './setup/pods.ts';

/** Those of the examples. */
const [WIKI, PLATFORM] = ['wiki', 'platform'] as const;
const WIKI_ADDRESS = 'https://wiki.example.com';

const kubeloginAddress = `http://localhost:${await freePort()}`;
const install = new IdentityInstall({ [KUBELOGIN_ADDRESS]: kubeloginAddress });

beforeAll(() => install.start([{ shown: WIKI_ADDRESS, upstream: `http://wiki-proxy.${WIKI}` }]));
afterAll(() => install.remove());

describe('oauth2-proxy in a pod', () => {
  const named = (name: string) => ({ namespace: WIKI, name });

  /** What the proxy protects: a page that answers with the headers of a request. */
  async function startWiki(): Promise<void> {
    const labels = { app: 'wiki' };
    const spec = await scriptPod({ ...named('wiki'), script: 'echo-headers.mts', environment: { PORT: '8080' } });
    await apply(
      { apiVersion: 'v1', kind: 'Pod', metadata: { ...named('wiki'), labels }, spec },
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: named('wiki'),
        spec: { selector: labels, ports: [{ port: 80, targetPort: 8080 }] },
      },
    );
    await waitReady(WIKI, 'pod/wiki');
  }

  /** That of the example; it trusts the authority of the ingress. */
  async function startProxy(): Promise<void> {
    const [key, mountPath] = ['ca.crt', '/authority'];
    const data = { [key]: install.authority.certificate };
    await apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: named('authority'), data });
    const [deployment] = install.objects('oauth2-proxy/oauth2-proxy.yaml') as [KubernetesObject];
    const pod = deployment.spec.template.spec;
    const [container] = pod.containers;
    container.env.push({ name: 'SSL_CERT_FILE', value: `${mountPath}/${key}` });
    container.volumeMounts = [{ name: 'authority', mountPath }];
    pod.volumes = [{ name: 'authority', configMap: { name: 'authority' } }];
    await apply(deployment);
    await kubectl('-n', WIKI, 'expose', 'deployment', 'wiki-proxy', '--port=80', '--target-port=4180');
    await kubectl('rollout', 'status', '-n', WIKI, 'deployment/wiki-proxy', '--timeout=120s');
    await install.untilAnswers(`${install.address(WIKI_ADDRESS)}/ping`);
  }

  it('has its Secret with the keys of its preset', async () => {
    await install.createNamespace(WIKI, 'baseline');
    await apply(...install.objects('oauth2-proxy/client.yaml'));
    await waitReady(WIKI, 'oauthclient/wiki-proxy');
    const { data } = await get('secret', 'wiki-proxy-oauth', WIKI);
    expect(Object.keys(data).sort()).toEqual(['client-id', 'client-secret', 'cookie-secret', 'issuer-url']);
    expect(Buffer.from(data['issuer-url'], 'base64').toString()).toBe(install.issuer);
  });

  it('given a sign-in → the page has name, address and groups; signed out → asked again', async () => {
    await startWiki();
    await startProxy();
    const [visitor, address] = [install.newVisitor(), install.address(WIKI_ADDRESS)];
    expect(await visitor.json(`${address}/`)).toMatchObject({
      'x-forwarded-preferred-username': 'ada',
      'x-forwarded-email': 'ada@example.com',
      'x-forwarded-groups': 'editors',
    });
    expect(visitor.signIns).toBe(1);
    await visitor.visit(`${address}/oauth2/sign_out`);
    await visitor.visit(`${address}/`);
    expect(visitor.signIns).toBe(2);
  });
});

describe.skipIf(ISSUERS_FILE === undefined)('kubectl by kubelogin, at an API server with a file of issuers', () => {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-e2e-'));
  const kubeconfig = join(folder, 'kubeconfig');

  // Before the issuer ends.
  afterAll(async () => {
    rmSync(folder, { recursive: true });
    await forgetIssuers();
  });

  /** The AuthenticationConfiguration of the example, with the authority of the ingress. */
  function authentication(): object {
    const shown = parse(install.file('kubernetes/authentication-config.yaml')) as {
      readonly jwt: readonly { readonly issuer: object }[];
    };
    const certificateAuthority = install.authority.certificate;
    return { ...shown, jwt: shown.jwt.map((each) => ({ ...each, issuer: { ...each.issuer, certificateAuthority } })) };
  }

  /** That of the example, beside the one of the cluster. */
  function writeKubeconfig(): void {
    const { certificateFile } = install.authority;
    const place = { program: 'kubelogin', address: kubeloginAddress, tokens: join(folder, 'tokens'), certificateFile };
    const user = kubeloginUser(install.file('kubernetes/kubeconfig.yaml'), place);
    const config = { apiVersion: 'v1', kind: 'Config', users: [{ name: 'grantry', user }] };
    writeFileSync(kubeconfig, JSON.stringify(config));
  }

  /** kubectl as the person. */
  async function asPerson(...args: readonly string[]): Promise<Outcome> {
    const both = [process.env.KUBECONFIG, kubeconfig].join(delimiter);
    return await outcomeOf('env', [`KUBECONFIG=${both}`, 'kubectl', '--user=grantry', ...args]);
  }

  /** What the API server takes the person for, after a sign-in at kubelogin. */
  async function whoami(): Promise<unknown> {
    let ended: Outcome | undefined;
    const asked = asPerson('auth', 'whoami', '-o', 'json').then((outcome) => {
      ended = outcome;
      return outcome;
    });
    await eventually('kubelogin listens', async () => {
      if (ended !== undefined) throw new Error(`kubectl has ended: ${ended.errors}`);
      return await succeeds(fetch(kubeloginAddress, { redirect: 'manual' }));
    });
    await install.newVisitor().visit(kubeloginAddress);
    const { code, output, errors } = await asked;
    if (code !== 0) throw new Error(`kubectl auth whoami: ${errors}`);
    return (JSON.parse(output) as { status: { userInfo: unknown } }).status.userInfo;
  }

  it('given a sign-in → the API server knows subject, groups and name', async () => {
    await install.createNamespace(PLATFORM);
    await apply(...install.objects('kubernetes/client.yaml'));
    await waitReady(PLATFORM, 'oauthclient/kubectl');
    await configureIssuers(authentication());
    writeKubeconfig();
    expect(await whoami()).toMatchObject({
      username: expect.stringMatching(/^grantry:.+/),
      groups: expect.arrayContaining(['grantry:editors', 'system:authenticated']),
      extra: { 'grantry.dev/name': ['Ada Lovelace'] },
    });
  });

  it('given a role of a group → what was forbidden before is allowed', async () => {
    const listPods = () => asPerson('get', 'pods', '-n', PLATFORM);
    expect(await listPods()).toMatchObject({ code: 1, errors: expect.stringContaining('Forbidden') });
    const binding = ['clusterrolebinding', 'e2e-editors'];
    await kubectl('delete', ...binding, '--ignore-not-found');
    await kubectl('create', ...binding, '--clusterrole=edit', '--group=grantry:editors');
    await kubectl('label', ...binding, OURS);
    await eventually('the role counts', async () => (await listPods()).code === 0);
  });
});
