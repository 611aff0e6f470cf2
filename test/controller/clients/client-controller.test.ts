// The controller of clients over objects that only this test changes, by a clock of the test: what it writes, how often and
// when. What becomes of it at a real API server is tested in test/cluster/.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Condition } from '../../../src/admission/kinds/conditions.ts';
import { verifierSecret } from '../../../src/controller/client-secrets/credential-state.ts';
import { ClientController } from '../../../src/controller/clients/client-controller.ts';
import { conditionIn } from '../../../src/controller/reconciling/status-conditions.ts';
import type { Observation } from '../../../src/controller/replicas/observed-replicas.ts';
import { KubernetesError } from '../../../src/kubernetes/api/kubernetes-api.ts';
import {
  CLIENT_POLICIES,
  CONFIG_MAPS,
  ENDPOINT_SLICES,
  NAMESPACES,
  OAUTH_CLIENTS,
  type Resource,
  SECRETS,
  SERVICE_ACCOUNTS,
} from '../../../src/kubernetes/objects/resources.ts';
import { CLIENT_AUTH_METHODS } from '../../../src/oauth/client-auth/index.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { PlayedObjects } from '../../kubernetes/played-objects.ts';
import { aKey } from '../../oauth/values/signed-tokens.ts';
import { leaderOver, UNPLAYED } from '../leader.ts';

const RELEASE = 'grantry-system';
const TEAM = 'team';
const TODAY = '2026-03-01';
const MINUTE = 60_000;

/** What the replica reports, where it is not nothing. */
interface Told {
  lastUsed?: Record<string, string>;
  denied?: Record<string, { reason: string; generation: number; count: number; lastTime: string }[]>;
  alerts?: { id: string; type: string; clientUid: string; time: string }[];
}

function conflict(resource: Resource): KubernetesError {
  return new KubernetesError({ status: 409, reason: 'Conflict', verb: 'patch', resource, user: 'grantry' });
}

class Install {
  readonly clients = new PlayedObjects(OAUTH_CLIENTS);
  readonly policies = new PlayedObjects(CLIENT_POLICIES);
  readonly namespaces = new PlayedObjects(NAMESPACES);
  readonly releaseSecrets = new PlayedObjects(SECRETS);
  readonly endpointSlices = new PlayedObjects(ENDPOINT_SLICES);
  /** The namespaces of resources by identifier. */
  readonly owners = new Map<string, string>();
  observation: Observation = { outcome: 'NotObserved' };
  /** What happens while the replica is asked. */
  whileObserved = () => {};
  /** What happens to a Secret of the team on its way to the API server. */
  onItsWay = async () => {};
  /** Whether the watch is behind: no write meets the version that it is pinned to. */
  isBehind = false;
  statusWrites = 0;
  looks = 0;
  questions = 0;
  readonly events: string[] = [];
  /** `ResourcesGranted` of each client. */
  grants: Condition | undefined;
  readonly #reports: ((told: Told) => void)[] = [];
  #controller: ClientController | undefined;

  constructor() {
    this.namespaces.put({ metadata: { name: TEAM } });
  }

