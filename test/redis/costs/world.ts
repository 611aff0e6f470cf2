// A running grantry with all state in a Redis behind a tap, its clients, and what a row of the ledger prepares with it.

import { randomBytes } from 'node:crypto';
import type { Grant } from '../../../src/oauth/ports/grant-store.ts';
import type { IdentityProvider } from '../../../src/oauth/registry/identity-provider.ts';
import type { Resource } from '../../../src/oauth/registry/resource.ts';
import { Handles } from '../../../src/oauth/tokens/handles.ts';
import { systemClock } from '../../../src/processes/lifecycle/machine.ts';
import type { ManagedConnection } from '../../../src/redis/connection/connection.ts';
import { RedisKeys } from '../../../src/redis/connection/keys.ts';
import { ShardWatch } from '../../../src/redis/data-loss/shard-watch.ts';
import { redisStores } from '../../../src/redis/stores.ts';
import { type Grantry, PKCE, startGrantry, type TestClient, TestClock } from '../../grantry.ts';
import { connectPatiently } from '../setup/patience.ts';
import { type RedisServer, startRedis } from '../setup/servers.ts';
import { type Caller, credentials, presented } from './clients.ts';
import { CostCounter, type Counted, type Prepared } from './costs.ts';
import { localPeople, subjectOf, usernameOf } from './people.ts';
import { RedisTap } from './redis-tap.ts';

const ISSUER = 'https://id.example';
const PEPPER = Buffer.from('a pepper that is only ever used to count');
export const CALLBACK = 'https://app.example/cb';

/** What a token request is answered with; a member that was not sent is undefined. */
export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
}

type Form = Readonly<Record<string, string>>;

export interface WorldOptions {
  readonly clients: readonly TestClient[];
  readonly resources?: readonly Resource[];
  readonly providers?: readonly IdentityProvider[];
}

export class CostWorld {
  readonly grantry: Grantry;
  /** How many people have a name that was given out. */
  #people = 1;
  readonly #redis: RedisServer;
  readonly #tap: RedisTap;
  readonly #connection: ManagedConnection;

  private constructor(parts: { grantry: Grantry; redis: RedisServer; tap: RedisTap; connection: ManagedConnection }) {
    this.grantry = parts.grantry;
    this.#redis = parts.redis;
    this.#tap = parts.tap;
    this.#connection = parts.connection;
  }

  /** Starts it: limits are on, as by default, and nothing is sent to Redis but what requests need. */
  static async open({ clients, resources = [], providers = [] }: WorldOptions): Promise<CostWorld> {
    const redis = await startRedis();
    const tap = await RedisTap.to(redis.port);
    const connection = await connectPatiently(tap);
    const keys = new RedisKeys('grantry:');
    await writeMarkers(connection, keys);
    // It stands still, at a time that Redis takes for now.
    const clock = new TestClock();
    clock.advance(Date.now() - clock.now());
    const stores = redisStores({ connection, keys });
    const grantry = await startGrantry({
      clients,
      resources,
      owners: await localPeople(clock),
      issuer: ISSUER,
      rateLimits: true,
      clock,
      pepper: PEPPER,
      wrapStores: () => stores,
    });
    await grantry.usersRecorded();
    if (providers.length > 0) await grantry.setProviders(providers);
    return new CostWorld({ grantry, redis, tap, connection });
  }

  async close(): Promise<void> {
    await this.grantry.stop();
    await this.#connection.close();
    await this.#tap.close();
    await this.#redis.stop();
  }

