// What Helm makes of the chart, for each values file of charts/grantry/ci. golden/ has the rendering of the least values in full,
// and of the others a diff against it; after a wanted change: `vitest run --project chart -u`.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { REDIS_SECRET } from '../../src/admission/references/secret-parts.ts';
import { readSettings, variableReference } from '../../src/processes/config/config.ts';
import type { Manifest } from '../cluster/setup/cluster.ts';
import { endProcesses, post, startDev } from '../processes/grantry-process.ts';
import { diffOf, patched } from './golden-files.ts';
import { CHART, CI_VALUES, HELMS, helm, MINIMAL, manifests, render, template } from './helm.ts';

afterEach(endProcesses);

const CRDS = join(import.meta.dirname, '../../crds');
const GOLDEN = join(import.meta.dirname, 'golden');
const BASE = 'minimal';
const LONGEST_RELEASE = 'abcdefghij-abcdefghij-abcdefghij-abcdefghij-abcdefghi';

/** Pod templates and pods, with the kind and name of what holds them. */
function pods(objects: readonly Manifest[]): readonly { readonly of: string; readonly spec: PodSpec }[] {
  return objects.flatMap((object) => {
    const of = `${object.kind} ${object.metadata.name}`;
    const { spec } = object as { spec?: { template?: { spec: PodSpec } } };
    if (object.kind === 'Deployment' && spec?.template) return [{ of, spec: spec.template.spec }];
    return object.kind === 'Pod' ? [{ of, spec: spec as unknown as PodSpec }] : [];
  });
}

interface PodSpec {
  readonly serviceAccountName?: string;
  readonly enableServiceLinks?: boolean;
  readonly securityContext?: object;
  readonly terminationGracePeriodSeconds?: number;
  readonly containers: readonly {
    readonly name: string;
    readonly startupProbe?: object;
    readonly livenessProbe?: object;
    readonly securityContext?: object;
    readonly resources?: { readonly requests?: object; readonly limits?: object };
    readonly lifecycle?: object;
    readonly envFrom?: readonly object[];
    readonly volumeMounts?: readonly { readonly name: string }[];
  }[];
}

function hookOf({ annotations }: Manifest['metadata']): string | undefined {
  return (annotations as Readonly<Record<string, string>> | undefined)?.['helm.sh/hook'];
}

interface PolicySpec {
  readonly podSelector: Selector;
  readonly policyTypes: readonly string[];
  readonly ingress: readonly { readonly ports: readonly Port[]; readonly from?: readonly Peer[] }[];
  readonly egress?: readonly { readonly ports: readonly Port[]; readonly to?: readonly Peer[] }[];
}

interface Port {
  readonly port: string | number;
}

interface Peer {
  readonly podSelector?: Selector;
}

interface Selector {
  readonly matchLabels: Readonly<Record<string, string>>;
}

/** The values that docs/guides/proxies.md shows: the heading, what they trust, and how many peers may connect; undefined: any. */
const PROXY_VALUES = [
  ['nginx', '10.42.0.0/16', 1],
  ['nginx', '192.168.10.0/24', 1],
  ['Envoy', '10.42.0.0/16', 1],
  ['Envoy', '10.42.0.0/16', undefined],
  ['ALB', '10.0.0.0/24,10.0.1.0/24', 2],
  ['Azure', '10.225.0.0/24', 1],
  ['A load balancer of layer 4', undefined, undefined],
] as const;

/** Each block of values with the heading that it stands below. */
function proxyBlocks(): readonly (readonly [string, string])[] {
  const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/proxies.md'), 'utf8');
  return guide.split(/^## /m).flatMap((section) => {
    const [heading = ''] = section.split('\n', 1);
    return [...section.matchAll(/```yaml\n(.*?)```/gs)].map(([, values = '']) => [heading, values] as const);
  });
}

type Labels = Readonly<Record<string, string>>;

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-chart-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** What Helm prints after an install. */
async function notes(args: readonly string[]): Promise<string> {
  const { code, output, errors } = await helm('helm-4.1', [
    ...['install', 'grantry', CHART, '--namespace', 'grantry-system', '--dry-run=client'],
    ...args,
  ]);
  expect([code, errors]).toEqual([0, expect.not.stringContaining('Error')]);
  return output.slice(output.indexOf('NOTES:'));
}