  /** Begins to lead, after any earlier leader. */
  async lead(): Promise<void> {
    await this.stop();
    const { clients, policies, namespaces, releaseSecrets, endpointSlices } = this;
    const log = { info: () => {}, error: (line: object) => expect.fail(JSON.stringify(line)) };
    this.#controller = new ClientController({
      api: leaderOver({
        ...UNPLAYED,
        get: async (resource, { namespace, name }) => this.#of(resource).get(`${namespace}/${name}`),
        create: async (resource, object) => {
          if (object.metadata.namespace === TEAM) await this.onItsWay();
          return this.#of(resource).put(object);
        },
        apply: async (resource, object) => {
          if (resource.kind === OAUTH_CLIENTS.kind) this.statusWrites += 1;
          if (this.isBehind) throw conflict(resource);
          return this.#of(resource).put(object);
        },
        delete: async (resource, { namespace, name }) => {
          this.#of(resource).delete(`${namespace}/${name}`);
          return 'deleted';
        },
      }),
      sources: {
        clients,
        policies,
        namespaces,
        releaseSecrets,
        endpointSlices,
        secrets: new PlayedObjects(SECRETS),
        configMaps: new PlayedObjects(CONFIG_MAPS),
        serviceAccounts: new PlayedObjects(SERVICE_ACCOUNTS),
      },
      install: {
        issuer: 'https://id.example',
        className: 'default',
        releaseNamespace: RELEASE,
        defaultPolicy: 'Baseline',
        supportedAuthMethods: [...CLIENT_AUTH_METHODS.keys()],
        watchNamespaces: undefined,
      },
      replicas: {
        find: () => [{ name: 'pod-1', url: 'http://pod-1' }],
        ask: (_replica, _path, _question, schema) =>
          new Promise((resolve) => {
            this.questions += 1;
            const answer = { cursor: '1', lastUsed: {}, denied: {} };
            this.#reports.push((told) => resolve(schema.parse({ ...answer, ...told })));
          }),
      },
      grantsOf: () => this.grants,
      ownerOf: (identifier) => this.owners.get(identifier),
      observed: {
        observe: async () => {
          this.whileObserved();
          return this.observation;
        },
      },
      record: ({ regarding, type, reason }) => {
        this.events.push(`${regarding.metadata.name} ${type} ${reason}`);
      },
      clock: { now: Date.now },
      random: systemRandom,
      log,
      metrics: {
        reconciled: () => {
          this.looks += 1;
        },
      },
    });
    this.#controller.start();
    await this.#flush();
  }

  async stop(): Promise<void> {
    this.report({});
    await this.#controller?.stop();
  }

  /** The replica answers the questions that it was asked. */
  report(told: Told): void {
    for (const answer of this.#reports.splice(0)) answer(told);
  }

  /** Clients without a secret, made before any process leads. @returns their uids */
  has(count: number, scopes = [`${TEAM}/read`]): readonly string[] {
    const spec = {
      grantTypes: ['authorization_code'],
      scopes,
      redirectUris: ['https://app.example/back'],
      auth: { method: 'none' },
    };
    const names = Array.from({ length: count }, (_, index) => `web-${index}`);
    return names.map((name) => this.clients.put({ metadata: { namespace: TEAM, name }, spec }).metadata.uid);
  }

  /** The resource `notes` of a namespace has a new verdict. @param owner undefined: it is refused */
  hasVerdict(identifier: string, namespace: string, owner: string | undefined): void {
    if (owner === undefined) this.owners.delete(identifier);
    else this.owners.set(identifier, owner);
    this.#controller?.grantsChanged([`${namespace}/notes`]);
  }

  /** What the only replica serves. */
  serves(uids: readonly string[], generation = 1): void {
    const served = uids.map((uid) => [uid, { generation, secretRevision: undefined }] as const);
    const state = { clients: new Map(served), resources: new Map(), keyIds: new Set<string>() };
    this.observation = { outcome: 'Observed', replicas: [{ name: 'pod-1', state }] };
  }

  /** What is said of the first client. */
  said(condition: string): unknown {
    return conditionIn(this.clients.get(`${TEAM}/web-0`)?.status, condition)?.reason;
  }

  async pass(milliseconds: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(milliseconds);
    await this.#flush();
  }

  /** What follows without any time. */
  async #flush(): Promise<void> {
    await vi.advanceTimersByTimeAsync(1);
  }

  #of({ kind }: Resource): PlayedObjects {
    return kind === SECRETS.kind ? this.releaseSecrets : this.clients;
  }
}

