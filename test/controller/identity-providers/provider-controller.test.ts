// The controller of identity providers over objects that only this test changes: what it writes, when, and what it reads.

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ProviderController } from '../../../src/controller/identity-providers/provider-controller.ts';
import { conditionIn } from '../../../src/controller/reconciling/status-conditions.ts';
import { type ProviderReports, ReportedProviders } from '../../../src/controller/replicas/reported-providers.ts';
import { IDENTITY_PROVIDERS, SECRETS } from '../../../src/kubernetes/objects/resources.ts';
import { PlayedObjects } from '../../kubernetes/played-objects.ts';
import { leaderOver, UNPLAYED } from '../leader.ts';

const RELEASE = 'grantry-system';

class World {
  readonly providers = new PlayedObjects(IDENTITY_PROVIDERS);
  /** Those of the right type. */
  readonly secrets = new PlayedObjects(SECRETS);
  /** The names of Secrets of other types. */
  readonly otherSecrets = new Set<string>();
  readonly reported = new ReportedProviders();
  readonly events: string[] = [];
  readonly lists: unknown[] = [];
  hurries = 0;
  writes = 0;
  readonly controller = new ProviderController({
    api: leaderOver({
      ...UNPLAYED,
      apply: async (_resource, object) => {
        this.writes += 1;
        return this.providers.put(object);
      },
    }),
    reader: {
      list: async (_resource, selection = {}) => {
        this.lists.push(selection);
        const name = String(selection.fieldSelector).replace('metadata.name=', '');
        const metadata = { name, namespace: RELEASE, uid: name, resourceVersion: '1', creationTimestamp: '' };
        const items = this.otherSecrets.has(name) ? [{ apiVersion: 'v1', kind: 'Secret', metadata }] : [];
        return { items, resourceVersion: '1', continue: undefined, bytes: 0 };
      },
    },
    sources: { providers: this.providers, providerSecrets: this.secrets },
    install: { issuer: 'https://id.example/auth', releaseNamespace: RELEASE },
    reported: this.reported,
    record: ({ regarding, type, reason }) => this.events.push(`${regarding.metadata.name} ${type} ${reason}`),
    clock: { now: Date.now },
    log: { error: (line: object) => expect.fail(JSON.stringify(line)) },
    metrics: { reconciled: () => {} },
  });

  constructor() {
    this.reported.onHurry(() => {
      this.hurries += 1;
    });
  }

  put(name: string, spec: object = {}, metadata: object = {}): void {
    this.providers.put({
      metadata: { name, namespace: RELEASE, ...metadata },
      spec: { type: 'OIDC', clientSecretRef: { name: 'client' }, oidc: { issuer: `https://${name}.example` }, ...spec },
    });
  }

  putSecret(name = 'client'): void {
    const [type, encoded] = ['grantry.dev/identity-provider', Buffer.from('text').toString('base64')];
    const data = { 'client-id': encoded, 'client-secret': encoded };
    this.secrets.put({ metadata: { name, namespace: RELEASE }, type, data });
  }

  reports(generation: number, reason = 'NotObserved'): ProviderReports {
    const corp = { generation, reachable: reason === 'Reachable', reason };
    return [{ name: 'pod-1', providers: new Map([['uid-corp', corp]]) }];
  }

  async conditions(name = 'corp', milliseconds = 200): Promise<readonly string[]> {
    await vi.advanceTimersByTimeAsync(milliseconds);
    const status = this.status(name);
    const types = ['Accepted', 'ResolvedRefs', 'Reachable', 'Programmed', 'Ready', 'Reconciling', 'Stalled'];
    return types.flatMap((type) => {
      const condition = conditionIn(status, type);
      return condition === undefined ? [] : [`${type}=${condition.status} ${condition.reason}`];
    });
  }

  status(name = 'corp'): unknown {
    return this.providers.get(`${RELEASE}/${name}`)?.status;
  }
}

let world: World;
beforeEach(() => {
  vi.useFakeTimers();
  world = new World();
});
afterEach(async () => {
  await world.controller.stop();
  vi.useRealTimers();
});

const USABLE = ['Accepted=True Accepted', 'ResolvedRefs=True ResolvedRefs'];

it('given a provider that every replica has and none has tried to reach → Programmed, and Ready is Unknown', async () => {
  world.putSecret();
  world.put('corp');
  world.reported.polled(world.reports(1));
  world.controller.start();
  expect(await world.conditions()).toEqual([
    ...[...USABLE, 'Reachable=Unknown NotObserved', 'Programmed=True Programmed'],
    ...['Ready=Unknown NotObserved', 'Reconciling=True NotObserved'],
  ]);
  expect(world.status()).toMatchObject({
    observedGeneration: 1,
    callbackUrl: 'https://id.example/auth/login/callback/corp',
  });
  expect(world.events).toEqual([]);
  const { writes } = world;
  world.reported.polled(world.reports(1));
  expect(await world.conditions()).toHaveLength(6);
  expect(world.writes).toBe(writes);
});

