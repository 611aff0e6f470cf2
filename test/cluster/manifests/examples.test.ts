// Every example of crds/examples, applied to a cluster in which a controller and a replica run: the valid ones become
// Ready. The invalid ones begin with `# reason:`, the reason of a condition. Those with `# refused:` the API server does not
// take: there stand its status, the field that it names, and what it says of it.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { describeRedis } from '../../redis/setup/servers.ts';
import { until } from '../../until.ts';
import { ApiServer } from '../setup/api-server.ts';
import { type ApiAnswer, Cluster, type Manifest, nextSecond } from '../setup/cluster.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';
import { TokenServers } from '../setup/token-servers.ts';

const EXAMPLES = join(import.meta.dirname, '../../../crds/examples');
const KINDS = ['OAuthClient', 'ProtectedResource', 'IdentityProvider', 'ClientPolicy', 'SigningKey'];
/** Policies and what clients refer to come first, so that no client is admitted without them. */
const ORDER = [
  'Namespace',
  'Secret',
  'ConfigMap',
  'ServiceAccount',
  'ClientPolicy',
  'SigningKey',
  'IdentityProvider',
  'ProtectedResource',
  'OAuthClient',
];
const PATIENCE = 60_000;
/** Invalid examples that are created at the same time: each is a world of its own. */
const CREATED_AT_ONCE = 8;
/** From the request that creates an example to the condition that it is waited for. */
const PROMISED = 2000;
/**
 * A burst of other work may come in between, and the primes of an RSA key are found by luck, in a tenth or in ten times of
 * the usual time. What is slow for a reason is so each time.
 */
const ATTEMPTS = 5;