/** The CRDs are copies, which test/chart-files.test.ts checks. */
function withoutCrds(rendering: string): string {
  return rendering
    .split(/^---\n/m)
    .filter((document) => !document.includes('kind: CustomResourceDefinition'))
    .join('---\n');
}

const ofKind = (objects: readonly Manifest[], kind: string) => objects.filter((object) => object.kind === kind);

let base: string;

beforeAll(async () => {
  base = withoutCrds(await template(['--values', CI_VALUES[BASE] ?? '']));
});

describe.each(Object.entries(CI_VALUES))('the chart with ci/%s-values.yaml', (show, file) => {
  let rendered: string;

  beforeAll(async () => {
    rendered = await template(['--values', file]);
  });

  it.each(HELMS)('passes the lint of %s', async (name) => {
    const { code, output, errors } = await helm(name, ['lint', '--strict', CHART, '--values', file]);
    expect([code, `${output}${errors}`]).toEqual([0, expect.not.stringMatching(/WARNING|ERROR/)]);
  });

  it('is rendered alike by every Helm, as golden/ has it', async () => {
    expect((await template(['--values', file], { name: 'helm-4.1' })) === rendered).toBe(true);
    const own = withoutCrds(rendered);
    if (show === BASE) return await expect(own).toMatchFileSnapshot(join(GOLDEN, `${show}.yaml`));
    const diff = diffOf(base, own, show);
    expect(patched(base, diff)).toBe(own);
    await expect(diff).toMatchFileSnapshot(join(GOLDEN, `${show}.diff`));
  });

  it('makes pods that Pod Security "restricted" admits, that have their share and that get no service links', async () => {
    const found = pods(manifests(rendered));
    expect(found.length).toBeGreaterThanOrEqual(3);
    for (const { of, spec } of found) {
      expect([of, spec.enableServiceLinks]).toEqual([of, false]);
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      for (const container of spec.containers) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(container.resources).toMatchObject({
          requests: { cpu: expect.anything() },
          limits: { memory: expect.anything() },
        });
        expect(container.lifecycle).toBeUndefined();
      }
    }
  });

  it('has no object of a kind that comes with it, but for the test, and none of a name beyond 63 characters', async () => {
    const longest = await template(['--values', file], { release: LONGEST_RELEASE });
    for (const objects of [rendered, longest].map(manifests)) {
      const own = objects.filter(({ apiVersion }) => apiVersion.startsWith('grantry.dev/'));
      expect(own.map(({ metadata }) => hookOf(metadata))).toEqual(['test']);
      for (const { metadata } of objects)
        expect([metadata.name, metadata.name.length <= 63]).toEqual([metadata.name, true]);
      const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace} ${metadata.name}`);
      expect(new Set(names).size).toBe(names.length);
    }
  });
});

describe('the chart', () => {
  it('has no golden file of values that are gone', () => {
    const files = Object.keys(CI_VALUES).map((show) => `${show}.${show === BASE ? 'yaml' : 'diff'}`);
    expect(files).toEqual(expect.arrayContaining(readdirSync(GOLDEN)));
  });

  it('opens the admin port of each pod to peers that are named, and to no others', async () => {
    const peers = [{ podSelector: { matchLabels: { app: 'prometheus' } } }];
    for (const args of [[], ['--set-json', `networkPolicy.metricsFrom=${JSON.stringify(peers)}`]]) {
      const objects = await render([...MINIMAL, ...args]);
      for (const part of ['server', 'controller']) {
        const labels = { 'app.kubernetes.io/component': part };
        const [policy, ...others] = ofKind(objects, 'NetworkPolicy')
          .map(({ spec }) => spec as unknown as PolicySpec)
          .filter(({ podSelector }) =>
            Object.entries(labels).every(([key, it]) => podSelector.matchLabels[key] === it),
          );
        const opening = policy?.ingress.filter(({ ports }) => ports.some(({ port }) => port === 'admin')) ?? [];
        const open = opening.flatMap(({ from = [] }) => from);
        expect([policy?.policyTypes, others]).toEqual([['Ingress'], []]);
        expect(opening.every(({ from = [] }) => from.length > 0)).toBe(true);
        const named = open
          .map((each) => each.podSelector?.matchLabels ?? {})
          .map((it) => it['app.kubernetes.io/component'] ?? it.app);
        const [own, monitoring] = [
          part === 'server' ? ['controller', 'test'] : [],
          args.length > 0 ? ['prometheus'] : [],
        ];
        expect([part, ...named]).toEqual([part, ...own, ...monitoring]);
      }
    }
  });

  it('given Kubernetes 1.29, another release with the CRDs, or no wish for it → no policy of admission; from 1.30 on one', async () => {
    const policies = async (...args: readonly string[]) =>
      (await render([...MINIMAL, ...args])).filter(({ kind }) => kind.startsWith('ValidatingAdmissionPolicy')).length;
    expect(await policies('--kube-version', '1.29.15')).toBe(0);
    expect(await policies('--kube-version', '1.29.15', '--set', 'admissionPolicy.enabled=true')).toBe(0);
    expect(await policies('--kube-version', 'v1.30.0-gke.100')).toBe(2);
    expect(await policies('--set', 'crds.enabled=false')).toBe(0);
    expect(await policies('--set', 'crds.enabled=false,admissionPolicy.enabled=true')).toBe(2);
    expect(await policies('--set', 'admissionPolicy.enabled=false')).toBe(0);
    // As with the values of an earlier chart, which has no such key.
    expect(await policies('--set', 'admissionPolicy=null,signIn=null')).toBe(2);
  });

  it('keeps every kind without a class to the release namespaces, those of further installs included', async () => {
    const classless = readdirSync(CRDS).flatMap((file) => {
      if (!file.endsWith('.yaml')) return [];
      const { spec } = parse(readFileSync(join(CRDS, file), 'utf8'));
      const { properties } = spec.versions[0].schema.openAPIV3Schema.properties.spec;
      return 'className' in properties ? [] : [spec.names.plural as string];
    });
    const objects = await render([
      ...[...MINIMAL, '--set-json', 'admissionPolicy.namespaces=["123","grantry-system"]'],
    ]);
    expect(ofKind(objects, 'ValidatingAdmissionPolicy').map(({ spec }) => spec)).toMatchObject([
      {
        matchConstraints: {
          resourceRules: [{ resources: classless.sort(), operations: ['CREATE'] }],
          namespaceSelector: { matchExpressions: [{ operator: 'NotIn', values: ['grantry-system', '123'] }] },
        },
      },
    ]);
  });

  it('given crds.keep=false → the notes name every kind that an uninstall deletes', async () => {
    const text = await notes([...MINIMAL, '--set', 'crds.keep=false']);
    const kinds = readdirSync(CRDS).filter((file) => file.endsWith('.yaml'));
    for (const file of kinds) expect(text).toContain(parse(readFileSync(join(CRDS, file), 'utf8')).spec.names.kind);
    expect(await notes(MINIMAL)).not.toContain('crds.keep is false');
  });

  it('marks every object of helm test by itself, for tools that take lists apart', async () => {
    const lists = parseAllDocuments(await template(MINIMAL))
      .map((document) => document.toJS() as Manifest | null)
      .filter((object) => object?.kind === 'List');
    const items = lists.flatMap((list) => list?.items as Manifest[]);
    expect(items.map(({ kind, metadata }) => [kind, hookOf(metadata)])).toEqual(
      ['Namespace', 'ServiceAccount', 'Role', 'RoleBinding', 'OAuthClient'].map((kind) => [kind, 'test']),
    );
  });

  it('takes null for labels, which leaves those of its own', async () => {
    const unset = ['server.podLabels', 'controller.podLabels', 'monitoring.labels', 'monitoring.dashboard.labels'];
    const args = ['--values', CI_VALUES.monitoring ?? '', ...unset.flatMap((name) => ['--set', `${name}=null`])];
    for (const name of HELMS) {
      const labelled = ofKind(await render(args, { name }), 'ServiceMonitor').map(({ metadata }) => metadata.labels);
      expect(labelled).toEqual([expect.objectContaining({ 'app.kubernetes.io/name': 'grantry' })]);
    }
  });

  it('says after the install that Prometheus would be kept out', async () => {
    const monitoring = ['--values', CI_VALUES.monitoring ?? ''];
    expect(await notes([...monitoring, '--set', 'networkPolicy.metricsFrom=null'])).toContain(
      'set networkPolicy.metricsFrom',
    );
    expect(await notes([...monitoring, '--set', 'networkPolicy.enabled=false'])).not.toContain('metricsFrom');
  });

  it('says after the install that limited egress may keep the token servers from the keys of clients', async () => {
    const limited = ['--set-json', `networkPolicy.egress=${JSON.stringify([{ ports: [{ port: 53 }] }])}`];
    expect(await notes([...MINIMAL, ...limited])).toContain('clients with jwksUri need a rule of networkPolicy.egress');
    expect(await notes([...MINIMAL, ...limited, '--set', 'networkPolicy.enabled=false'])).not.toContain('jwksUri');
    expect(await notes(MINIMAL)).not.toContain('jwksUri');
  });

  it('says after the install how to read the password of the first user, and nothing of it without one', async () => {
    const text = await notes([...MINIMAL, '--set', 'users.initialUser=ada lovelace']);
    expect(text).toContain('ada lovelace signs in at https://id.example.com/account');
    expect(text).toContain(
      `kubectl -n grantry-system get secret grantry-initial-user -o go-template='{{.data.password | base64decode}}{{"\\n"}}'`,
    );
    expect(await notes(MINIMAL)).not.toContain('grantry-initial-user');
  });

  it.each([
    ['default', []],
    ['shop', ['--set', 'watchNamespaces={shop}']],
  ])('shows after the install a client of %s that gets a token', async (namespace, args) => {
    const text = await notes([...MINIMAL, ...args]);
    const [, place, manifest = ''] = /kubectl -n (\S+) apply -f - <<MANIFEST\n(.*?)\n +MANIFEST/s.exec(text) ?? [];
    expect(place).toBe(namespace);
    const client = parse(manifest);
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'client.yaml'), stringify({ ...client, metadata: { ...client.metadata, namespace } }));
    const { issuer } = await startDev(folder);
    const secret = readFileSync(join(folder, `.grantry/secrets/${namespace}.my-app.secret`), 'utf8').trim();
    const { status, body } = await post(
      `${issuer}/token`,
      { grant_type: 'client_credentials' },
      `${namespace}.my-app:${secret}`,
    );
    expect([status, body.scope]).toEqual([200, `${namespace}/read`]);
  });

  it('puts commonLabels on every object and pod, below what its own values say, and into no selector', async () => {
    const objects = await render(['--values', CI_VALUES.platform ?? '']);
    const others = ['ConfigMap grantry-text', 'ConfigMap grantry-object'];
    for (const { kind, metadata, spec } of objects) {
      if (others.includes(`${kind} ${metadata.name}`)) continue;
      const { template: pod, selector } = (spec ?? {}) as {
        template?: { metadata: { labels: object } };
        selector?: object;
      };
      for (const labels of [metadata.labels, ...(pod ? [pod.metadata.labels] : [])]) {
        expect([kind, metadata.name, labels]).toEqual([
          kind,
          metadata.name,
          expect.objectContaining({ 'cost-center': '7', team: expect.anything() }),
        ]);
      }
      expect(JSON.stringify(selector ?? {})).not.toContain('cost-center');
    }
    const teamOf = (kind: string) => ofKind(objects, kind).map(({ metadata }) => (metadata.labels as Labels).team);
    expect([teamOf('ServiceMonitor'), teamOf('Service')]).toEqual([
      ['monitoring'],
      ['identity', 'identity', 'identity'],
    ]);
    const pod = ofKind(objects, 'Deployment').find(({ metadata }) => metadata.name === 'grantry-server');
    expect(pod).toMatchObject({ spec: { template: { metadata: { labels: { team: 'sign-in' } } } } });
  });

  it('gives rights to the ServiceAccounts that values name, and makes only those it is asked to make', async () => {
    const objects = await render(['--values', CI_VALUES.platform ?? '', '--no-hooks']);
    const made = ofKind(objects, 'ServiceAccount').map(({ metadata }) => metadata.name);
    const bindings = [...ofKind(objects, 'ClusterRoleBinding'), ...ofKind(objects, 'RoleBinding')];
    const given = bindings.flatMap(({ subjects }) => (subjects as { name: string }[]).map(({ name }) => name));
    const used = pods(objects).map(({ spec }) => spec.serviceAccountName);
    expect([made, [...new Set(given)].sort()]).toEqual([['id-server'], ['id-controller', 'id-server']]);
    expect(used).toEqual(['id-controller', undefined, 'id-server']);
  });

  it('makes no role and no binding where rbac.create is false', async () => {
    const objects = await render([...MINIMAL, '--set', 'rbac.create=false', '--no-hooks']);
    expect(objects.filter(({ apiVersion }) => apiVersion.startsWith('rbac.')).map(({ kind }) => kind)).toEqual([]);
    expect(ofKind(objects, 'ServiceAccount').length).toBe(2);
  });

  it('trusts no proxy where trustedProxies is none, and those that it names', async () => {
    const trusted = async (args: readonly string[]) => {
      const [config] = ofKind(await render(args), 'ConfigMap');
      return (config?.data as Record<string, string> | undefined)?.GRANTRY_TRUSTED_PROXIES;
    };
    expect(await trusted([...MINIMAL, '--set', 'config.trustedProxies=none'])).toBeUndefined();
    expect(await trusted(['--values', CI_VALUES.ingress ?? ''])).toBe('10.42.0.0/16');
  });

  it('takes a security context of containers and a probe from the values, and keeps the path of the probe', async () => {
    const values = 'containerSecurityContext.runAsNonRoot=true,controller.livenessProbe.failureThreshold=9';
    const objects = await render([...MINIMAL, '--set', values, '--set', 'server.startupProbe.failureThreshold=30']);
    const containers = pods(objects).flatMap(({ spec }) => spec.containers);
    expect(containers.filter(({ securityContext }) => !('runAsNonRoot' in (securityContext ?? {})))).toEqual([]);
    const of = (name: string) => containers.find((container) => container.name === name);
    expect(of('controller')?.livenessProbe).toEqual({
      httpGet: { path: '/livez', port: 'admin' },
      timeoutSeconds: 5,
      failureThreshold: 9,
    });
    expect(of('server')?.startupProbe).toEqual({ httpGet: { path: '/livez', port: 'admin' }, failureThreshold: 30 });
    expect(of('controller')).not.toHaveProperty('startupProbe');
  });

  it('lets helm test and the controller reach the servers, whatever else the network policies shut out', async () => {
    const objects = await render(['--values', CI_VALUES.ha ?? '']);
    const policies = ofKind(objects, 'NetworkPolicy').map(({ spec }) => spec as unknown as PolicySpec);
    const component = ({ podSelector }: Peer) => podSelector?.matchLabels['app.kubernetes.io/component'];
    const of = (part: string) => policies.find((policy) => component(policy) === part);
    const open = of('server')?.ingress.find(({ ports }) => ports.some(({ port }) => port === 'http'));
    expect(open?.from?.map(component)).toEqual([undefined, 'test']);
    const ways = (part: string) => of(part)?.egress?.map(({ ports, to }) => [ports[0]?.port, to?.map(component)]);
    expect(ways('server')).toEqual([[53, undefined]]);
    expect(ways('controller')).toEqual([
      [53, undefined],
      [9401, ['server']],
    ]);
  });

  it('writes names as text that YAML would take for a number, a truth or an alias', async () => {
    const values = {
      fullnameOverride: 'id',
      className: 'on',
      watchNamespaces: ['123', '1e3'],
      pepper: { existingSecret: '456', key: 'true' },
      server: { priorityClassName: '789' },
      ingress: { enabled: true, host: '*.example.com', className: 'no', tlsSecret: '0' },
      config: { trustedProxies: 'none' },
    };
    const args = Object.entries(values).flatMap(([name, value]) => ['--set-json', `${name}=${JSON.stringify(value)}`]);
    const objects = await render([...MINIMAL, ...args], { release: '7', namespace: '8' });
    for (const { kind, metadata } of objects) {
      const { labels = {}, namespace = '' } = metadata as { labels?: object; namespace?: unknown };
      const texts = [namespace, ...Object.values(labels)];
      expect([kind, metadata.name, texts.filter((text) => typeof text !== 'string')]).toEqual([
        kind,
        metadata.name,
        [],
      ]);
    }
    const server = pods(objects).find(({ of }) => of === 'Deployment id-server');
    expect(server?.spec).toMatchObject({
      priorityClassName: '789',
      volumes: [
        { secret: { secretName: '456', items: [{ key: 'true', path: 'true' }] } },
        { secret: { secretName: REDIS_SECRET.name } },
      ],
    });
    expect(ofKind(objects, 'Ingress').map(({ spec }) => spec)).toMatchObject([
      {
        ingressClassName: 'no',
        tls: [{ hosts: ['*.example.com'], secretName: '0' }],
        rules: [{ host: '*.example.com' }],
      },
    ]);
    expect(ofKind(objects, 'OAuthClient').map(({ spec }) => spec)).toMatchObject([{ className: 'on' }]);
  });

  it('renders what the guide shows, without the parts that only Helm uses', async () => {
    const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/kubernetes.md'), 'utf8');
    const [, values = ''] = /```yaml\n# values\.yaml\n(.*?)```/s.exec(guide) ?? [];
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'values.yaml'), values);
    expect(guide).toMatch(/`--values values\.yaml`[^#]+--no-hooks/);
    const objects = await render(['--values', join(folder, 'values.yaml'), '--no-hooks']);
    const hooks = objects.filter(({ metadata }) => hookOf(metadata) !== undefined);
    expect([ofKind(objects, 'Deployment').length, ofKind(objects, 'Ingress').length, hooks]).toEqual([2, 1, []]);
  });

  it('sets user, password, authority and strictness of Redis by the values of its guide', async () => {
    const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/redis-access.md'), 'utf8');
    const [, values = ''] = /```yaml\n# values\.yaml\n(.*?)```/s.exec(guide) ?? [];
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'values.yaml'), values);
    const objects = await render(['--set', 'issuer=https://id.example.com', '--values', join(folder, 'values.yaml')]);
    const [config] = ofKind(objects, 'ConfigMap');
    expect(readSettings({ environment: config?.data as Record<string, string> }).redis).toMatchObject({
      target: { tls: true },
      usernameFile: '/etc/grantry/redis/username',
      passwordFile: '/etc/grantry/redis/password',
      caFile: '/etc/grantry/redis-tls/ca.crt',
      strict: true,
    });
  });

  it('has a case for each values file of the guide for proxies', () => {
    expect(proxyBlocks().map(([heading]) => heading)).toEqual(PROXY_VALUES.map(([heading]) => heading));
  });

  it.each(PROXY_VALUES.map((it, index) => [index, ...it] as const))(
    'trusts by block %i of the guide for proxies (%s) %s',
    async (index, _, trusted, peers) => {
      const folder = temporaryFolder();
      writeFileSync(join(folder, 'values.yaml'), proxyBlocks()[index]?.[1] ?? '');
      const objects = await render([...MINIMAL, '--values', join(folder, 'values.yaml'), '--no-hooks']);
      const [config] = ofKind(objects, 'ConfigMap');
      expect((config?.data as Labels | undefined)?.GRANTRY_TRUSTED_PROXIES).toBe(trusted);
      const policy = ofKind(objects, 'NetworkPolicy').find(({ metadata }) => metadata.name === 'grantry-server');
      const open = (policy?.spec as PolicySpec | undefined)?.ingress.find(({ ports }) => ports[0]?.port === 'http');
      // One more is `helm test`.
      expect(open?.from?.length).toBe(peers === undefined ? undefined : peers + 1);
    },
  );

  it.each([
    ['v1.28.9', 1],
    ['v1.29.0', 0],
    ['v1.33.1-gke.100', 0],
  ])('is for Kubernetes from 1.29 on, as cloud providers number it too: %s', async (version, code) => {
    for (const name of HELMS) {
      const args = ['template', 'grantry', CHART, ...MINIMAL, '--kube-version', version];
      expect((await helm(name, args)).code).toBe(code);
    }
  });

  it('can set every GRANTRY_ variable, and the programs take what it sets', async () => {
    const values = {
      issuer: 'https://id.example.com',
      className: 'shop',
      watchNamespaces: ['shop', 'bank'],
      config: {
        trustedProxies: ['10.0.0.0/8', '2001:db8::/32'],
        rateLimits: false,
        logOneTokenIn: 1_000_000,
        fetchNetworks: ['10.96.0.0/12', 'fd00::/112'],
      },
      networkPolicy: { enabled: false },
      users: { existingSecret: 'people' },
      signIn: { order: 'local-first' },
      branding: {
        name: '登录 & "Co": \\',
        logo: { existingConfigMap: 'brand', key: 'logo.png' },
        accentColor: '#0b57d0',
        accentColorDark: '#a8c7fa',
        help: { url: 'https://help.example.com/?a=1&b=2', text: '登录 & "Co": \\' },
        footer: false,
      },
      pepper: { existingSecret: 'pepper' },
      keyHosts: { existingSecret: 'authorities' },
      webhook: { url: 'https://siem.example.com/a', existingSecret: 'webhook' },
      mtls: {
        url: 'https://mtls.example.com',
        clientCa: { existingSecret: 'client-ca' },
        listener: { existingSecret: 'mtls-tls' },
        header: { name: 'Client-Cert', proxies: ['10.0.0.0/8'] },
      },
      redis: {
        url: 'rediss+sentinel://a:26379,b:26379/primary',
        wait: '1:100',
        strict: true,
        existingSecret: 'redis',
        usernameKey: 'user',
        sentinelPasswordKey: 'sentinel',
        tls: { existingSecret: 'redis-tls', certificateKey: 'tls.crt', keyKey: 'tls.key' },
      },
    };
    const args = Object.entries(values).flatMap(([name, value]) => ['--set-json', `${name}=${JSON.stringify(value)}`]);
    const [config] = ofKind(await render(args), 'ConfigMap');
    const environment = config?.data as Record<string, string>;
    // The replicas are found by their Service, a user in a file is not one in a variable as well, and only redis.dev has a generated password.
    const others = ['SERVER_ADMIN_URLS', 'REDIS_USERNAME', 'INITIAL_USER', 'GENERATE_REDIS_PASSWORD'].map(
      (name) => `GRANTRY_${name}`,
    );
    const known = variableReference().filter(({ name }) => !others.includes(name));
    expect(Object.keys(environment).sort()).toEqual(known.map(({ name }) => name).sort());
    expect(readSettings({ environment })).toMatchObject({
      className: 'shop',
      watchNamespaces: ['shop', 'bank'],
      rateLimits: false,
      logOneTokenIn: 1_000_000,
      trustedProxies: ['10.0.0.0/8', '2001:db8::/32'],
      serverService: 'grantry-admin',
      mtls: {
        url: 'https://mtls.example.com',
        listener: { port: 9443, certificateFile: '/etc/grantry/mtls/tls.crt', keyFile: '/etc/grantry/mtls/tls.key' },
        header: { name: 'client-cert', proxies: ['10.0.0.0/8'] },
        clientCaFile: '/etc/grantry/client-ca/ca.crt',
      },
      signInOrder: 'local-first',
      brand: {
        name: '登录 & "Co": \\',
        logoFile: '/etc/grantry/branding/logo.png',
        accent: { light: '#0b57d0', dark: '#a8c7fa' },
        help: { url: 'https://help.example.com/?a=1&b=2', text: '登录 & "Co": \\' },
        hasFooter: false,
      },
      fetch: { networks: ['10.96.0.0/12', 'fd00::/112'], caFile: '/etc/grantry/key-hosts/ca.crt' },
      redis: {
        usernameFile: '/etc/grantry/redis/user',
        passwordFile: '/etc/grantry/redis/password',
        caFile: '/etc/grantry/redis-tls/ca.crt',
        strict: true,
      },
    });
  });

  it('replaces servers one by one, and lets none go before another is there', async () => {
    for (const { spec } of ofKind(await render(MINIMAL), 'Deployment')) {
      const { strategy } = spec as { strategy: { type: string; rollingUpdate?: { maxUnavailable: number } } };
      expect(strategy.rollingUpdate?.maxUnavailable ?? strategy.type).toSatisfy((it) => it === 0 || it === 'Recreate');
    }
    const server = pods(await render(MINIMAL)).find(({ of }) => of === 'Deployment grantry-server');
    expect(server?.spec.terminationGracePeriodSeconds).toBe(45);
  });

  it('restarts pods when their configuration changes', async () => {
    const checksums = async (...args: readonly string[]) =>
      ofKind(await render([...MINIMAL, ...args]), 'Deployment').map(({ metadata, spec }) => {
        const { template } = spec as { template: { metadata: { annotations?: Record<string, string> } } };
        return [metadata.name, template.metadata.annotations?.['checksum/config']];
      });
    const before = await checksums();
    expect(await checksums()).toEqual(before);
    const after = Object.fromEntries(await checksums('--set', 'config.logLevel=debug'));
    const changed = before.filter(([name, sum]) => sum !== after[name ?? '']).map(([name]) => name);
    expect(changed).toEqual(['grantry-controller', 'grantry-server']);
  });

  it('leaves the number of servers to the autoscaler where there is one', async () => {
    const objects = await render([...MINIMAL, '--set', 'server.autoscaling.enabled=true']);
    const server = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'grantry-server');
    expect(server?.spec).not.toHaveProperty('replicas');
    expect(ofKind(objects, 'HorizontalPodAutoscaler').length).toBe(1);
  });

  it('names to the controller a pepper that the chart did not make, and never mounts it there', async () => {
    const objects = await render([...MINIMAL, '--set', 'pepper.existingSecret=pepper']);
    const config = ofKind(objects, 'ConfigMap').map(({ data }) => data as Record<string, string>);
    expect(config.map((data) => data.GRANTRY_PEPPER_FILE)).toEqual(['/etc/grantry/pepper/pepper']);
    for (const { of, spec } of pods(objects)) {
      const mounts = spec.containers.flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name));
      if (of === 'Deployment grantry-controller')
        expect([spec.containers[0]?.envFrom?.length, mounts]).toEqual([1, []]);
      if (of === 'Deployment grantry-server') expect(mounts).toEqual(['pepper', 'redis']);
    }
  });

  it('gives each right of rbac/ to the subject it is meant for, and with watchNamespaces none of the cluster on Secrets', async () => {
    const everywhere = await render(MINIMAL);
    const some = await render([...MINIMAL, '--set', 'watchNamespaces={shop,bank}']);
    const rules = (objects: readonly Manifest[], kind: string) =>
      ofKind(objects, kind).flatMap((role) =>
        (role as unknown as { rules: { resources: string[] }[] }).rules.flatMap(({ resources }) => resources),
      );
    expect(rules(everywhere, 'ClusterRole')).toContain('secrets');
    expect(rules(some, 'ClusterRole')).not.toContain('secrets');
    const namespaces = ofKind(some, 'Role').map(({ metadata }) => metadata.namespace);
    expect(new Set(namespaces)).toEqual(new Set(['grantry-system', 'shop', 'bank']));
    for (const { metadata, roleRef } of ofKind(some, 'RoleBinding')) {
      const role = ofKind(some, 'Role').find(
        (each) =>
          each.metadata.name === (roleRef as { name: string }).name && each.metadata.namespace === metadata.namespace,
      );
      expect([metadata.name, role?.metadata.name]).toEqual([metadata.name, (roleRef as { name: string }).name]);
    }
  });
});
