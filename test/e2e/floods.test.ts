// One tenant that fills its namespace with what the API server takes: large objects, Secrets with the labels of clients, and
// text that cannot be seen. Programs of another namespace ask for tokens meanwhile, and every pod is replaced midway.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FIELDS, UNSEEN } from '../cluster/setup/unseen-text.ts';
import { figure } from './setup/diagnosis.ts';
import {
  apply,
  createNamespace,
  deleteNamespaces,
  eventually,
  get,
  type KubernetesObject,
  kubectl,
  list,
  outcomeOf,
  run,
  waitReady,
} from './setup/kubectl.ts';
import { sharedInstall } from './setup/shared-install.ts';
import { createMachineClient, type MachineClient, machineSpec, oauthClient } from './setup/tenants.ts';
import { Traffic } from './setup/traffic.ts';

const TENANT = 'e2e-flood';
const NEIGHBOUR = 'e2e-flood-neighbour';
const REQUESTS_PER_SECOND = 20;
/** What `kubectl create` gets at a time; each is less than the API server takes. */
const BYTES_AT_ONCE = 20_000_000;
/** Of a verdict or a neighbour's client, by the times of the API server, which are whole seconds. */
const MOST_SECONDS = 2;
const { namespace, tokenUrl } = sharedInstall;

let client: MachineClient;

beforeAll(async () => {
  client = await createMachineClient(NEIGHBOUR);
});

afterAll(() => deleteNamespaces(TENANT, NEIGHBOUR));

const NOTE = { note: 'x'.repeat(250_000) };

/** A megabyte that the CustomResourceDefinition takes and the judge refuses. */
function refusedClient(index: number): KubernetesObject {
  const x5c = Array.from({ length: 8 }, () => 'A'.repeat(8000));
  const keys = Array.from({ length: 16 }, () => ({ kty: 'RSA', x5c }));
  const auth = { method: 'private_key_jwt', privateKeyJwt: { jwks: { keys } } };
  return oauthClient(TENANT, `refused-${index}`, { grantTypes: ['client_credentials'], auth });
}

function annotatedClient(index: number): KubernetesObject {
  const made = oauthClient(TENANT, `annotated-${index}`, machineSpec(TENANT));
  return { ...made, metadata: { ...made.metadata, annotations: NOTE } };
}

function annotatedSecret(index: number): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: TENANT, name: `large-${index}`, annotations: NOTE },
  };
}

async function create(objects: readonly KubernetesObject[]): Promise<void> {
  const texts = objects.map((object) => JSON.stringify(object));
  const most = Math.max(1, Math.floor(BYTES_AT_ONCE / Math.max(...texts.map((text) => text.length))));
  for (let from = 0; from < texts.length; from += most) {
    const items = texts.slice(from, from + most).join(',');
    await run('kubectl', ['create', '-f', '-', '-o', 'name'], `{"apiVersion":"v1","kind":"List","items":[${items}]}`);
  }
}

/** Every pod of server and controller is replaced, and none of the new ones was ended by the kernel. */
async function replacePods(): Promise<void> {
  const deployments = (['server', 'controller'] as const).map((part) => `deployment/${sharedInstall.nameOf(part)}`);
  await kubectl('rollout', 'restart', '-n', namespace, ...deployments);
  for (const each of deployments) await kubectl('rollout', 'status', '-n', namespace, each, '--timeout=240s');
}

async function restarts(): Promise<readonly string[]> {
  const pods = [...(await sharedInstall.pods('server')), ...(await sharedInstall.pods('controller'))];
  return pods.flatMap(({ metadata, status }) =>
    (status.containerStatuses as { restartCount: number }[])
      .filter(({ restartCount }) => restartCount > 0)
      .map(({ restartCount }) => `${metadata.name}: ${restartCount}`),
  );
}

/** From the creation of an object to its condition of this type, in seconds of the API server. */
function secondsUntil(type: string, { metadata, status }: KubernetesObject): number {
  const condition = (status?.conditions as { type: string; lastTransitionTime: string }[] | undefined)?.find(
    (each) => each.type === type,
  );
  if (condition === undefined) return Number.POSITIVE_INFINITY;
  const created = (metadata as { creationTimestamp?: string }).creationTimestamp ?? '';
  return (Date.parse(condition.lastTransitionTime) - Date.parse(created)) / 1000;
}

