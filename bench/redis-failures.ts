// What each failure of Redis costs a client, in milliseconds: one replica of the real program, one client that refreshes
// without a pause; two where one loses what the other keeps. Prints the table of docs/guides/redis.md: `node bench/redis-failures.ts`.

import { setTimeout as sleep } from 'node:timers/promises';
import { rejoined } from '../test/chaos/replicated-set.ts';
import {
  type ClientAnswer,
  type PersonName,
  type Replica,
  redemption,
  refreshing,
  startReplicas,
} from '../test/redis/processes/replicas.ts';
import { startCluster } from '../test/redis/setup/redis-cluster.ts';
import { startReplicated } from '../test/redis/setup/replicated-redis.ts';
import { isPrimary, replicationOf } from '../test/redis/setup/replication.ts';
import { LONG, type RedisServer, startRedis } from '../test/redis/setup/servers.ts';
import { until } from '../test/until.ts';

const ROUNDS = 5;
/** Sentinels begin no other fail-over before twice their `failover-timeout` is over, which is a second here; milliseconds. */
const FAIL_OVERS_APART = 2500;

const IN_STEP = 'master_link_status:up';

/** How long after a loss was seen something is made that is not lost with the rest, at most; milliseconds. */
const NOTICED = 2000;

/** One client with one family of a person; `refresh` answers how long it took. */
class RefreshingClient {
  readonly #replica: Replica;
  readonly #person: PersonName;
  #token: unknown;

  constructor(replica: Replica, person: PersonName) {
    this.#replica = replica;
    this.#person = person;
  }

  async signIn(): Promise<void> {
    const code = await this.#replica.issueCode('jwt', this.#person);
    this.#token = (await this.#replica.post('jwt', '/token', redemption(code ?? ''))).body.refresh_token;
  }

  async refresh(): Promise<{ readonly answer: ClientAnswer; readonly milliseconds: number }> {
    const begin = performance.now();
    const answer = await this.#replica.post('jwt', '/token', refreshing(this.#token));
    if (answer.status === 200) this.#token = answer.body.refresh_token;
    else if (answer.status !== 503) throw new Error(`a refresh was answered ${answer.status}`);
    return { answer, milliseconds: performance.now() - begin };
  }