it('given that every replica reaches it → Ready; one that fails → one Warning, and an Event once all reach it again', async () => {
  world.putSecret();
  world.put('corp');
  world.reported.polled(world.reports(1, 'Reachable'));
  world.controller.start();
  const ready = [...USABLE, 'Reachable=True Reachable', 'Programmed=True Programmed', 'Ready=True Ready'];
  expect(await world.conditions()).toEqual(ready);
  world.reported.polled(world.reports(1, 'DiscoveryFailed'));
  expect(await world.conditions()).toContain('Ready=False DiscoveryFailed');
  world.reported.polled(world.reports(1, 'DiscoveryFailed'));
  await world.conditions();
  expect(world.events).toEqual(['corp Warning DiscoveryFailed']);
  world.reported.polled(world.reports(1, 'Reachable'));
  expect(await world.conditions()).toEqual(ready);
  expect(world.events).toEqual(['corp Warning DiscoveryFailed', 'corp Normal Ready']);
});

it('given people who sign in without groups → one Warning an hour, of the present generation', async () => {
  const overage = (generation: number): ProviderReports => {
    const corp = { generation, reachable: true, reason: 'Reachable', isOverage: true };
    return [
      { name: 'pod-1', providers: undefined },
      { name: 'pod-2', providers: new Map([['uid-corp', corp]]) },
    ];
  };
  world.putSecret();
  world.put('corp');
  world.reported.polled(overage(0));
  world.controller.start();
  await world.conditions();
  expect(world.events).toEqual([]);
  world.reported.polled(overage(1));
  await world.conditions();
  world.reported.polled(overage(1));
  await world.conditions('corp', 3_500_000);
  expect(world.events).toEqual(['corp Warning GroupsOverage']);
  vi.advanceTimersByTime(100_000);
  world.reported.polled(overage(1));
  await world.conditions();
  expect(world.events).toEqual(['corp Warning GroupsOverage', 'corp Warning GroupsOverage']);
});

it('given replicas that are behind → polled soon, and status waits a second for them', async () => {
  world.putSecret();
  world.put('corp');
  world.reported.polled([{ name: 'pod-1', providers: new Map() }]);
  world.controller.start();
  expect(await world.conditions()).toEqual([]);
  expect(world.hurries).toBe(1);
  await vi.advanceTimersByTimeAsync(1000);
  world.reported.polled([{ name: 'pod-1', providers: new Map() }]);
  expect(await world.conditions()).toContain('Programmed=False Pending');
  world.reported.polled(world.reports(1));
  expect(await world.conditions()).toContain('Programmed=True Programmed');
});

it('given no poll yet → a refused provider says so at once, and an accepted one waits', async () => {
  world.putSecret();
  world.put('corp');
  world.put('local');
  world.controller.start();
  expect(await world.conditions('local')).toEqual([
    ...['Accepted=False NameReserved', 'ResolvedRefs=True ResolvedRefs', 'Reachable=Unknown Pending'],
    ...['Programmed=Unknown Pending', 'Ready=False NameReserved', 'Stalled=True NameReserved'],
  ]);
  expect(world.events).toEqual(['local Warning NameReserved']);
  expect(await world.conditions()).toEqual([]);
});

it('given no Secret of the right type → whether there is another is asked by its name, and nothing of it is read', async () => {
  world.put('corp', { clientSecretRef: { name: 'grantry-pepper' } });
  world.reported.polled(world.reports(1));
  world.controller.start();
  expect(await world.conditions()).toContain('ResolvedRefs=False SecretNotFound');
  expect(await world.conditions()).toContain('Reconciling=True SecretNotFound');
  world.otherSecrets.add('grantry-pepper');
  world.reported.polled(world.reports(1));
  expect(await world.conditions()).toContain('ResolvedRefs=False SecretTypeMismatch');
  expect(await world.conditions()).toContain('Stalled=True SecretTypeMismatch');
  const asked = { namespace: RELEASE, fieldSelector: 'metadata.name=grantry-pepper', metadataOnly: true };
  expect(new Set(world.lists.map((list) => JSON.stringify(list)))).toEqual(new Set([JSON.stringify(asked)]));
  world.putSecret('grantry-pepper');
  expect(await world.conditions()).toContain('ResolvedRefs=True ResolvedRefs');
});

it('given that an older one of its issuer is deleted → the younger one is accepted', async () => {
  world.putSecret();
  const oidc = { issuer: 'https://corp.example' };
  world.put('older', { oidc }, { creationTimestamp: '2025-01-01T00:00:00Z' });
  world.put('corp', { oidc });
  world.reported.polled(world.reports(1));
  world.controller.start();
  expect(await world.conditions()).toContain('Accepted=False IssuerTaken');
  world.providers.delete(`${RELEASE}/older`);
  expect(await world.conditions()).toContain('Accepted=True Accepted');
});
