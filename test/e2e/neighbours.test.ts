// A second install in the same cluster, which may read some namespaces only; and one whose Redis is not there.

import { afterAll, describe, expect, it } from 'vitest';
import { runTokenJob } from './setup/jobs.ts';
import {
  apply,
  canI,
  createNamespace,
  deleteNamespaces,
  eventually,
  get,
  outcomeOf,
  waitReady,
} from './setup/kubectl.ts';
import { Release } from './setup/release.ts';
import { machineSpec, oauthClient } from './setup/tenants.ts';

const ONE_OF_EACH = { server: { replicas: 1 }, controller: { replicas: 1 } };

describe('a second install, of another class and for one namespace', () => {
  const second = new Release({ namespace: 'e2e-second', name: 'second' });
  const [watched, other] = ['e2e-watched', 'e2e-unwatched'];
  const className = 'second';

  afterAll(async () => {
    if (await second.isInstalled()) await second.uninstall();
    await deleteNamespaces(second.namespace, watched, other);
  });

  it('gets the instruction to leave the CRDs to the first', async () => {
    await createNamespace(second.namespace);
    const installed = second.install({
      issuer: 'https://second.example',
      className,
      redis: { dev: { enabled: true } },
    });
    await expect(installed).rejects.toThrow(/set crds\.enabled=false/);
  });

  it('gives tokens to clients of its class, and leaves those of the first alone', async () => {
    for (const namespace of [watched, other]) await createNamespace(namespace);
    await second.install({
      issuer: 'https://second.example',
      className,
      watchNamespaces: [watched],
      crds: { enabled: false },
      ...ONE_OF_EACH,
      redis: { dev: { enabled: true } },
    });
    await apply(oauthClient(watched, 'theirs', { ...machineSpec(watched), className }));
    await apply(oauthClient(watched, 'firsts', machineSpec(watched)));
    await waitReady(watched, 'oauthclient/theirs', 'oauthclient/firsts');
    const ask = (name: string, tokenUrl: string) => {
      return runTokenJob({ namespace: watched, name, secretName: `${name}-oauth`, tokenUrl });
    };
    const [theirs, firsts] = await Promise.all([ask('theirs', second.tokenUrl), ask('firsts', second.tokenUrl)]);
    expect([theirs.status, theirs.claims.iss]).toEqual([200, 'https://second.example']);
    expect([firsts.status, firsts.claims.error]).toEqual([401, 'invalid_client']);
  });

  it('does not see a client of its class in another namespace', async () => {
    await apply(oauthClient(other, 'unseen', { ...machineSpec(other), className }));
    await apply(oauthClient(watched, 'seen', { ...machineSpec(watched), className }));
    await waitReady(watched, 'oauthclient/seen');
    expect((await get('oauthclient', 'unseen', other)).metadata.generation).toBe(1);
    expect(await outcomeOf('kubectl', ['get', 'secret', 'unseen-oauth', '-n', other])).toMatchObject({ code: 1 });
  });

  it('may read and write Secrets of no namespace but its own and that one', async () => {
    const account = `system:serviceaccount:${second.namespace}:${second.nameOf('controller')}`;
    for (const verb of ['get', 'list', 'watch', 'create', 'patch', 'delete']) {
      expect([verb, await canI(account, verb, 'secrets')]).toEqual([verb, false]);
      expect([verb, await canI(account, verb, 'secrets', other)]).toEqual([verb, false]);
      expect([verb, await canI(account, verb, 'secrets', watched)]).toEqual([verb, true]);
    }
  });

  it('passes helm test', async () => {
    const { code, output, errors } = await second.test();
    expect([code, output, errors]).toEqual([0, expect.stringContaining('Succeeded'), '']);
  });
});

describe('an install whose Redis is not there, with the longest name that Helm takes', () => {
  const broken = new Release({ namespace: 'e2e-broken', name: 'b'.repeat(53) });
  const redis = 'redis.e2e-broken.svc:6379';

  afterAll(async () => {
    if (await broken.isInstalled()) await broken.uninstall();
    await deleteNamespaces(broken.namespace);
  });

  it('becomes ready all the same', async () => {
    await createNamespace(broken.namespace);
    await broken.install({
      issuer: 'https://broken.example',
      className: 'broken',
      crds: { enabled: false },
      ...ONE_OF_EACH,
      redis: { url: `redis://${redis}` },
    });
  });

  it('says on /readyz and in its log which address does not answer', async () => {
    expect(await broken.readyz('server')).toContain(redis);
    await eventually('the log names it', async () => (await broken.logs('server')).includes(redis));
  });

  it('fails helm test, which says so', async () => {
    const { code, output, errors } = await broken.test();
    expect(code).not.toBe(0);
    expect(`${output}${errors}`).toContain(redis);
  });
});
