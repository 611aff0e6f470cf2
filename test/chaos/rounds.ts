// One act of chaos: a Redis of one form, replicas of grantry on it, clients at work, and round after round one fault. After
// each round everything is asked about in the calm, and the history so far is checked.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Replicas, redemption, refreshing, startReplicas } from '../redis/processes/replicas.ts';
import { startCluster } from '../redis/setup/redis-cluster.ts';
import { startReplicated } from '../redis/setup/replicated-redis.ts';
import { startRedis } from '../redis/setup/servers.ts';
import { allReported, checkHistory, isUnanswered, SWEPT, type Violation } from './checker.ts';
import { CLUSTER_FAULTS } from './cluster-faults.ts';
import { type BoundFault, boundTo, REPLICA_FAULTS } from './faults.ts';
import type { AlertSeen, Fault, Operation } from './history.ts';
import { SeededRandom } from './seeded-random.ts';
import { SENTINEL_FAULTS } from './sentinel-faults.ts';
import { SERVER_FAULTS } from './server-faults.ts';
import { startProxy } from './tcp-proxy.ts';
import { Traffic } from './traffic.ts';

/** Redis in one form, with what can happen to it. */
interface Ground {
  readonly environment: Readonly<Record<string, string>>;
  /** Whether nothing is answered that no replica has acknowledged. */
  readonly needsReplicas: boolean;
  readonly faults: readonly BoundFault[];
  stop(): Promise<void>;
}

/** A form of Redis, before it is started. */
interface Form {
  /** The names of all that can happen there, to the replicas of grantry too. */
  readonly faults: readonly string[];
  start(random: SeededRandom): Promise<Ground>;
}

/** The forms of Redis there are. */
export const GROUNDS = {
  standalone: {
    faults: namesOf(SERVER_FAULTS),
    async start(random) {
      const server = await startRedis({ persistent: true });
      const proxy = await startProxy(server.port, () => random.happens(0.1));
      return {
        environment: { GRANTRY_REDIS_URL: `redis://127.0.0.1:${proxy.port}` },
        needsReplicas: false,
        faults: boundTo({ server, proxy }, SERVER_FAULTS),
        async stop() {
          await proxy.stop();
          await server.stop();
        },
      };
    },
  },
  sentinel: sentinelForm(),
  'sentinel, acknowledged by one replica': sentinelForm('1:100'),
  cluster: clusterForm(),
  'cluster, acknowledged by one replica': clusterForm('1:100'),
} as const satisfies Record<string, Form>;

function sentinelForm(acknowledgement?: string): Form {
  return {
    faults: namesOf(SENTINEL_FAULTS),
    async start() {
      const redis = await startReplicated();
      return {
        ...reachedBy(redis.url, acknowledgement),
        faults: boundTo(redis, SENTINEL_FAULTS),
        stop: () => redis.stop(),
      };
    },
  };
}

function clusterForm(acknowledgement?: string): Form {
  return {
    faults: namesOf(CLUSTER_FAULTS),
    async start() {
      const cluster = await startCluster({ replicated: true });
      return {
        ...reachedBy(cluster.url, acknowledgement),
        faults: boundTo(cluster, CLUSTER_FAULTS),
        stop: () => cluster.stop(),
      };
    },
  };
}

/** @param acknowledgement what is asked for of replicas */
function reachedBy(url: string, acknowledgement: string | undefined): Pick<Ground, 'environment' | 'needsReplicas'> {
  const asked = acknowledgement === undefined ? {} : { GRANTRY_REDIS_WAIT: acknowledgement };
  return { environment: { GRANTRY_REDIS_URL: url, ...asked }, needsReplicas: acknowledgement !== undefined };
}

function namesOf(kinds: readonly { readonly name: string }[]): readonly string[] {
  return [...kinds, ...REPLICA_FAULTS].map(({ name }) => name);
}

export interface ActOptions {
  readonly ground: keyof typeof GROUNDS;
  readonly seed: number;
  readonly rounds: number;
  readonly replicas: number;
  /** The names of the faults in this order, instead of a choice by the seed. */
  readonly faults?: readonly string[];
  /** Called after each round. */
  readonly observe?: (round: RoundReport) => void;
}

