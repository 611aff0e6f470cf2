import { describe, expect, it } from 'vitest';
import type { CredentialState } from '../../../src/controller/client-secrets/credential-state.ts';
import { clientStatus } from '../../../src/controller/clients/client-status.ts';
import { mayPublishSecret, storedClient } from '../../../src/controller/clients/programmed.ts';
import type { Observation } from '../../../src/controller/replicas/observed-replicas.ts';
import { ProgrammedObjects } from '../../../src/controller/replicas/programmed.ts';
import type { KubernetesObject } from '../../../src/kubernetes/objects/resources.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { admitOne, clientDocument } from '../../admission/world.ts';

const UID = 'uid-1';
const NOW = Date.parse('2026-03-01T12:00:00Z');
const NONE: Observation = { outcome: 'NoReplicas' };

/** Generation 3, as `clientDocument` has it. */
function clientAt(generation = 3): KubernetesObject {
  const metadata = {
    name: 'web',
    namespace: 'shop',
    uid: UID,
    generation,
    resourceVersion: '1',
    creationTimestamp: '',
  };
  return { apiVersion: 'grantry.dev/v1alpha1', kind: 'OAuthClient', metadata };
}

/** Secrets by their numbers, the newest first. */
function credentials(revision: number, ...secrets: number[]): CredentialState {
  const verifiers = secrets.map((each) => ({ verifier: secretVerifier(UID, String(each)), revision: each }));
  const handled = { rotateAt: undefined, rotateNow: undefined };
  return { revision, verifiers, rotatedAt: NOW, begunAt: undefined, handled };
}

const PRESENT = credentials(4, 2);

/** The revision of the credentials that each replica has at generation 3; undefined: it does not answer. */
function replicas(...revisions: (number | undefined)[]): Observation {
  const having = (secretRevision: number) => ({
    clients: new Map([[UID, { generation: 3, secretRevision }]]),
    resources: new Map<string, { generation: number }>(),
    keyIds: new Set<string>(),
  });
  const found = revisions.map((revision, index) => ({
    name: `pod-${index + 1}`,
    state: revision === undefined ? undefined : having(revision),
  }));
  return { outcome: 'Observed', replicas: found };
}

/** One leader after the other, who know of each other only what status says. */
class Leaders {
  observation: Observation = NONE;
  asked = 0;
  now = NOW;
  status: unknown;
  #programmed = this.#newLeader();

  changes(): void {
    this.#programmed = this.#newLeader();
  }

  /** What is said of the client, and stands in its status from then on. */
  async say({ generation = 3, state = PRESENT }: { generation?: number; state?: CredentialState } = {}) {
    const programmed = await this.#programmed.of(storedClient(clientAt(generation), state, this.status));
    const spec = { grantTypes: ['client_credentials'], scopes: ['shop/read'] };
    const document = clientDocument(spec, { name: 'web', namespace: 'shop' });
    const verdict = admitOne([document], { programmed: () => programmed });
    this.status = clientStatus(
      { verdict, credentials: state, notices: [], grants: undefined, lastUsed: undefined },
      this.status,
      NOW,
    );
    return `${programmed.status}/${programmed.reason}`;
  }

  async isServed(state: CredentialState): Promise<boolean> {
    return mayPublishSecret(await this.#programmed.of(storedClient(clientAt(), state)), this.now - NOW);
  }

  #newLeader(): ProgrammedObjects {
    const observe = async () => {
      this.asked += 1;
      return this.observation;
    };
    return new ProgrammedObjects({ replicas: { observe }, clock: { now: () => this.now }, random: systemRandom });
  }
}

describe('a client that all replicas serve', () => {
  async function served(): Promise<Leaders> {
    const leaders = new Leaders();
    leaders.observation = replicas(4, 4);
    expect(await leaders.say()).toBe('True/Programmed');
    return leaders;
  }

  it('stays programmed, and no replica is queried again', async () => {
    const leaders = await served();
    const { status, asked } = leaders;
    for (const later of [NONE, replicas(undefined, 4), replicas(3)]) {
      leaders.observation = later;
      expect(await leaders.say()).toBe('True/Programmed');
    }
    expect([leaders.asked, leaders.status]).toEqual([asked, status]);
  });

  it.each([
    ['takes requests', NONE],
    ['answers', replicas(undefined, undefined)],
    ['answers but those that serve it', replicas(4, undefined)],
  ])('has the same status from a new leader while none %s', async (_, observation) => {
    const leaders = await served();
    const { status } = leaders;
    leaders.changes();
    leaders.observation = observation;
    expect(await leaders.say()).toBe('True/Programmed');
    expect(leaders.status).toEqual(status);
    // It has seen nothing itself: it asks until it has.
    leaders.observation = replicas(4, 3);
    expect(await leaders.say()).toBe('False/Pending');
  });

  it.each([
    ['another generation', { generation: 4 }],
    ['a new secret on its way', { state: credentials(5, 3, 2) }],
    ['another secret', { state: credentials(5, 3) }],
  ])('is not programmed with %s before replicas say so, whichever process leads', async (_, change) => {
    for (const isNew of [false, true]) {
      const leaders = await served();
      if (isNew) leaders.changes();
      leaders.observation = NONE;
      expect(await leaders.say(change)).toBe('Unknown/NoReplicas');
      leaders.observation = replicas(undefined);
      expect(await leaders.say(change)).toBe('False/Pending');
    }
  });
});

describe('a client that was not observed as served', () => {
  it('has its new secret handed out after five seconds where no replica can be queried', async () => {
    const leaders = new Leaders();
    leaders.observation = { outcome: 'NotObserved' };
    const isServedAfter = (milliseconds: number) => {
      leaders.now = NOW + milliseconds;
      return leaders.isServed(PRESENT);
    };
    expect([await isServedAfter(0), await isServedAfter(4999), await isServedAfter(5000)]).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('waits for the replicas that are behind or say nothing', async () => {
    const leaders = new Leaders();
    const said: string[] = [];
    for (const observation of [NONE, replicas(3), replicas(4, undefined), replicas(4, 3), replicas(4, 4)]) {
      leaders.observation = observation;
      said.push(await leaders.say());
      leaders.changes();
    }
    const pending = 'False/Pending';
    expect(said).toEqual(['Unknown/NoReplicas', pending, pending, pending, 'True/Programmed']);
  });

  it('is not taken for served because no replica could be queried before', async () => {
    const leaders = new Leaders();
    leaders.observation = { outcome: 'NotObserved' };
    expect(await leaders.say()).toBe('True/NotObserved');
    leaders.observation = NONE;
    expect(await leaders.say()).toBe('Unknown/NoReplicas');
  });
});

it('a new secret is handed out by what replicas say, never by a status', async () => {
  const leaders = new Leaders();
  leaders.observation = replicas(4);
  await leaders.say();
  leaders.changes();
  leaders.observation = replicas(undefined);
  expect(await leaders.say()).toBe('True/Programmed');
  expect(await leaders.isServed(PRESENT)).toBe(false);
  leaders.observation = replicas(4);
  expect(await leaders.isServed(PRESENT)).toBe(true);
});