  /** The cost of a request, as {@link CostCounter} counts it. */
  count(prepare: () => Promise<Prepared>, isExpected: (cost: Counted) => boolean): Promise<Counted> {
    const parts = { redis: this.#redis, tap: this.#tap, refreshClock: () => this.#connection.info() };
    return new CostCounter(parts).count(prepare, isExpected);
  }

  /** Those of the commands that write. */
  async writesAmong(names: readonly string[]): Promise<readonly string[]> {
    if (names.length === 0) return [];
    const answers = (await this.#redis.command('COMMAND', 'INFO', ...names)) as [string, number, string[]][];
    return answers.filter(([, , flags]) => flags.includes('write')).map(([name]) => name.toUpperCase());
  }

  /** A POST of a client, to be answered with this status. */
  async posting(path: string, caller: Caller, form: Form, status = 200): Promise<Prepared> {
    const send = await this.#sender(path, caller, form);
    return async () => expectStatus(await send(), status);
  }

  /** The same POST again, with the same credentials, to be answered with this status. */
  async replaying(path: string, caller: Caller, form: Form, status: number): Promise<Prepared> {
    const send = await this.#sender(path, caller, form);
    await expectStatus(await send(), 200);
    return async () => expectStatus(await send(), status);
  }

  async #sender(path: string, caller: Caller, form: Form): Promise<() => Promise<Response>> {
    const { headers, parameters } = await credentials(caller, this.grantry, path);
    return () => this.grantry.post(path, { ...form, ...parameters }, { headers });
  }

  /** The same, done. */
  async post(path: string, caller: Caller, form: Form): Promise<void> {
    await (await this.posting(path, caller, form))();
  }

  /** A call of userinfo with a token of this client, to be answered with this status. */
  callingUserinfo(caller: Caller, accessToken: string, status = 200): Prepared {
    const headers = presented(caller, accessToken, this.grantry);
    return async () => expectStatus(await fetch(this.grantry.url('/userinfo'), { headers }), status);
  }

  /** A code that a person has just been given, for the redemption of {@link redemption}. */
  code({ clientId }: Caller, grant: Partial<Grant> = {}): Promise<string> {
    return this.grantry.issueCode(clientId, { subject: subjectOf(usernameOf(0)), ...grant });
  }

  /** A person who has not been here yet. */
  newPerson(): string {
    return usernameOf(this.#people++);
  }

  /** A code as this issuer makes them, of a grant that there is not. */
  unknownCode(): string {
    const random = { bytes: (count: number) => randomBytes(count) };
    return new Handles({ issuer: ISSUER, peppers: [PEPPER], random }).newCode('usr_of-a-person-that-is-unknown').code;
  }

  /** Tokens that are made now are of so many seconds ago. */
  async earlier<Value>(seconds: number, work: () => Promise<Value>): Promise<Value> {
    this.grantry.clock.advance(-1000 * seconds);
    try {
      return await work();
    } finally {
      this.grantry.clock.advance(1000 * seconds);
    }
  }

  /** The tokens for a new code. */
  async tokens(caller: Caller, grant: Partial<Grant> = {}): Promise<Tokens> {
    return await this.redeem(caller, redemption(await this.code(caller, grant)));
  }

  /** The tokens for the code of a form. */
  async redeem(caller: Caller, form: Form): Promise<Tokens> {
    const redeem = await this.posting('/token', caller, form);
    return JSON.parse(String(await redeem())) as Tokens;
  }
}

/** The markers and watermarks of the shards, as every Redis of a server has them; the heartbeats end with that. */
async function writeMarkers(connection: ManagedConnection, keys: RedisKeys): Promise<void> {
  const watch = new ShardWatch({ connection, keys, issuer: ISSUER, clock: systemClock, observe: () => {} });
  await watch.start();
  watch.stop();
}

/** The form that redeems a code. */
export function redemption(code: string): Form {
  return { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: PKCE.verifier };
}

/** The form that refreshes. */
export function refreshing(token: string): Form {
  return { grant_type: 'refresh_token', refresh_token: token };
}

/** The body of an answer. @throws Error for another status: then another request was counted */
async function expectStatus(response: Response, status: number): Promise<string> {
  const text = await response.text();
  if (response.status !== status) throw new Error(`answered ${response.status}, not ${status}: ${text}`);
  return text;
}
