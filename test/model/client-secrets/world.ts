// A cluster in virtual time: an API server in memory, two controllers, a replica of the token server, owners and other parties.
// One operation after the other happens to it; equal seeds and operations make equal histories.

import { createHash } from 'node:crypto';
import { readVerifierSecret } from '../../../src/admission/client-secrets/client-verifier.ts';
import { FIELD_MANAGER, type NewObject } from '../../../src/kubernetes/api/kubernetes-api.ts';
import {
  type KubernetesObject,
  NAMESPACES,
  OAUTH_CLIENTS,
  SECRETS,
} from '../../../src/kubernetes/objects/resources.ts';
import type { Random } from '../../../src/oauth/ports/ports.ts';
import { MemoryApi } from '../api-server/memory-api.ts';
import { ApiRefusal, MemoryApiServer, type StoredChange } from '../api-server/memory-api-server.ts';
import { VirtualTime } from '../virtual-time.ts';
import { ControllerProcess } from './controller-process.ts';
import { unconverged } from './converged-state.ts';
import { FaultyLink, type Sending } from './faulty-link.ts';
import { INSTALL } from './install.ts';
import { Ledger } from './ledger.ts';
import { StoredSecrets, TEAM, valueIn } from './stored-secrets.ts';
import { TokenServer } from './token-server.ts';

const START = Date.parse('2026-03-01T12:00:00Z');
/** Until a leader is elected and knows all there is. */
const STARTS = 3000;
/** How long a killed controller stays away. */
const RESTARTS = 1500;
const COLLECTS = 700;
/** Nothing is written for so long: it has converged. */
const QUIET = 5000;
/** What is refused or contested is tried again after ten minutes at most, doubled by what came before. */
const CONVERGES = 45 * 60_000;

export interface WorldOptions {
  /** Chooses delays and secrets. */
  readonly seed: number;
  readonly trace?: ((line: string) => void) | undefined;
}

export class World {
  readonly time = new VirtualTime(START);
  readonly server: MemoryApiServer;
  readonly stored: StoredSecrets;
  readonly ledger: Ledger;
  readonly tokenServer: TokenServer;
  /** Every state of each Secret of the owners that had a value, by name. */
  readonly backups = new Map<string, KubernetesObject[]>();
  readonly #seed: number;
  readonly #controllers: ControllerProcess[] = [];
  readonly #links: FaultyLink[] = [];
  /** How long after the next change of leader what waits for it arrives. Milliseconds. */
  lateness = 0;
  /** Those that ended or died, and may have timers. */
  readonly #former: ControllerProcess[] = [];
  #processes = 0;
  /** Until then the garbage collector stands still. Epoch milliseconds. */
  #collectsFrom = START;
  /** The request that the API server serves now. */
  #serving: Sending | undefined;