const OF_A_STRICT_INSTALL = ['no-matching-policy.yaml', 'resource-without-policy.yaml'];
/** Examples that say something about an install which is configured otherwise, or about what no cluster lets one write. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  ...Object.fromEntries(OF_A_STRICT_INSTALL.map((file) => [file, 'has a test of its own'])),
  'auth-method-tls.yaml': 'is of an install without mutual TLS, and this one has it',
  'sender-constraint-mutual-tls-without-it.yaml': 'is of an install without mutual TLS',
  'uid-twice.yaml': 'the API server gives each object a uid of its own',
  'provider-in-another-namespace.yaml': 'the controller may not even read it: identity-providers.test.ts',
  'one-signing-key-too-many.yaml': 'no other example would have room for a key: signing-keys.test.ts',
  'signing-key-in-another-namespace.yaml': 'the controller may not even read it: hostile-tenant.test.ts',
};

interface Example {
  readonly file: string;
  readonly reason: string | undefined;
  readonly refused: string | undefined;
  readonly documents: readonly Manifest[];
}

function examplesIn(folder: 'valid' | 'invalid', rewrite: (text: string, index: number) => string): readonly Example[] {
  return readdirSync(join(EXAMPLES, folder)).map((file, index) => {
    const text = readFileSync(join(EXAMPLES, folder, file), 'utf8');
    const documents = parseAllDocuments(rewrite(text, index)).map((document) => document.toJS() as Manifest);
    const said = (what: string) => new RegExp(`^# ${what}: (.+)$`, 'm').exec(text)?.[1];
    return { file, reason: said('reason'), refused: said('refused'), documents };
  });
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly observedGeneration: number;
}

describeRedis('the examples in a cluster', () => {
  // Clients and policies have the class `default` here, as in a cluster that is installed as the guide says.
  const { assets } = sharedCluster().address;
  let apiServer: ApiServer;
  let cluster: Cluster;
  let servers: TokenServers;
  let controller: ControllerProcess;

  beforeAll(async () => {
    apiServer = await ApiServer.start(assets);
    cluster = new Cluster(apiServer.address);
    await cluster.applyCrds();
    servers = await TokenServers.install(cluster, { complete: false });
    const environment = {
      GRANTRY_CLASS: 'default',
      GRANTRY_MTLS_URL: 'https://mtls.id.example',
      GRANTRY_CLIENT_CERT_HEADER: 'Client-Cert',
      GRANTRY_CLIENT_CERT_PROXIES: '127.0.0.1',
    };
    const replica = await servers.start({ environment });
    controller = await startController(servers, { replicas: [replica], environment });
    await Promise.all([controller.ready(), replica.ready()]);
  });

  afterAll(async () => {
    await controller?.process.end('SIGKILL');
    await servers?.stop();
    await apiServer?.stop();
  });

  /** As a manifest stands in the release namespace's own repository, or in the tenant's. */
  function placed(document: Manifest): Manifest {
    const isClusterScoped = ['Namespace', 'ClientPolicy'].includes(document.kind);
    const { name, namespace = servers.namespace, labels, annotations } = document.metadata;
    // What else the metadata of an example says, only the API server may.
    const metadata = { name, ...(!isClusterScoped && { namespace }), ...(labels ? { labels } : {}) };
    return { ...document, metadata: { ...metadata, ...(annotations ? { annotations } : {}) } };
  }

  /** Creates an object as kubectl does: what the schema does not know is refused. */
  async function create(document: Manifest): Promise<ApiAnswer> {
    const { namespace } = document.metadata;
    if (document.kind === 'Namespace') return { status: 200, body: (await cluster.apply(document))[0] };
    if (namespace !== undefined) {
      const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } };
      await cluster.call('POST', '/api/v1/namespaces', { body });
    }
    const path = await pathOf(document);
    if (path === undefined) {
      const { status } = await cluster.call('GET', `/apis/${document.apiVersion}`);
      return { status, body: { message: document.apiVersion } };
    }
    const collection = path.slice(0, path.lastIndexOf('/'));
    return await cluster.call('POST', `${collection}?fieldManager=test&fieldValidation=Strict`, { body: document });
  }

  /** Undefined where the API server does not have that version of a kind. */
  async function pathOf(document: Manifest): Promise<string | undefined> {
    return await cluster.pathOf(document).catch(() => undefined);
  }

  async function conditionsOf(document: Manifest): Promise<readonly Condition[]> {
    const path = await pathOf(document);
    if (path === undefined) return [];
    const { body } = await cluster.call('GET', path);
    const conditions: readonly Condition[] = body.status?.conditions ?? [];
    return conditions.filter(({ observedGeneration }) => observedGeneration === body.metadata.generation);
  }

  function inOrder(documents: readonly Manifest[]): readonly Manifest[] {
    return documents.toSorted((one, other) => ORDER.indexOf(one.kind) - ORDER.indexOf(other.kind));
  }

  /** Creates one of ours and waits until `Ready` says so. @returns how long that took, in milliseconds */
  /** @param expected reasons of `Ready` */
  async function becomes(document: Manifest, expected: readonly string[]): Promise<number> {
    const { kind, metadata } = document;
    const began = performance.now();
    const { status, body } = await create(document);
    expect([metadata.name, status, body.message]).toEqual([metadata.name, expect.toSatisfy(isDone), undefined]);
    const says = async () => {
      return (await conditionsOf(document)).some(({ type, reason }) => type === 'Ready' && expected.includes(reason));
    };
    await until(`${kind} ${metadata.name} says ${expected.join(' or ')}`, says, PATIENCE);
    return performance.now() - began;
  }

  /** As if it had never been there: without the Secrets that would be taken over. */
  async function forget(document: Manifest): Promise<void> {
    const path = await cluster.pathOf(document);
    const { name, namespace, uid } = (await cluster.call('GET', path)).body.metadata;
    await cluster.call('DELETE', path);
    const label = { OAuthClient: `client-uid=${uid}`, SigningKey: `signing-key=${name}` }[document.kind];
    if (label === undefined) return;
    await cluster.call('DELETE', `/api/v1/namespaces/${namespace}/secrets?labelSelector=grantry.dev/${label}`);
  }

  it('that are valid are Ready within two seconds, each of them, and suspended ones say so', async () => {
    const documents = examplesIn('valid', (text) => text).flatMap(({ documents }) => documents);
    const late: string[] = [];
    for (const document of inOrder(documents.map(placed))) {
      const spec = document.spec as { suspended?: boolean; className?: string } | undefined;
      if (!KINDS.includes(document.kind) || (spec?.className ?? 'default') !== 'default') {
        const { status, body } = await create(document);
        expect([document.metadata.name, status, body.message]).toEqual([
          ...[document.metadata.name, expect.toSatisfy(isDone), undefined],
        ]);
        continue;
      }
      const expected = readyReasonsOf(document.kind, spec?.suspended === true);
      const times = [await becomes(document, expected)];
      // How soon a provider is reached, or given up, is up to the network.
      const isTimed = document.kind !== 'IdentityProvider';
      const isLate = () => isTimed && (times.at(-1) ?? 0) > PROMISED;
      while (isLate() && times.length < ATTEMPTS) {
        await forget(document);
        times.push(await becomes(document, expected));
      }
      if (isLate()) late.push(`${document.kind} ${document.metadata.name}: ${times.map(Math.round)} ms`);
    }
    expect(late).toEqual([]);
  }, 300_000);

  it('that are valid are what `kubectl wait --for=condition=Ready` waits for', async () => {
    const wait = ['wait', '--for=condition=Ready', '--timeout=30s', '-n', 'orders', 'oauthclient/reporting'];
    expect((await cluster.kubectl(wait)).code).toBe(0);
  });

  it('of another class are left alone', async () => {
    const [preview] = examplesIn('valid', (text) => text).flatMap(({ documents }) =>
      documents.filter(({ spec }) => (spec as { className?: string } | undefined)?.className === 'staging'),
    );
    if (preview === undefined) throw new Error('no example has another class');
    const { body } = await cluster.call('GET', await cluster.pathOf(preview));
    expect(body.metadata.managedFields.map(({ manager }: { manager: string }) => manager)).toEqual(['test']);
  });

  it('that are invalid are refused, or get the reason that they are examples of', { timeout: 180_000 }, async () => {
    // Each is a world of its own: its namespaces and policies get names that no other example has.
    const rewrite = (text: string, index: number) =>
      text
        .replaceAll(/\b(team|other)\b/g, `$1-${index}`)
        .replaceAll(/\bdefault\b/g, text.includes('releaseNamespaceReserved') ? servers.namespace : 'default');
    const examples = examplesIn('invalid', rewrite).filter(({ file }) => ELSEWHERE[file] === undefined);
    const names = examples.flatMap(({ documents }) => documents.map(placed)).filter(({ kind }) => kind !== 'Namespace');
    // Of two with one name the second would be refused for that alone.
    expect(repeated(names.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`))).toEqual([]);
    const open = new Map<Example, readonly Manifest[]>();
    const apply = async (example: Example) => {
      const created = inOrder(example.documents);
      const refusals: Refusal[] = [];
      for (const document of created) {
        const { status, body } = await create(placed(document));
        if (!isDone(status)) refusals.push(refusalOf(status, body));
        // What of two is the older one counts in seconds.
        if (document.metadata.creationTimestamp !== undefined) await nextSecond();
      }
      if (example.refused === undefined) {
        expect([example.file, refusals]).toEqual([example.file, []]);
        open.set(
          example,
          created.map(placed).filter(({ kind }) => KINDS.includes(kind)),
        );
      } else {
        const [, status = '', field = '', words = ''] = /^(\d+) (\S+: )?(.+)$/.exec(example.refused) ?? [];
        const cause = expect.toSatisfy((said?: string) => said?.startsWith(field) === true && said.includes(words));
        const refusal = [Number(status), expect.arrayContaining([cause])];
        expect([example.file, refusals]).toEqual([example.file, [refusal]]);
      }
    };
    const waiting = examples.values();
    const createNext = async () => {
      for (const example of waiting) await apply(example);
    };
    await Promise.all(Array.from({ length: CREATED_AT_ONCE }, createNext));
    const told = async ([{ reason }, documents]: [Example, readonly Manifest[]]) => {
      const conditions = (await Promise.all(documents.map(conditionsOf))).flat();
      return conditions.some((condition) => condition.status === 'False' && condition.reason === reason);
    };
    const untold = new Set(open);
    await until(
      'every example has its reason',
      async () => {
        for (const each of untold) if (await told(each)) untold.delete(each);
        return untold.size === 0;
      },
      PATIENCE,
    ).catch(() => {});
    // Not only for a moment, while something else was still to come.
    const notTold: string[] = [];
    for (const each of open) if (!(await told(each))) notTold.push(each[0].file);
    expect(notTold).toEqual([]);
  });

  it('that no policy permits gets that reason where an install denies what no policy permits', async () => {
    const strict = await TokenServers.install(cluster, { complete: false });
    const strictController = await startController(strict, { environment: { GRANTRY_DEFAULT_POLICY: 'Deny' } });
    try {
      const examples = examplesIn('invalid', (text) => text).filter(({ file }) => OF_A_STRICT_INSTALL.includes(file));
      expect(examples).toHaveLength(OF_A_STRICT_INSTALL.length);
      for (const example of examples) {
        const [document] = example.documents;
        if (document === undefined) throw new Error('there is no such example');
        const spec = { ...(document.spec as object), className: strict.installation.className };
        expect((await create(placed({ ...document, spec }))).status).toBe(201);
        await until('it has the reason', async () => {
          return (await conditionsOf(document)).some(({ reason }) => reason === example.reason);
        });
      }
    } finally {
      await strictController.process.end('SIGKILL');
      await strict.stop();
    }
  });
});

/** Of what is valid. Whether an identity provider is reached depends on the network of the test. */
function readyReasonsOf(kind: string, isSuspended: boolean): readonly string[] {
  if (kind === 'IdentityProvider') return ['Ready', 'NotObserved', 'DiscoveryFailed', 'IssuerMismatch'];
  return [isSuspended && kind === 'OAuthClient' ? 'Suspended' : 'Ready'];
}

function isDone(status: number): boolean {
  return status === 200 || status === 201;
}

/** A status, and what is said: of each field, or at all. */
type Refusal = readonly [status: number, said: readonly string[]];

function refusalOf(status: number, { message, details }: ApiAnswer['body']): Refusal {
  const causes: readonly { readonly field: string; readonly message: string }[] = details?.causes ?? [];
  return [status, [message, ...causes.map((cause) => `${cause.field}: ${cause.message}`)]];
}

function repeated(names: readonly string[]): readonly string[] {
  return names.filter((name, index) => names.indexOf(name) !== index);
}