export interface RoundReport {
  readonly round: number;
  readonly fault: string;
  /** From when a server could answer again until every replica had given a client a good answer, in milliseconds. */
  readonly recovery: number;
  /** How long after that moment the last request was sent that failed, in milliseconds; 0 where none was. */
  readonly failing: number;
  readonly operations: number;
  readonly violations: readonly Violation[];
}

/** An act whose servers run, and have to be stopped. */
export interface StartedAct {
  /**
   * Runs its rounds, or those up to the first broken promise; checks them without their alerts.
   * @param until no round but the first `least` ones is begun after this time of `performance.now()`
   */
  play(until?: number, least?: number): Promise<ActReport>;
  /**
   * Checks with the alerts too, once those that had to wait have come, and any that is reported twice.
   * @param until a time of `performance.now()` after which those that are not there yet are not waited for, nor missed
   */
  check(until?: number): Promise<ActReport>;
  stop(): Promise<void>;
}

export interface ActReport {
  readonly rounds: readonly RoundReport[];
  readonly operations: readonly Operation[];
  readonly faults: readonly Fault[];
  readonly alerts: number;
  readonly violations: readonly Violation[];
}

/** What a replica that can reach Redis says. */
const ANSWERS: readonly string[] = ['granted', 'refused', 'revoked', 'active', 'inactive'];

const ALERTS = ['authorization_code.replayed', 'refresh_token.reuse_detected', 'state_lost'];

const HARMLESS = {
  lostSince: undefined,
  back: undefined,
  blind: undefined,
  breaksLogins: false,
  killsReplica: false,
  isOnlyFull: false,
} as const;

/** What is broken as long as an alert is on its way. */
const MAY_COME: Violation['promise'] = 'an alert for each cause';

/** How long before a fault a code was redeemed that is sent again after it, in milliseconds. */
const RECENT = 200;

/** How long the replicas may take to serve again; far more than they should, so that the history is checked. */
const PATIENCE = 60_000;

/** Runs an act to its end, or to the first broken promise. Leaves no process behind. */
export async function runAct(options: ActOptions): Promise<ActReport> {
  const act = await startAct(options);
  try {
    const report = await act.play();
    return report.violations.length > 0 ? report : await act.check();
  } finally {
    await act.stop();
  }
}

/** Starts the servers of an act. */
export async function startAct(options: ActOptions): Promise<StartedAct> {
  const random = new SeededRandom(options.seed);
  const ground = await GROUNDS[options.ground].start(random.fork());
  try {
    return new Act(options, random, ground, await startReplicas(options.replicas, ground.environment));
  } catch (error) {
    await ground.stop();
    throw error;
  }
}

class Act implements StartedAct {
  readonly #options: ActOptions;
  readonly #random: SeededRandom;
  readonly #ground: Ground;
  readonly #replicas: Replicas;
  readonly #kinds: readonly BoundFault[];
  readonly #operations: Operation[] = [];
  readonly #faults: Fault[] = [];
  readonly #rounds: RoundReport[] = [];
  readonly #grants = new Set<string>();
  readonly #traffic: Traffic;