  private constructor({ seed, trace }: WorldOptions) {
    this.#seed = seed;
    const { time } = this;
    this.server = new MemoryApiServer({
      now: () => time.now(),
      onChange: (change) => {
        trace?.(this.#told(change));
        this.ledger.changed(change, this.#serving);
        if (change.resource === SECRETS && !change.isDeletion) this.#backUp(change.object);
        // A Secret may come after its owner is gone.
        if (change.isDeletion || this.stored.hasDanglingOwners(change.object)) this.#collectSoon();
      },
    });
    this.stored = new StoredSecrets(this.server);
    this.ledger = new Ledger({ server: this.server, time, tokenServer: () => this.tokenServer });
    const link = this.#link('token-server');
    const api = new MemoryApi(this.server, link);
    this.tokenServer = new TokenServer({ api, link, time, random: seededBytes(`${seed} token server`) });
  }

  /**
   * Lets something happen to a new world, and waits until it has converged.
   * @param options.trace called with each change of a Secret, client or Lease
   * @returns what broke a promise; none: nothing did
   */
  static async run(options: WorldOptions, happen: (world: World) => Promise<void>): Promise<readonly string[]> {
    const world = new World(options);
    world.time.install();
    try {
      await world.#start();
      await happen(world);
      return world.ledger.faults.length > 0 ? world.ledger.faults : await world.#converge();
    } finally {
      await world.#end();
    }
  }

  /** The controller that leads, or will; else the other one. */
  controller(isLeader: boolean): ControllerProcess {
    const leading = this.#controllers.find((each) => each.isLeading) ?? this.#controllers[0];
    const other = this.#controllers.find((each) => each !== leading);
    return (isLeader ? leading : other) as ControllerProcess;
  }

  /** A controller dies; another takes its place. What it has sent arrives. */
  crash(isLeader: boolean): void {
    const controller = this.controller(isLeader);
    if (this.#former.includes(controller)) return;
    controller.crash();
    this.#replace(controller);
  }

  /** Whether the watches of both controllers have delivered this Secret. */
  isSeen(secret: KubernetesObject): boolean {
    return this.#controllers.every((controller) => controller.hasSeen(secret));
  }

  /** A controller stands still for a while, and goes on where it was. */
  freeze(isLeader: boolean, milliseconds: number): void {
    this.time.freeze(this.controller(isLeader).link, milliseconds);
  }

  /** The garbage collector stands still for a while. */
  holdCollector(milliseconds: number): void {
    this.#collectsFrom = Math.max(this.#collectsFrom, this.time.now() + milliseconds);
    this.#collectSoon();
  }

  /** A controller ends in order, as in a rollout. */
  end(isLeader: boolean): void {
    const controller = this.controller(isLeader);
    if (this.#former.includes(controller)) return;
    controller.stop().catch((error: unknown) => this.ledger.faults.push(String(error)));
    this.#replace(controller);
  }

  /** Another party's write; one that is refused does not happen. */
  byOthers(write: (server: MemoryApiServer, manager: string) => void): void {
    try {
      write(this.server, 'kubectl');
    } catch (error) {
      if (!(error instanceof ApiRefusal)) throw error;
    }
  }

  /** An owner applies a manifest. */
  applyClient(name: string, spec: object): KubernetesObject {
    const machine = { grantTypes: ['client_credentials'], scopes: [`${TEAM}/read`] };
    const object: NewObject = { metadata: { namespace: TEAM, name }, spec: { ...machine, ...spec } };
    return this.server.apply(OAUTH_CLIENTS, object, { manager: 'kubectl' });
  }

  async #start(): Promise<void> {
    for (const name of [TEAM, INSTALL.releaseNamespace]) {
      this.server.create(
        NAMESPACES,
        { metadata: { name, labels: { 'kubernetes.io/metadata.name': name } } },
        'kubectl',
      );
    }
    this.tokenServer.start();
    this.#controllers.push(this.#newController(), this.#newController());
    await this.time.pass(STARTS);
  }

  async #converge(): Promise<readonly string[]> {
    for (const link of this.#links) link.heal();
    const { time, stored, ledger, tokenServer } = this;
    const end = time.now() + CONVERGES;
    for (;;) {
      await time.pass(QUIET);
      const faults = [...ledger.faults, ...unconverged({ stored, ledger, tokenServer, now: time.now() })];
      const isQuiet = time.now() - ledger.lastWrite >= QUIET;
      if (ledger.faults.length > 0 || (faults.length === 0 && isQuiet)) return faults;
      if (time.now() > end) return faults.length > 0 ? faults : ['Secrets are written again and again'];
    }
  }

  async #end(): Promise<void> {
    const all = [...this.#controllers, ...this.#former];
    for (const controller of all) controller.crash();
    this.tokenServer.link.breakWatches();
    this.tokenServer.link.cut();
    void this.tokenServer.stop();
    await this.time.pass(0);
    this.time.uninstall();
  }

  #told({ key, resource, object, isDeletion, manager }: StoredChange): string {
    const { sender = manager, sentAt = this.time.now() } = this.#serving ?? {};
    const verb = isDeletion ? 'deletes' : 'writes';
    const late = Math.round(this.time.now() - sentAt);
    const content = resource === SECRETS ? ` ${contentOf(object)}` : '';
    return `${Math.round(this.time.elapsed)} ${sender} ${verb} ${resource.kind} ${key} (sent ${late} ms ago)${content}`;
  }

  #backUp(secret: KubernetesObject): void {
    const { namespace, name } = secret.metadata;
    if (namespace !== TEAM || valueIn(secret) === undefined) return;
    this.backups.set(name, [...(this.backups.get(name) ?? []), secret]);
  }

  #newController(): ControllerProcess {
    const identity = `controller-${++this.#processes}`;
    const link = this.#link(identity);
    const controller = new ControllerProcess({
      identity,
      link,
      api: new MemoryApi(this.server, link, FIELD_MANAGER),
      observed: this.tokenServer.observed,
      time: this.time,
      random: seededBytes(`${this.#seed} ${identity}`),
      onLeading: () => {
        link.term += 1;
        for (const other of this.#links) if (other !== link) other.release(this.lateness);
      },
      onFault: (error) => this.ledger.faults.push(error instanceof Error ? String(error.stack) : String(error)),
    });
    controller.start();
    return controller;
  }

  #replace(controller: ControllerProcess): void {
    const index = this.#controllers.indexOf(controller);
    this.#former.push(controller);
    this.time.after(RESTARTS, () => {
      this.#controllers[index] = this.#newController();
    });
  }

  #link(sender: string): FaultyLink {
    const link: FaultyLink = new FaultyLink({
      sender,
      time: this.time,
      seed: this.#seed,
      onSend: (sending) => this.ledger.sent(sending),
      serve: (sending, perform) => {
        this.#serving = sending;
        try {
          return perform();
        } finally {
          this.#serving = undefined;
        }
      },
    });
    this.#links.push(link);
    return link;
  }

  /** The garbage collector of Kubernetes: what has owners, and none that is there, goes; else the owners that are gone. */
  #collect(): void {
    if (this.time.now() < this.#collectsFrom) return;
    for (const secret of this.stored.secrets.filter((each) => this.stored.hasDanglingOwners(each))) {
      const { metadata } = secret;
      const ownerReferences = metadata.ownerReferences?.filter(({ uid }) => this.stored.clientOf(uid) !== undefined);
      if (this.stored.isOrphaned(secret)) this.server.delete(SECRETS, metadata, 'garbage-collector');
      else this.server.merge(SECRETS, metadata, { metadata: { ownerReferences } }, 'garbage-collector');
    }
  }

  #collectSoon(): void {
    this.time.after(Math.max(COLLECTS, this.#collectsFrom - this.time.now()), () => this.#collect());
  }
}

/** Values by their first letters; verifiers by their numbers. */
function contentOf(secret: KubernetesObject): string {
  const stored = readVerifierSecret(secret);
  if (stored === undefined) return valueIn(secret)?.slice(0, 6) ?? '-';
  const verifiers = stored.verifiers.map(({ revision, expiresAt, verifier }) => {
    const end = expiresAt === undefined ? '' : ` until ${(expiresAt - START) / 1000} s`;
    return `#${revision} ${Buffer.from(verifier).toString('hex').slice(0, 6)}${end}`;
  });
  return `${stored.revision}: ${verifiers.join(', ')}`;
}

function seededBytes(seed: string): Random {
  let count = 0;
  return {
    bytes: (length) => createHash('shake256', { outputLength: length }).update(`${seed} ${++count}`).digest(),
  };
}
