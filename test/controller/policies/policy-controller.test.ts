// What is said of a policy that cannot be taken. The API server refuses all of today's; that of a newer grantry may take what
// this one cannot read.

import { afterEach, expect, it, vi } from 'vitest';
import { PolicyController } from '../../../src/controller/policies/policy-controller.ts';
import type { EventFacts } from '../../../src/controller/reconciling/events.ts';
import {
  CLIENT_POLICIES,
  type KubernetesObject,
  NAMESPACES,
  OAUTH_CLIENTS,
} from '../../../src/kubernetes/objects/resources.ts';
import { PlayedObjects } from '../../kubernetes/played-objects.ts';
import { leaderOver, UNPLAYED } from '../leader.ts';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

function conditionsOf(object: KubernetesObject | undefined): readonly Condition[] {
  const { conditions = [] } = (object?.status ?? {}) as { readonly conditions?: readonly Condition[] };
  return conditions;
}

let controller: PolicyController | undefined;
afterEach(async () => {
  await controller?.stop();
  vi.useRealTimers();
});

const NEVER = () => false;

function play(refuses: (name: string) => boolean = NEVER) {
  vi.useFakeTimers();
  const policies = new PlayedObjects(CLIENT_POLICIES);
  const namespaces = new PlayedObjects(NAMESPACES);
  const events: EventFacts[] = [];
  controller = new PolicyController({
    api: leaderOver({
      ...UNPLAYED,
      apply: async (_resource, object) => {
        if (refuses(object.metadata.name)) throw new Error('the API server refuses the object');
        return policies.put(object);
      },
    }),
    sources: { policies, namespaces, clients: new PlayedObjects(OAUTH_CLIENTS) },
    className: 'default',
    record: (event: EventFacts) => events.push(event),
    clock: { now: Date.now },
    log: { error: () => refuses === NEVER && expect.fail() },
    metrics: { reconciled: () => {} },
  });
  return { policies, namespaces, events, controller };
}

it('a policy that cannot be taken is Stalled and reported by one Warning, until it can', async () => {
  const { policies, events, controller } = play();
  const write = async (scopes: readonly string[], generation: number) => {
    policies.put({ metadata: { name: 'gold', generation }, spec: { namespaceSelector: {}, allow: { scopes } } });
    await vi.advanceTimersByTimeAsync(5000);
    return conditionsOf(policies.get('gold')).map(({ type, status, reason }) => `${type}=${status} ${reason}`);
  };
  controller.start();
  const refused = ['Accepted=False InvalidManifest', 'Ready=False InvalidManifest', 'Stalled=True InvalidManifest'];
  const variable = '$' + '{tomorrow}';
  expect(await write([`${variable}/*`], 1)).toEqual(refused);
  expect(await write([`${variable}/read`], 2)).toEqual(refused);
  expect(events.map(({ type, reason, regarding }) => [type, reason, regarding.metadata.name])).toEqual([
    ['Warning', 'InvalidManifest', 'gold'],
  ]);
  expect(await write(['shop/*'], 3)).toEqual(['Accepted=True Accepted', 'Ready=True Ready']);
  expect(events.map(({ type, reason }) => `${type} ${reason}`)).toEqual(['Warning InvalidManifest', 'Normal Ready']);
});

it('an id that two of the selected namespaces may claim → AmbiguousClientIds, while there are two, and the policy counts', async () => {
  const { policies, namespaces, controller } = play();
  const spec = { namespaceSelector: { matchLabels: { tier: 'gold' } }, allow: { clientIds: ['own', 'billing-*'] } };
  policies.put({ metadata: { name: 'gold', generation: 1 }, spec });
  const gold = (name: string) => namespaces.put({ metadata: { name, labels: { tier: 'gold' } } });
  const reported = async () => {
    await vi.advanceTimersByTimeAsync(5000);
    return conditionsOf(policies.get('gold')).map(({ type, status }) => `${type}=${status}`);
  };
  gold('one');
  controller.start();
  expect(await reported()).toEqual(['Accepted=True', 'Ready=True']);
  gold('two');
  expect(await reported()).toEqual(['Accepted=True', 'Ready=True', 'AmbiguousClientIds=True']);
  namespaces.delete('two');
  expect(await reported()).toEqual(['Accepted=True', 'Ready=True']);
});

it('a selector of which nothing can be read → Stalled says that the policy permits nothing in every namespace', async () => {
  const { policies, namespaces, controller } = play();
  const spec = { namespaceSelector: { matchLabels: { tier: 7 } }, allow: { scopes: ['**'] } };
  policies.put({ metadata: { name: 'gold', generation: 1 }, spec });
  for (const name of ['one', 'two']) namespaces.put({ metadata: { name } });
  controller.start();
  await vi.advanceTimersByTimeAsync(5000);
  const stalled = conditionsOf(policies.get('gold')).find(({ type }) => type === 'Stalled');
  expect(stalled).toMatchObject({ status: 'True', reason: 'InvalidManifest' });
  expect(stalled?.message).toMatch(/^spec\.namespaceSelector\.matchLabels\.tier: .*permits nothing.*every namespace/);
  expect(policies.get('gold')?.status).toMatchObject({ matchedNamespaces: 2 });
});

it('a policy whose status the API server refuses → the others are reported all the same', async () => {
  const { policies, controller } = play((name) => name === 'a-refused');
  for (const name of ['a-refused', 'b', 'c'])
    policies.put({ metadata: { name, generation: 1 }, spec: { namespaces: [name] } });
  controller.start();
  await vi.advanceTimersByTimeAsync(5000);
  const isReported = (name: string) => conditionsOf(policies.get(name)).length > 0;
  expect(['a-refused', 'b', 'c'].map(isReported)).toEqual([false, true, true]);
});
