// A controller of one install inside the test's own process, over the real API server: with a clock that can be moved, and
// with replicas that say what a test wants them to.

import { expect, onTestFinished } from 'vitest';
import { readVerifierSecret, verifierSecretName } from '../../../src/admission/client-secrets/client-verifier.ts';
import { ClientController } from '../../../src/controller/clients/client-controller.ts';
import type { LeaderApiOptions } from '../../../src/controller/leadership/leader-api.ts';
import { LeadershipLostError } from '../../../src/controller/leadership/lease.ts';
import type { EventFacts } from '../../../src/controller/reconciling/events.ts';
import { PolledReplicas } from '../../../src/controller/replicas/observed-replicas.ts';
import { replicasAt } from '../../../src/controller/replicas/replicas.ts';
import { KubernetesError } from '../../../src/kubernetes/api/kubernetes-api.ts';
import { objectKey, type Resource } from '../../../src/kubernetes/objects/resources.ts';
import { CLIENT_AUTH_METHODS } from '../../../src/oauth/client-auth/index.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { ControllerSources } from '../../../src/processes/controller/controller-sources.ts';
import { connectCluster } from '../../../src/processes/lifecycle/cluster-connection.ts';
import { systemRandom } from '../../../src/processes/lifecycle/machine.ts';
import { leaderOver } from '../../controller/leader.ts';
import { askable } from '../../controller/replicas/replica-servers.ts';
import { until } from '../../until.ts';
import type { ApiAnswer, Cluster, Manifest } from './cluster.ts';
import { type Installation, install } from './installation.ts';
import { STARTS } from './limits.ts';

const ISSUER = 'https://id.example';
/** More than a new secret waits where no replica can be observed, in milliseconds. */
const UNOBSERVED = 6000;

/** One write of a controller, in the order in which they were asked for. */
export interface Write {
  readonly verb: 'create' | 'apply' | 'merge' | 'delete';
  readonly kind: string;
  readonly name: string;
}

interface StartOptions {
  /** Admin addresses of replicas; undefined: none is asked. */
  readonly replicas?: readonly string[];
  /** Dies right before the write that this picks: nothing is written any more. */
  readonly diesBefore?: (write: Write) => boolean;
  /** What happens right before a write. */
  readonly before?: (write: Write) => Promise<void>;
  /** What keeps a write on its way, whichever process leads when it arrives. */
  readonly onItsWay?: (write: Write) => Promise<void>;
  /** Writes that happen and that no answer comes of. */
  readonly isUnanswered?: (write: Write) => boolean;
  /** What happens when it knows all there is, and before it leads. */
  readonly beforeLeading?: (sources: ControllerSources) => Promise<void>;
  /** Undefined: all. */
  readonly watchNamespaces?: readonly string[];
  /** Default: those of the table. */
  readonly supportedAuthMethods?: readonly string[];
  /** Another way to the API server, such as a fault proxy. */
  readonly url?: string;
}

type OnTestFinished = (stop: () => Promise<void>) => void;

interface Context {
  readonly onTestFinished?: OnTestFinished;
}

/** A running controller. */
export interface RunningController {
  /** The reasons of the Events about a client. */
  eventsOf(name: string): readonly string[];
  /** Waits for them until they are these: what they report can be seen before. */
  expectEventsOf(name: string, reasons: readonly string[]): Promise<void>;
  /** What the Events say, about all clients. */
  notes(): readonly string[];
  readonly writes: readonly Write[];
  /** Waits until its watches have delivered all changes of a client with a secret, and its queue is empty. */
  whenAtRest(namespace: string, name: string): Promise<void>;
  /** Writes nothing more, except what is on its way. */
  losesLease(): void;
  stop(): Promise<void>;
}

/** An install in a cluster, and what tests observe. */
export class ClientInstall {
  readonly cluster: Cluster;
  readonly installation: Installation;
  /** How far the controllers' clock is ahead. Milliseconds. */
  ahead = 0;

  /** When its controllers end. */
  readonly #onTestFinished: OnTestFinished;

  private constructor(cluster: Cluster, installation: Installation, atEnd: OnTestFinished) {
    this.cluster = cluster;
    this.installation = installation;
    this.#onTestFinished = atEnd;
  }

  /** A new one. A concurrent test passes its own context. */
  static async make(
    cluster: Cluster,
    { onTestFinished: atEnd = onTestFinished }: Context = {},
  ): Promise<ClientInstall> {
    return new ClientInstall(cluster, await install(cluster), atEnd);
  }