  /** Signs in until a session outlasts the time that it takes to notice a loss. @returns how long the one took that was */
  async untilSignedIn(): Promise<number> {
    for (const begin = performance.now(); ; await sleep(5)) {
      await this.signIn();
      if (!(await this.#isServed())) continue;
      const total = performance.now() - begin;
      while (performance.now() < begin + total + NOTICED && (await this.#isServed())) await sleep(100);
      if (await this.#isServed()) return total;
    }
  }

  #isServed(): Promise<boolean> {
    return this.refresh().then(
      ({ answer }) => answer.status === 200,
      () => false,
    );
  }

  /** The times of so many refreshes in a row, each of them answered. */
  async timesAnswered(count: number): Promise<readonly number[]> {
    const times: number[] = [];
    while (times.length < count) {
      const { answer, milliseconds } = await this.refresh();
      if (answer.status !== 200) throw new Error(`a refresh was answered ${answer.status}`);
      times.push(milliseconds);
    }
    return times;
  }

  /** The times of so many refreshes in a row. */
  async times(count: number): Promise<readonly number[]> {
    const times: number[] = [];
    while (times.length < count) times.push((await this.refresh()).milliseconds);
    return times;
  }

  /** Refreshes until one is answered. @returns how long that took, and the slowest refusal on the way */
  async untilAnswered(): Promise<{ readonly total: number; readonly slowest: number }> {
    const begin = performance.now();
    for (let slowest = 0; ; await sleep(5)) {
      const { answer, milliseconds } = await this.refresh();
      if (answer.status === 200) return { total: performance.now() - begin, slowest };
      slowest = Math.max(slowest, milliseconds);
    }
  }
}

async function withClients(
  environment: Record<string, string>,
  work: (client: RefreshingClient, other: RefreshingClient) => Promise<void>,
) {
  const replicas = await startReplicas(1, environment);
  try {
    const replica = replicas.all[0] as Replica;
    const client = new RefreshingClient(replica, 'ann');
    const other = new RefreshingClient(replica, 'carol');
    for (const each of [client, other]) await each.signIn();
    await client.times(100);
    await work(client, other);
  } finally {
    await replicas.stop();
  }
}

async function repeated(work: () => Promise<number>): Promise<readonly number[]> {
  const results: number[] = [];
  while (results.length < ROUNDS) results.push(await work());
  return results;
}

function row(name: string, times: readonly number[]): void {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
  console.log(`| ${name} | ${at(0.5)} | ${at(1)} |`);
}

console.log('| milliseconds | median | most |\n| --- | --- | --- |');

const redis = await startRedis({ persistent: true });
await withClients({ GRANTRY_REDIS_URL: redis.url }, async (client) => {
  row('a refresh while all is well', await client.times(500));
  const refusals: number[] = [];
  const restarts = await repeated(async () => {
    await redis.kill();
    refusals.push(...(await client.times(50)));
    await redis.start();
    return (await client.untilAnswered()).total;
  });
  row('Redis is gone: until a refresh is refused', refusals);
  row('Redis has recovered from a restart: until a refresh is answered', restarts);
  const first: number[] = [];
  const later: number[] = [];
  const resumed = await repeated(async () => {
    redis.pause();
    const [one = 0, ...others] = await client.times(20);
    first.push(one);
    later.push(...others);
    redis.resume();
    return (await client.untilAnswered()).total;
  });
  row('Redis is silent: until the first refresh is refused', first);
  row('Redis is silent: until the next ones are refused', later);
  row('Redis is no longer silent: until a refresh is answered', resumed);
});
await redis.stop();

for (const wait of [undefined, '1:100']) {
  const replicated = await startReplicated();
  await replicated.setPatience(500);
  const name = wait === undefined ? 'Sentinel' : `Sentinel, GRANTRY_REDIS_WAIT=${wait}`;
  const environment = { GRANTRY_REDIS_URL: replicated.url, ...(wait !== undefined && { GRANTRY_REDIS_WAIT: wait }) };
  await withClients(environment, async (client) => {
    row(`${name}: a refresh while all is well`, await client.times(500));
    const outages: number[] = [];
    for (let round = 0; round < 3; round++) {
      const primary = await replicated.primary();
      await primary.kill();
      outages.push((await client.untilAnswered()).total);
      await primary.start();
      await rejoined(replicated);
      await sleep(FAIL_OVERS_APART);
    }
    row(`${name}, silent for 500 ms is down: the primary is killed, until a refresh is answered`, outages);
  });
  await replicated.stop();
}

const cluster = await startCluster();
await withClients({ GRANTRY_REDIS_URL: cluster.url }, async (client, other) => {
  row('Cluster: a refresh while all is well', await client.times(500));
  const [own] = cluster.primaries;
  const refusals: number[] = [];
  const others: number[] = [];
  const empty = await repeated(async () => {
    await own?.kill();
    refusals.push(...(await client.times(50)));
    others.push(...(await other.timesAnswered(50)));
    // It keeps no file.
    await own?.start();
    const total = await client.untilSignedIn();
    await other.untilSignedIn();
    return total;
  });
  row('Cluster, one primary is gone: until a refresh of what it has is refused', refusals);
  row('Cluster, one primary is gone: a refresh of what the others have', others);
  row('Cluster, a primary has recovered, empty: until a person who signs in again has a refresh answered', empty);
});
await cluster.stop();

const backed = await startCluster({ replicated: true });
await withClients({ GRANTRY_REDIS_URL: backed.url }, async (client) => {
  const outages: number[] = [];
  for (let round = 0; round < 3; round++) {
    // The first part of the keys, and the two servers that take turns with it.
    const [first, second] = [backed.primaries[0], backed.replicas[0]] as [RedisServer, RedisServer];
    const primary = (await isPrimary(first)) ? first : second;
    await backed.setPatience(500);
    await primary.kill();
    outages.push((await client.untilAnswered()).total);
    await primary.start();
    await backed.setPatience(LONG);
    await until('it is a replica', async () => (await replicationOf(primary)).includes(IN_STEP));
  }
  row('Cluster, silent for 500 ms is down: a primary is killed, until a refresh of what it had is answered', outages);
});
await backed.stop();
process.exit(0);
