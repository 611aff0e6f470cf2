// The Secret with the first user of an install. A real API server's part of it is tested in test/cluster/install.

import fc from 'fast-check';
import { afterEach, expect, it, vi } from 'vitest';
import { InitialUser } from '../../../src/controller/install/initial-user.ts';
import { KubernetesError, type NewObject } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { type KubernetesObject, SECRETS } from '../../../src/kubernetes/objects/resources.ts';
import { hashPassword, LocalUsers } from '../../../src/login/local/local-users.ts';
import { isUser } from '../../../src/login/local/user-entry.ts';
import { usernameSchema } from '../../../src/login/local/username.ts';
import { parseUsers } from '../../../src/login/local/users-yaml.ts';
import { systemClock, systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { PlayedObjects } from '../../kubernetes/played-objects.ts';
import { until } from '../../until.ts';
import { leaderOver, UNPLAYED } from '../leader.ts';

const KEY = 'auth/grantry-initial-user';
const HASH = '$argon2id$v=19$m=19456,t=2,p=1$Z3JhbnRyeS1ub2JvZHktMQ$VVYLuSTgGzfULLjdglR/WQtPZDjO9Wlf3DPJHqetDk4';

const started: InitialUser[] = [];
afterEach(async () => {
  for (const each of started.splice(0)) await each.stop();
});

interface Stand {
  /** The users Secrets that the API server has; the cache has them as well unless another one is given. */
  readonly secrets?: PlayedObjects;
  readonly cached?: PlayedObjects;
  readonly username?: string;
  readonly create?: (object: NewObject) => KubernetesObject;
  readonly hash?: (password: string) => Promise<string>;
}

function start({ secrets = new PlayedObjects(SECRETS), cached = secrets, ...stand }: Stand = {}) {
  const { username = 'ada', hash = async () => HASH, create = (object: NewObject) => secrets.put(object) } = stand;
  const log = { info: vi.fn(), error: vi.fn() };
  const reconciled: string[] = [];
  const user = new InitialUser({
    username,
    api: leaderOver({ ...UNPLAYED, create: async (_, object) => create(object), get: async () => secrets.get(KEY) }),
    reader: {
      list: async () => ({ items: secrets.objects(), resourceVersion: '1', continue: undefined, bytes: 0 }),
    },
    sources: { usersSecrets: cached },
    releaseNamespace: 'auth',
    hashPassword: hash,
    random: systemRandom,
    log,
    metrics: { reconciled: (_, result) => void reconciled.push(result) },
  });
  started.push(user);
  user.start();
  const text = (key: string) => {
    const data = secrets.get(KEY)?.data as Record<string, string> | undefined;
    return data && Buffer.from(data[key] ?? '', 'base64').toString();
  };
  const settled = async (count: number) => await until('it was reconciled', () => reconciled.length >= count);
  return { secrets, log, reconciled, text, settled };
}

const others = () => {
  const secrets = new PlayedObjects(SECRETS);
  secrets.put({ metadata: { name: 'people', namespace: 'auth' }, type: 'grantry.dev/users' });
  return secrets;
};

it('without a users Secret → one is made, and its password signs its user in', async () => {
  const { secrets, log, text, settled } = start({ hash: hashPassword });
  await settled(1);
  expect(secrets.get(KEY)).toMatchObject({ type: 'grantry.dev/users' });
  const password = text('password') ?? '';
  expect(password).toMatch(/^([0-9a-hjkmnp-tv-z]{5}-){5}[0-9a-hjkmnp-tv-z]{5}$/);
  const users = new LocalUsers({ users: parseUsers(text('users.yaml')).filter(isUser), clock: systemClock });
  expect(await users.authenticate('ada', password)).toMatchObject({ username: 'ada' });
  const said = JSON.stringify(log.info.mock.calls);
  expect(said).toContain('grantry-initial-user');
  expect([said.includes(password), said.includes('argon2')]).toEqual([false, false]);
});

it('two installs → two passwords', async () => {
  const [one, other] = [start(), start()];
  await one.settled(1);
  await other.settled(1);
  expect(one.text('password')).not.toBe(other.text('password'));
});

it('a users Secret of any name → none is made', async () => {
  const { secrets, settled } = start({ secrets: others() });
  await settled(1);
  expect(secrets.get(KEY)).toBeUndefined();
});

it('a users Secret that the cache does not have yet → none is made', async () => {
  const { secrets, settled } = start({ secrets: others(), cached: new PlayedObjects(SECRETS) });
  await settled(1);
  expect(secrets.get(KEY)).toBeUndefined();
});

it('deleted with no other users Secret → it is made with another password', async () => {
  const { secrets, text, settled } = start();
  await settled(1);
  const before = text('password');
  secrets.delete(KEY);
  await settled(2);
  expect(text('password')).toMatch(/^[0-9a-z-]{35}$/);
  expect(text('password')).not.toBe(before);
});

it('deleted beside another users Secret → it stays away, also when that one is deleted', async () => {
  const { secrets, settled, reconciled } = start();
  await settled(1);
  secrets.put({ metadata: { name: 'people', namespace: 'auth' }, type: 'grantry.dev/users' });
  secrets.delete(KEY);
  await settled(2);
  secrets.delete('auth/people');
  await new Promise((resolve) => setImmediate(resolve));
  expect([secrets.get(KEY), reconciled]).toEqual([undefined, ['done', 'done']]);
});

it('changed by an administrator → it stays as it is', async () => {
  const { secrets, settled, reconciled } = start();
  await settled(1);
  const mine = { 'users.yaml': 'W10=' };
  secrets.put({ metadata: { name: 'grantry-initial-user', namespace: 'auth' }, data: mine });
  await new Promise((resolve) => setImmediate(resolve));
  expect([secrets.get(KEY)?.data, reconciled]).toEqual([mine, ['done']]);
});

const taken = (): never => {
  throw new KubernetesError({ status: 409, reason: 'AlreadyExists', verb: 'create', resource: SECRETS, user: 'g' });
};

it('made by another leader meanwhile → it is kept', async () => {
  const secrets = new PlayedObjects(SECRETS);
  const create = () => {
    secrets.put({ metadata: { name: 'grantry-initial-user', namespace: 'auth' }, type: 'grantry.dev/users' });
    return taken();
  };
  const { settled, reconciled } = start({ secrets, cached: new PlayedObjects(SECRETS), create });
  await settled(1);
  expect(reconciled).toEqual(['done']);
});

it('a Secret of another type in its place → an error names it, and it is not touched', async () => {
  const secrets = new PlayedObjects(SECRETS);
  const theirs = { metadata: { name: 'grantry-initial-user', namespace: 'auth' }, type: 'Opaque' };
  const create = () => {
    secrets.put(theirs);
    return taken();
  };
  const { settled, reconciled, log } = start({ secrets, cached: new PlayedObjects(SECRETS), create });
  await settled(1);
  expect(reconciled[0]).toBe('failed');
  expect(log.error).toHaveBeenCalled();
  expect(secrets.get(KEY)).toMatchObject(theirs);
});

const SPITEFUL = [
  '- - - - - - -',
  ',,,,,,,,,,,,,,,,,,,,,,',
  'a &b !c',
  '"]}\\',
  '[[[[[[[[[[[[[[',
  '%TAG',
  '---',
  'true',
];

it('any accepted username → users.yaml has that user', async () => {
  const name = fc.oneof(fc.string({ unit: 'binary', maxLength: 60 }), fc.string({ maxLength: 60 }));
  const accepted = name.filter((text) => usernameSchema.safeParse(text).success && text.isWellFormed());
  await fc.assert(
    fc.asyncProperty(accepted, async (text) => {
      const username = usernameSchema.parse(text);
      const { text: read, settled } = start({ username });
      await settled(1);
      expect(parseUsers(read('users.yaml'))).toEqual([{ username, passwordHash: HASH }]);
      await started.pop()?.stop();
    }),
    { numRuns: 30, examples: SPITEFUL.map((text) => [text]) },
  );
});