  /** One that is there already. */
  static of(cluster: Cluster, installation: Installation): ClientInstall {
    return new ClientInstall(cluster, installation, onTestFinished);
  }

  readonly clock = { now: () => Date.now() + this.ahead };

  /** Starts a controller with the rights of a real one; it ends with the test. */
  async start({
    replicas,
    diesBefore = () => false,
    before = async () => {},
    onItsWay = async () => {},
    isUnanswered = () => false,
    beforeLeading = async () => {},
    watchNamespaces,
    supportedAuthMethods = [...CLIENT_AUTH_METHODS.keys()],
    url,
  }: StartOptions = {}): Promise<RunningController> {
    const { namespace: releaseNamespace, className, controllerToken: token } = this.installation;
    const files = [this.cluster.kubeconfig({ token, ...(url !== undefined && { url }) })];
    const connection = await connectCluster({ kind: 'kubeconfig', files });
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const sources = new ControllerSources({
      api: connection,
      clock: this.clock,
      random: systemRandom,
      log,
      metrics: { watchEvent: () => {}, watchRestarted: () => {}, changeRefused: () => {} },
      className,
      releaseNamespace,
      watchNamespaces,
      serverService: undefined,
      needsUsers: false,
    });
    const [events, writes]: [EventFacts[], Write[]] = [[], []];
    const leading = new AbortController();
    const written = async <Answer>(write: Write, resource: Resource, send: () => Promise<Answer>): Promise<Answer> => {
      await before(write);
      if (diesBefore(write)) {
        leading.abort();
        throw new LeadershipLostError();
      }
      writes.push(write);
      await onItsWay(write);
      const answer = await send();
      if (!isUnanswered(write)) return answer;
      throw new KubernetesError({ status: 0, reason: 'Timeout', verb: write.verb, resource, user: 'test' });
    };
    const calls: LeaderApiOptions['api'] = {
      get: (resource, at) => connection.get(resource, at),
      create: (resource, object) =>
        written({ verb: 'create', kind: resource.kind, name: object.metadata.name }, resource, () =>
          connection.create(resource, object),
        ),
      apply: (resource, object, options) =>
        written({ verb: 'apply', kind: resource.kind, name: object.metadata.name }, resource, () =>
          connection.apply(resource, object, options),
        ),
      merge: (resource, patch) =>
        written({ verb: 'merge', kind: resource.kind, name: patch.metadata.name }, resource, () =>
          connection.merge(resource, patch),
        ),
      delete: (resource, at) =>
        written({ verb: 'delete', kind: resource.kind, name: at.name }, resource, () =>
          connection.delete(resource, at),
        ),
    };
    const asked = askable(() => (replicas === undefined ? undefined : replicasAt(replicas)));
    const assertHeld = () => {
      if (leading.signal.aborted) throw new LeadershipLostError();
    };
    sources.start();
    await sources.whenSynced();
    await beforeLeading(sources);
    const controller = new ClientController({
      api: leaderOver(calls, assertHeld),
      sources,
      replicas: asked,
      observed: new PolledReplicas(asked),
      grantsOf: () => undefined,
      ownerOf: () => undefined,
      clock: this.clock,
      log,
      install: {
        issuer: ISSUER,
        className,
        releaseNamespace,
        defaultPolicy: 'Baseline',
        supportedAuthMethods,
        watchNamespaces,
      },
      record: (event) => events.push(event),
      random: systemRandom,
      metrics: { reconciled: () => {} },
    });
    controller.start();
    let stopped: Promise<void> | undefined;
    const stop = () => {
      leading.abort();
      stopped ??= controller.stop().then(async () => {
        await sources.stop();
        connection.close();
      });
      return stopped;
    };
    this.#onTestFinished(stop);
    const eventsOf = (name: string) =>
      events.filter(({ regarding }) => regarding.metadata.name === name).map(({ reason }) => reason);
    const expectEventsOf = async (name: string, reasons: readonly string[]) => {
      await until('all are recorded', () => eventsOf(name).length >= reasons.length).catch(() => {});
      expect(eventsOf(name)).toEqual(reasons);
    };
    const whenAtRest = (of: string, name: string) =>
      until(`nothing is left to do for ${name}`, async () => {
        const client = await this.client(of, name);
        const { binding } = client.status ?? {};
        const secret = binding && (await this.secret(of, binding.name));
        const kept = verifierSecretName(client.metadata.uid);
        const verifiers = await this.#get('/api/v1', releaseNamespace, 'secrets', kept);
        const there = [
          [sources.clients, client.metadata],
          ...(binding === undefined ? [] : [[sources.secrets, secret?.metadata] as const]),
          ...(verifiers.status === 200 ? [[sources.releaseSecrets, verifiers.body.metadata] as const] : []),
        ] as const;
        const isObserved = there.every(
          ([view, metadata]) =>
            metadata !== undefined &&
            view.get(objectKey(metadata))?.metadata.resourceVersion === metadata.resourceVersion,
        );
        return isObserved && controller.queued === 0;
      });
    const notes = () => events.map(({ note }) => note);
    return { eventsOf, expectEventsOf, notes, writes, whenAtRest, losesLease: () => leading.abort(), stop };
  }

