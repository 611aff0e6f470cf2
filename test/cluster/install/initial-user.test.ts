// The first user of an install: the Secret that a leader makes with the rights of its ServiceAccount, and when it makes none.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { LocalUsers } from '../../../src/login/local/local-users.ts';
import { isUser } from '../../../src/login/local/user-entry.ts';
import { parseUsers } from '../../../src/login/local/users-yaml.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import { until } from '../../until.ts';
import { type ControllerProcess, startController } from '../setup/controllers.ts';
import { type Installation, install } from '../setup/installation.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const TYPE = 'grantry.dev/users';
const RECONCILED = 'grantry_reconcile_total{kind="initial user",result="done"}';

const cluster = sharedCluster();
let installation: Installation;
let controller: ControllerProcess | undefined;

beforeAll(async () => {
  installation = await install(cluster);
});
afterAll(() => endController());

async function endController(): Promise<void> {
  await controller?.process.end();
  controller = undefined;
}

/** Starts the controller that leads next, and waits until it has seen whether there are users. */
async function lead(): Promise<void> {
  await endController();
  controller = await startController({ cluster, installation }, { environment: { GRANTRY_INITIAL_USER: 'ada' } });
  await controller.ready();
  await reconciled(1);
}

async function reconciled(count: number): Promise<void> {
  await until(`it was reconciled ${count} times`, async () => {
    const response = await fetch(`${controller?.admin}/metrics`);
    return (await response.text()).includes(`${RECONCILED} ${count}\n`);
  });
}

const path = (name: string) => `/api/v1/namespaces/${installation.namespace}/secrets/${name}`;

interface Secret {
  readonly type: string;
  readonly metadata: { readonly uid: string; readonly resourceVersion: string; readonly ownerReferences?: unknown };
  readonly data: Readonly<Record<string, string>>;
}

async function secret(): Promise<Secret | undefined> {
  const { body } = await cluster.call('GET', path('grantry-initial-user'));
  return body.code === 404 ? undefined : body;
}

const text = (found: Secret | undefined, key: string) => Buffer.from(found?.data[key] ?? '', 'base64').toString();

it('a namespace without users → a Secret with one, whose password signs in; the next leader leaves it as it is', async () => {
  await lead();
  const made = await secret();
  expect([made?.type, made?.metadata.ownerReferences]).toEqual([TYPE, undefined]);
  const users = new LocalUsers({ users: parseUsers(text(made, 'users.yaml')).filter(isUser), clock: systemClock });
  expect(await users.authenticate('ada', text(made, 'password'))).toMatchObject({ username: 'ada' });
  await lead();
  expect((await secret())?.metadata).toMatchObject({
    uid: made?.metadata.uid,
    resourceVersion: made?.metadata.resourceVersion,
  });
});

it('deleted without another users Secret → made again; deleted beside one → not, and not by the next leader', async () => {
  const before = await secret();
  await cluster.call('DELETE', path('grantry-initial-user'));
  await reconciled(2);
  const again = await secret();
  expect(text(again, 'password')).toMatch(/^[0-9a-z-]{35}$/);
  expect(text(again, 'password')).not.toBe(text(before, 'password'));
  const metadata = { namespace: installation.namespace, name: 'people' };
  await cluster.apply({ apiVersion: 'v1', kind: 'Secret', metadata, type: TYPE, stringData: { 'users.yaml': '[]' } });
  await cluster.call('DELETE', path('grantry-initial-user'));
  await reconciled(3);
  expect(await secret()).toBeUndefined();
  await lead();
  expect(await secret()).toBeUndefined();
  expect(controller?.process.output).not.toContain('"level":"error"');
});