describe('the controller of clients', () => {
  let install: Install;

  beforeEach(() => {
    const toFake = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'] as const;
    // By then the time of day of nearly every client has come.
    vi.useFakeTimers({ toFake: [...toFake], now: Date.parse(`${TODAY}T23:59:00Z`) });
    install = new Install();
  });
  afterEach(async () => {
    await install.stop();
    vi.useRealTimers();
  });

  it('reports the last use of many clients by five writes a second and no more', async () => {
    const uids = install.has(100);
    await install.lead();
    expect([install.statusWrites, install.said('Programmed')]).toEqual([100, 'NotObserved']);
    install.report({ lastUsed: Object.fromEntries(uids.map((uid) => [uid, TODAY])) });
    const written: number[] = [];
    for (let second = 0; second < 25; second++) {
      const before = install.statusWrites;
      await install.pass(1000);
      written.push(install.statusWrites - before);
    }
    const [first, ...later] = written;
    // What was not used before may be used at once: those of one second.
    expect(first).toBeLessThanOrEqual(10);
    expect(Math.max(...later)).toBeLessThanOrEqual(5);
    expect(install.statusWrites).toBe(200);
  });

  it('an API that introspects for a resource of its namespace → Accepted while the resource is, whichever comes first', async () => {
    const identifier = 'urn:example:notes';
    const spec = {
      auth: { method: 'private_key_jwt', privateKeyJwt: { jwks: { keys: [aKey('ES256').jwk] } } },
      grantTypes: [],
      resourceServer: { audiences: [identifier] },
    };
    install.clients.put({ metadata: { namespace: TEAM, name: 'web-0' }, spec });
    await install.lead();
    expect(install.said('Accepted')).toBe('PolicyViolation');
    install.hasVerdict(identifier, 'elsewhere', 'elsewhere');
    install.hasVerdict(identifier, TEAM, TEAM);
    await install.pass(1000);
    expect(install.said('Accepted')).toBe('Accepted');
    install.hasVerdict(identifier, TEAM, undefined);
    await install.pass(1000);
    expect(install.said('Accepted')).toBe('PolicyViolation');
  });

  it('a client without a resource that it refers to, until it is granted → one Warning, and one Normal Event Ready', async () => {
    const granted = (status: Condition['status'], reason: string, observedGeneration: number): Condition => {
      return { type: 'ResourcesGranted', status, reason, message: 'As it is.', observedGeneration };
    };
    const spec = {
      grantTypes: ['authorization_code'],
      redirectUris: ['https://app.example/back'],
      auth: { method: 'none' },
    };
    const put = (generation: number) =>
      install.clients.put({
        metadata: { namespace: TEAM, name: 'app', generation },
        spec: { ...spec, displayName: `App ${generation}` },
      });
    await install.lead();
    install.grants = granted('False', 'ResourceNotGranted', 1);
    put(1);
    await install.pass(1000);
    install.grants = granted('True', 'ResourcesGranted', 2);
    put(2);
    await install.pass(1000);
    const events = install.events.filter((event) => event.startsWith('app '));
    expect(events).toEqual(['app Warning ResourceNotGranted', 'app Normal Ready']);
  });

  describe('two clients that claim one id', () => {
    const spec = (more: object = {}) => ({
      clientId: 'shared',
      grantTypes: ['authorization_code'],
      scopes: [`${TEAM}/read`],
      redirectUris: ['https://app.example/back'],
      auth: { method: 'none' },
      ...more,
    });
    const put = (name: string, more: object = {}, generation = 1) =>
      install.clients.put({ metadata: { namespace: TEAM, name, generation }, spec: spec(more) });

    beforeEach(() => {
      const allow = { clientIds: ['shared', 'other'] };
      install.policies.put({ metadata: { name: 'team' }, spec: { namespaceSelector: {}, allow } });
      put('holder');
    });

    it.each([
      ['is in the status', {}],
      ['stands behind another fault', { scopes: ['elsewhere/read'] }],
      ['stands behind its suspension', { suspended: true }],
    ])('the holder goes, and the conflict %s → one Warning ClientIdAcquired about the other', async (_, more) => {
      await install.pass(1000);
      put('parked', more);
      await install.lead();
      await install.pass(1000);
      install.clients.delete(`${TEAM}/holder`);
      await install.pass(1000);
      put('parked', {}, 2);
      await install.pass(1000);
      expect(install.events.filter((event) => event.endsWith('Acquired'))).toEqual(['parked Warning ClientIdAcquired']);
    });

    it('the holder goes while no controller leads → ClientIdAcquired by the next leader', async () => {
      await install.pass(1000);
      put('parked');
      await install.lead();
      await install.stop();
      install.clients.delete(`${TEAM}/holder`);
      await install.lead();
      await install.pass(1000);
      expect(install.events.filter((event) => event.endsWith('Acquired'))).toEqual(['parked Warning ClientIdAcquired']);
    });

    it.each([
      ['takes another id', { clientId: 'other' }],
      ['cannot be read any more', { scopes: 'x' }],
    ])('the one without it %s → no ClientIdAcquired', async (_, more) => {
      await install.pass(1000);
      put('parked');
      await install.lead();
      put('parked', more, 2);
      await install.pass(1000);
      expect(install.events).toContain('parked Warning ClientIdConflict');
      expect(install.events.filter((event) => event.endsWith('Acquired'))).toEqual([]);
    });
  });

  it('a verifier Secret of a client that it never saw → removed within a minute', async () => {
    await install.lead();
    const handled = { rotateAt: undefined, rotateNow: undefined };
    const verifiers = [{ verifier: secretVerifier('gone', 'secret'), revision: 1 }];
    const state = { revision: 1, verifiers, rotatedAt: 0, begunAt: undefined, handled };
    const owner = { namespace: TEAM, name: 'gone', uid: 'gone' };
    for (const _ of ['once', 'and again']) {
      const shared = { releaseNamespace: RELEASE, className: 'default' };
      install.releaseSecrets.put(verifierSecret(owner, state, shared));
      await install.pass(MINUTE);
      expect(install.releaseSecrets.objects()).toHaveLength(0);
    }
  });

  it('writes no status because it leads now and no replica takes requests', async () => {
    const uids = install.has(20);
    install.serves(uids);
    await install.lead();
    expect([install.statusWrites, install.said('Programmed')]).toEqual([20, 'Programmed']);
    install.observation = { outcome: 'NoReplicas' };
    await install.pass(MINUTE);
    await install.lead();
    await install.pass(MINUTE);
    expect([install.statusWrites, install.said('Programmed')]).toEqual([20, 'Programmed']);
    // Replicas are there again, and do not have it: it went on asking.
    install.serves([]);
    await install.pass(MINUTE);
    expect([install.statusWrites, install.said('Programmed')]).toEqual([40, 'Pending']);
  });

  it('reports nothing about a client that changed during its reconcile, before that change is reconciled', async () => {
    const uids = install.has(1);
    install.serves(uids);
    install.whileObserved = () => {
      install.whileObserved = () => {};
      install.clients.put({ metadata: { namespace: TEAM, name: 'web-0', generation: 2 } });
    };
    await install.lead();
    expect([install.statusWrites, install.said('Programmed')]).toEqual([0, undefined]);
    install.serves(uids, 2);
    await install.pass(MINUTE);
    const status = install.clients.get(`${TEAM}/web-0`)?.status;
    expect(conditionIn(status, 'Programmed')).toMatchObject({ reason: 'Programmed', observedGeneration: 2 });
  });

  it('queries again for a client that was refused meanwhile', async () => {
    const [uid = ''] = install.has(1, ['gold']);
    const spec = { namespaceSelector: {}, allow: { scopes: ['gold'] } };
    const permitting = () => install.policies.put({ metadata: { name: 'gold' }, spec });
    permitting();
    install.serves([uid]);
    await install.lead();
    expect(install.said('Programmed')).toBe('Programmed');
    install.policies.delete('gold');
    await install.pass(MINUTE);
    expect(install.said('Accepted')).toBe('PolicyViolation');
    install.observation = { outcome: 'NoReplicas' };
    permitting();
    await install.pass(MINUTE);
    expect([install.said('Accepted'), install.said('Programmed')]).toEqual(['Accepted', 'NoReplicas']);
  });

  it('given a watch that is behind → the alert is in its status once the watch has caught up', async () => {
    const [clientUid = ''] = install.has(1);
    await install.lead();
    install.isBehind = true;
    const lastTime = new Date().toISOString();
    install.report({
      denied: { [clientUid]: [{ reason: 'refresh_token.reuse_detected', generation: 2, count: 1, lastTime }] },
    });
    await install.pass(5000);
    expect(conditionIn(install.clients.get(`${TEAM}/web-0`)?.status, 'Alert')).toBeUndefined();
    install.isBehind = false;
    install.clients.put({ metadata: { namespace: TEAM, name: 'web-0', generation: 2 } });
    await install.pass(100);
    const status = install.clients.get(`${TEAM}/web-0`)?.status;
    expect(conditionIn(status, 'Alert')).toMatchObject({ observedGeneration: 2 });
  });

  it('asks replicas that a client waits for ever less often, up to every 30 seconds, and at once when they come and go', async () => {
    const uids = install.has(1);
    install.observation = { outcome: 'NoReplicas' };
    const asked: number[] = [];
    install.whileObserved = () => asked.push(Date.now());
    await install.lead();
    await install.pass(900);
    // Every 100 ms in the first second, before anything is reported.
    expect([asked.length >= 8, install.said('Programmed')]).toEqual([true, undefined]);
    await install.pass(10 * MINUTE);
    expect(install.said('Programmed')).toBe('NoReplicas');
    const gaps = asked.slice(1).map((at, index) => at - (asked[index] ?? 0));
    const reported = gaps.filter((gap) => gap > 100);
    expect(reported.slice(0, 2).every((gap) => gap >= 1500 && gap <= 2000)).toBe(true);
    expect(reported.slice(-10).every((gap) => gap >= 22_500 && gap <= 30_001)).toBe(true);
    const before = asked.length;
    install.serves(uids);
    install.endpointSlices.put({ metadata: { namespace: RELEASE, name: 'grantry-admin-1' } });
    await install.pass(100);
    expect([asked.length, install.said('Programmed')]).toEqual([before + 1, 'Programmed']);
  });

  it('reports the last use of a client at its time of day, and earlier with other news', async () => {
    const DAY = 24 * 60 * MINUTE;
    // Right after midnight no client's time of day has come.
    vi.setSystemTime(Date.parse(`${TODAY}T00:00:01Z`) + DAY);
    const [uid = ''] = install.has(1);
    install.serves([uid]);
    await install.lead();
    const today = () => new Date().toISOString().slice(0, 10);
    const lastUsed = () =>
      (install.clients.get(`${TEAM}/web-0`)?.status as { lastUsedTime?: string } | undefined)?.lastUsedTime;
    const use = async () => {
      install.report({ lastUsed: { [uid]: today() } });
      await install.pass(5000);
    };
    await use();
    expect([install.statusWrites, lastUsed()]).toEqual([1, undefined]);
    const denial = { reason: 'unauthorized_client', generation: 1, count: 1, lastTime: new Date().toISOString() };
    install.report({ denied: { [uid]: [denial] } });
    await install.pass(5000);
    expect([install.said('Denied'), lastUsed()]).toEqual(['UnauthorizedClient', `${today()}T00:00:00Z`]);
    const first = lastUsed();
    await install.pass(DAY);
    await use();
    expect(lastUsed()).toBe(first);
    await install.pass(DAY - MINUTE);
    expect(lastUsed()).toBe(new Date(Date.parse(first ?? '') + DAY).toISOString().replace('.000Z', 'Z'));
  });

  it('reconciles the clients of a namespace again when its labels change, or may have changed meanwhile', async () => {
    install.serves(install.has(3));
    await install.lead();
    const looks: number[] = [];
    for (const [labels, gap] of [
      [{ tier: 'two' }, {}],
      [{ tier: 'two' }, {}],
      [{ tier: 'two' }, { mayHaveSkippedStates: true }],
    ] as const) {
      const before = install.looks;
      install.namespaces.put({ metadata: { name: TEAM, labels } }, gap);
      await install.pass(100);
      looks.push(install.looks - before);
    }
    expect(looks).toEqual([3, 0, 3]);
  });
});