  /** A machine client of this install. */
  manifest(namespace: string, name: string, spec: object = {}, metadata: object = {}): Manifest {
    const machine = { grantTypes: ['client_credentials'], scopes: [`${namespace}/read`] };
    return {
      apiVersion: 'grantry.dev/v1alpha1',
      kind: 'OAuthClient',
      metadata: { namespace, name, ...metadata },
      spec: { className: this.installation.className, ...machine, ...spec },
    };
  }

  /** Applies a client. */
  async apply(namespace: string, name: string, spec: object = {}, metadata: object = {}): Promise<void> {
    await this.cluster.apply(this.manifest(namespace, name, spec, metadata));
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests read what they know the object to hold
  async client(namespace: string, name: string): Promise<any> {
    return (await this.#get('/apis/grantry.dev/v1alpha1', namespace, 'oauthclients', name)).body;
  }

  /** The Secret, its data as texts; undefined when there is none. */
  async secret(namespace: string, name: string) {
    const { status, body } = await this.#get('/api/v1', namespace, 'secrets', name);
    if (status !== 200) return undefined;
    const texts = Object.entries((body.data ?? {}) as Record<string, string>).map(([key, value]) => [
      key,
      Buffer.from(value, 'base64').toString(),
    ]);
    return { metadata: body.metadata, type: body.type, data: Object.fromEntries(texts) as Record<string, string> };
  }

  /** What replicas read of a client. */
  async verifiers(uid: string) {
    const { namespace } = this.installation;
    const { body } = await this.#get('/api/v1', namespace, 'secrets', verifierSecretName(uid));
    return readVerifierSecret(body);
  }

  /** Whether replicas accept this secret now. */
  async accepts(uid: string, secret: string | undefined): Promise<boolean> {
    const { verifiers = [] } = (await this.verifiers(uid)) ?? {};
    const wanted = Buffer.from(secretVerifier(uid, secret ?? ''));
    const now = this.clock.now();
    return verifiers.some(
      ({ verifier, expiresAt }) => wanted.equals(verifier) && (expiresAt === undefined || expiresAt > now),
    );
  }

  /**
   * Lets the time pass for which a new secret waits where no replica can be observed, once one is stored that is newer than a
   * revision.
   */
  async passUnobserved(uid: string, revision: number): Promise<void> {
    await until('a new secret is stored', async () => ((await this.verifiers(uid))?.revision ?? 0) > revision);
    this.ahead += UNOBSERVED;
  }

  /** Waits until a condition of the client is as said; the client then. */
  async whenCondition(namespace: string, name: string, type: string, reason: string) {
    // biome-ignore lint/suspicious/noExplicitAny: tests read what they know the object to hold
    let found: any;
    await until(
      `${name} is ${type}/${reason}`,
      async () => {
        found = await this.client(namespace, name);
        const { status, metadata } = found;
        const condition = status?.conditions?.find((each: { type: string }) => each.type === type);
        return condition?.reason === reason && status.observedGeneration === metadata.generation;
      },
      STARTS,
    ).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(found?.status)}`);
    });
    return found;
  }

  whenReady(namespace: string, name: string) {
    return this.whenCondition(namespace, name, 'Ready', 'Ready');
  }

  /** Makes the watch deliver a client again, as nothing else does when only the clock has moved. */
  async poke(namespace: string, name: string): Promise<void> {
    const annotations = { 'example.com/poked': String(Math.random()) };
    await this.patch(`/apis/grantry.dev/v1alpha1/namespaces/${namespace}/oauthclients/${name}`, {
      metadata: { annotations },
    });
  }

  /** A merge patch as the cluster's admin. */
  async patch(path: string, body: object): Promise<ApiAnswer> {
    const answer = await this.cluster.call('PATCH', path, { body });
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.body.message}`);
    return answer;
  }

  #get(root: string, namespace: string, plural: string, name: string): Promise<ApiAnswer> {
    return this.cluster.call('GET', `${root}/namespaces/${namespace}/${plural}/${name}`);
  }
}
