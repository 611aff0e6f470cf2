// What each failure of Redis costs a client, in milliseconds: one replica of the real program, one client that refreshes
// without a pause. Prints the table of docs/guides/redis.md: `node bench/redis-failures.ts`.

import { setTimeout as sleep } from 'node:timers/promises';
import { type ClientAnswer, type Replica, redemption, refreshing, startReplicas } from '../test/redis/replicas.ts';
import { startRedis, startReplicated } from '../test/redis/servers.ts';

const ROUNDS = 5;

/** One client with one family; `refresh` answers how long it took. */
class RefreshingClient {
  readonly #replica: Replica;
  #token: unknown;

  constructor(replica: Replica) {
    this.#replica = replica;
  }

  async signIn(): Promise<void> {
    const code = await this.#replica.issueCode('jwt');
    this.#token = (await this.#replica.post('jwt', '/token', redemption(code ?? ''))).body.refresh_token;
  }

  async refresh(): Promise<{ readonly answer: ClientAnswer; readonly milliseconds: number }> {
    const begin = performance.now();
    const answer = await this.#replica.post('jwt', '/token', refreshing(this.#token));
    if (answer.status === 200) this.#token = answer.body.refresh_token;
    else if (answer.status !== 503) throw new Error(`a refresh was answered ${answer.status}`);
    return { answer, milliseconds: performance.now() - begin };
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

async function withClient(environment: Record<string, string>, work: (client: RefreshingClient) => Promise<void>) {
  const replicas = await startReplicas(1, environment);
  try {
    const client = new RefreshingClient(replicas.all[0] as Replica);
    await client.signIn();
    await client.times(100);
    await work(client);
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
await withClient({ GRANTRY_REDIS_URL: redis.url }, async (client) => {
  row('a refresh while all is well', await client.times(500));
  const refusals: number[] = [];
  const restarts = await repeated(async () => {
    await redis.kill();
    refusals.push(...(await client.times(50)));
    await redis.start();
    return (await client.untilAnswered()).total;
  });
  row('Redis is gone: until a refresh is refused', refusals);
  row('Redis is back after a restart: until a refresh is answered', restarts);
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
  await withClient(environment, async (client) => {
    row(`${name}: a refresh while all is well`, await client.times(500));
    const outages: number[] = [];
    for (let round = 0; round < 3; round++) {
      const primary = await replicated.primary();
      await primary.kill();
      outages.push((await client.untilAnswered()).total);
      await primary.start();
      // The Sentinels have to see it as a replica again.
      await sleep(5000);
    }
    row(`${name}, silent for 500 ms is down: the primary is killed, until a refresh is answered`, outages);
  });
  await replicated.stop();
}
process.exit(0);