describe.each<readonly [string, number, (index: number) => KubernetesObject]>([
  ['refused clients of a megabyte', 120, refusedClient],
  ['clients with annotations of 250 kB', 200, annotatedClient],
  ['Secrets with annotations of 250 kB', 300, annotatedSecret],
])('a flood of %s', (flood, count, object) => {
  beforeAll(() => createNamespace(TENANT));
  afterAll(() => deleteNamespaces(TENANT));

  it('ends no pod, old or new, and no token request of a neighbour fails', async () => {
    const traffic = await Traffic.start({ ...client, tokenUrl, requestsPerSecond: REQUESTS_PER_SECOND });
    const all = Array.from({ length: count }, (_, index) => object(index));
    await create(all.slice(0, count / 2));
    expect(await restarts()).toEqual([]);
    await Promise.all([replacePods(), create(all.slice(count / 2))]);
    await traffic.goesOn(5 * REQUESTS_PER_SECOND);
    const { failures, answered } = await traffic.stop();
    expect(failures).toEqual([]);
    expect(await restarts()).toEqual([]);
    const name = `after-${count}`;
    await apply(oauthClient(NEIGHBOUR, name, machineSpec(NEIGHBOUR)));
    await waitReady(NEIGHBOUR, `oauthclient/${name}`);
    figure(`flood of ${count} ${flood}, every pod replaced midway: 0 of ${answered} requests failed`);
  });
});

describe('a tenant', () => {
  beforeAll(() => createNamespace(TENANT));
  afterAll(() => deleteNamespaces(TENANT));

  it('that changes Secrets with the labels of its client all the time keeps no neighbour waiting', async () => {
    await apply(oauthClient(TENANT, 'busy', machineSpec(TENANT)));
    await waitReady(TENANT, 'oauthclient/busy');
    const { uid = '' } = (await get('oauthclient', 'busy', TENANT)).metadata;
    const labels = { 'grantry.dev/client': 'busy', 'grantry.dev/client-uid': uid };
    const secrets = Array.from({ length: 200 }, (_, index) => `copy-${index}`);
    await create(
      secrets.map((name) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { namespace: TENANT, name, labels } })),
    );
    let isOver = false;
    const changing = (async () => {
      for (let round = 0; !isOver; round++) {
        await outcomeOf('kubectl', ['annotate', 'secrets', '-n', TENANT, '--all', '--overwrite', `round=${round}`]);
      }
    })();
    const neighbours = Array.from({ length: 5 }, (_, index) => `beside-${index}`);
    for (const name of neighbours) {
      await apply(oauthClient(NEIGHBOUR, name, machineSpec(NEIGHBOUR)));
      await waitReady(NEIGHBOUR, `oauthclient/${name}`);
    }
    isOver = true;
    await changing;
    const ready = await Promise.all(neighbours.map((name) => get('oauthclient', name, NEIGHBOUR)));
    const waited = ready.map((each) => secondsUntil('Ready', each));
    // On a busy machine one may wait for the machine.
    expect(waited.filter((seconds) => seconds > MOST_SECONDS).length, waited.join()).toBeLessThanOrEqual(1);
  });

  it('gets a verdict on text that cannot be seen, and nothing of it stands raw in status, Events or logs', async () => {
    const clients = Object.entries(FIELDS).flatMap(([field, withText]) =>
      Object.entries(UNSEEN).map(([character, odd]) => {
        const { spec = {}, metadata = {} } = withText(`a${odd}b`);
        const made = oauthClient(TENANT, `${field}-${character}`, { ...machineSpec(TENANT), ...spec });
        return { ...made, metadata: { ...made.metadata, ...metadata } };
      }),
    );
    await create(clients);
    const judged = async () => {
      const found = await list('oauthclients', TENANT);
      return found.every(({ metadata, status }) => status?.observedGeneration === metadata.generation);
    };
    await eventually('each of them is judged', judged);
    const found = await list('oauthclients', TENANT);
    expect(found.length).toBeGreaterThanOrEqual(clients.length);
    const raw = /[^\x20-\x7e]/;
    expect(found.filter(({ status }) => raw.test(JSON.stringify(status))).map(({ metadata }) => metadata.name)).toEqual(
      [],
    );
    const events = await list('events', TENANT);
    expect(events.filter(({ message, reason }) => raw.test(`${message}${reason}`))).toEqual([]);
    for (const part of ['server', 'controller'] as const) {
      const lines = (await sharedInstall.logs(part)).split('\n');
      expect(lines.filter((line) => raw.test(line)).slice(0, 3)).toEqual([]);
    }
  });
});