  constructor(options: ActOptions, random: SeededRandom, ground: Ground, replicas: Replicas) {
    this.#options = options;
    this.#random = random;
    this.#ground = ground;
    this.#replicas = replicas;
    this.#kinds = [...ground.faults, ...boundTo(replicas.all, REPLICA_FAULTS)];
    this.#traffic = new Traffic({
      replicas: replicas.all,
      random: random.fork(),
      record: (operation) => {
        this.#operations.push(operation);
        this.#grants.add(operation.grantId);
      },
    });
  }

  async play(until = Number.POSITIVE_INFINITY, least = 1): Promise<ActReport> {
    try {
      for (let round = 1; round <= this.#options.rounds; round++) {
        if (round > least && performance.now() > until) break;
        const report = await this.#round(round);
        this.#rounds.push(report);
        this.#options.observe?.(report);
        if (report.violations.length > 0) break;
      }
    } finally {
      await this.#traffic.stop();
    }
    return this.#report(this.#rounds.at(-1)?.violations ?? []);
  }

  async check(until = Number.POSITIVE_INFINITY): Promise<ActReport> {
    const [missing, again] = [performance.now() + SWEPT, allReported(this.#faults)];
    for (;;) {
      const violations = checkHistory({ operations: this.#operations, faults: this.#faults, alerts: this.#alerts() });
      const end = violations.length === 0 ? again : missing;
      if (performance.now() > end) return this.#report(violations);
      if (performance.now() > until) return this.#report(violations.filter(({ promise }) => promise !== MAY_COME));
      await sleep(500);
    }
  }

  async stop(): Promise<void> {
    await this.#replicas.stop();
    await this.#ground.stop();
  }

  #report(violations: readonly Violation[]): ActReport {
    const alerts = this.#alerts().length;
    return { rounds: this.#rounds, operations: this.#operations, faults: this.#faults, alerts, violations };
  }

  async #round(round: number): Promise<RoundReport> {
    const before = this.#operations.length;
    const random = this.#random.fork();
    const kind = this.#kindOf(round, random);
    this.#traffic.start();
    await sleep(random.between(150, 400));
    const from = performance.now();
    const cost = await kind.strike(random);
    const over = performance.now();
    // Where replicas have to acknowledge, a primary alone is of no use.
    const mended = this.#ground.needsReplicas ? over : (cost.mended ?? over);
    const lastFailure = await this.#served();
    const to = performance.now();
    this.#faults.push({ ...HARMLESS, ...cost, name: kind.name, from, mended, over, lastFailure, to });
    await this.#traffic.replay(from - RECENT);
    await sleep(random.between(100, 300));
    await this.#traffic.stop();
    await this.#traffic.verify();
    const violations = checkHistory({ operations: this.#operations, faults: this.#faults, alerts: undefined });
    const operations = this.#operations.length - before;
    const failed = this.#operations.filter(({ begin, seen }) => begin >= from && isUnanswered(seen));
    const failing = Math.max(0, ...failed.map(({ begin }) => begin - mended));
    return { round, fault: kind.name, recovery: this.#recovery(mended), failing, operations, violations };
  }

  #recovery(mended: number): number {
    const good = this.#operations.filter(({ begin, seen }) => begin >= mended && ANSWERS.includes(seen.kind));
    const firsts = this.#replicas.all.map(({ name }) => good.find(({ replica }) => replica === name)?.end ?? mended);
    return Math.max(...firsts) - mended;
  }

  #kindOf(round: number, random: SeededRandom): BoundFault {
    const { faults } = this.#options;
    if (faults === undefined) return random.pick(this.#kinds);
    const name = faults[(round - 1) % faults.length];
    const kind = this.#kinds.find((each) => each.name === name);
    if (kind === undefined) throw new Error(`there is no fault called ${name}`);
    return kind;
  }

  /** Waits until every replica signs in, redeems and refreshes. @returns when the last try was begun that failed */
  async #served(): Promise<number | undefined> {
    const end = performance.now() + PATIENCE;
    let lastFailure: number | undefined;
    for (const replica of this.#replicas.all) {
      for (;;) {
        const begin = performance.now();
        const code = await replica.issueCode('jwt');
        const tokens = code === undefined ? undefined : await replica.post('jwt', '/token', redemption(code));
        const again =
          tokens?.status === 200
            ? await replica.post('jwt', '/token', refreshing(tokens.body.refresh_token))
            : undefined;
        if (again?.status === 200) break;
        lastFailure = begin;
        if (performance.now() > end) throw new Error(`${replica.name} does not serve again: ${JSON.stringify(tokens)}`);
        await sleep(20);
      }
    }
    return lastFailure;
  }

  #alerts(): readonly AlertSeen[] {
    const lines = this.#replicas.all.flatMap((replica) => replica.audits());
    return lines.flatMap(({ event: type, time, grantId }) => {
      if (grantId === undefined || !ALERTS.includes(type) || !this.#grants.has(grantId)) return [];
      return [{ type, grantId, reported: Date.parse(time) - performance.timeOrigin }];
    });
  }
}
