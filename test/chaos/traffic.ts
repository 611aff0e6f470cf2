// Clients of all replicas: they sign people in, redeem, refresh, ask about tokens and revoke; some misuse what they have.
// Everything they ask and see goes into the history.

import { setTimeout as sleep } from 'node:timers/promises';
import { RedisKeys } from '../../src/redis/connection/keys.ts';
import {
  type ClientAnswer,
  type ClientName,
  grantIdOf,
  PEOPLE,
  type Replica,
  redemption,
  refreshing,
  uidOf,
} from '../redis/processes/replicas.ts';
import type { Operation, Seen } from './history.ts';
import type { SeededRandom } from './seeded-random.ts';

/** A code and what came of it, as its client knows it. */
interface Family {
  readonly client: ClientName;
  readonly grantId: string;
  readonly code: string;
  readonly codeGiven: number;
  /** When the answer came that the family was begun with. */
  begun: number;
  /** By generation; a client has seen all of them. */
  readonly refreshTokens: string[];
  readonly accessTokens: { readonly token: string; readonly given: number }[];
  /** It is used only to check that it is revoked. */
  isSpoilt: boolean;
  isBusy: boolean;
}

type Asked = Pick<Operation, 'kind' | 'generation' | 'intent' | 'given'> & {
  /** Of what is needed beside the grant and its client. */
  readonly shard?: string;
  readonly path: string;
  readonly form: Readonly<Record<string, string>>;
};

const KEYS = new RedisKeys('');

/** The most families at a time, and how many clients use them. */
const MOST_FAMILIES = 30;
const ACTORS = 4;

export interface TrafficOptions {
  readonly replicas: readonly Replica[];
  readonly random: SeededRandom;
  readonly record: (operation: Operation) => void;
}

/** Clients at work between `start` and `stop`. */
export class Traffic {
  readonly #replicas: readonly Replica[];
  readonly #random: SeededRandom;
  readonly #record: (operation: Operation) => void;
  #families: Family[] = [];
  #isStopped = true;
  #actors: readonly Promise<void>[] = [];

  constructor({ replicas, random, record }: TrafficOptions) {
    this.#replicas = replicas;
    this.#random = random;
    this.#record = record;
  }

  start(): void {
    this.#isStopped = false;
    this.#actors = Array.from({ length: ACTORS }, () => this.#act(this.#random.fork()));
  }

  /** Resolves when every request that was sent has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#actors);
  }

  /** Sends half of the codes once more that were redeemed since then: what a server forgot it may not do again. */
  async replay(since: number): Promise<void> {
    const young = this.#families.filter(({ begun, isBusy, refreshTokens }) => {
      return begun >= since && !isBusy && refreshTokens.length > 0 && this.#random.happens(0.5);
    });
    for (const family of young) family.isBusy = true;
    for (const family of young) await this.#redeem(family, this.#random, 'misuse');
    for (const family of young) family.isBusy = false;
  }

  /** Asks about every family, active and revoked, in the calm; then forgets some of them. */
  async verify(): Promise<void> {
    for (const family of this.#families) {
      await this.#introspect(family, this.#random);
      if (family.refreshTokens.length > 0) await this.#refresh(family, this.#random);
    }
    this.#families = this.#families.filter(() => this.#random.happens(0.4));
  }

  async #act(random: SeededRandom): Promise<void> {
    while (!this.#isStopped) {
      const idle = this.#families.filter(({ isBusy }) => !isBusy);
      if (idle.length === 0 || (this.#families.length < MOST_FAMILIES && random.happens(0.2))) {
        await this.#begin(random);
      } else {
        const usable = idle.filter(({ isSpoilt }) => !isSpoilt);
        const family = random.pick(usable.length > 0 && random.happens(0.8) ? usable : idle);
        family.isBusy = true;
        await this.#use(family, random);
        family.isBusy = false;
      }
      await sleep(random.between(2, 25));
    }
  }

  async #begin(random: SeededRandom): Promise<void> {
    const client = random.pick(['jwt', 'opaque'] as const);
    const code = await random.pick(this.#replicas).issueCode(client, random.pick(PEOPLE));
    if (code === undefined) return;
    const given = performance.now();
    const family: Family = {
      client,
      code,
      grantId: grantIdOf(code),
      codeGiven: given,
      begun: given,
      refreshTokens: [],
      accessTokens: [],
      isSpoilt: false,
      isBusy: true,
    };
    this.#families.push(family);
    // Some clients take their time: their codes are under way when something happens.
    if (random.happens(0.3)) await sleep(random.between(50, 600));
    if (random.happens(0.2)) {
      await Promise.all([1, 2, 3].map(() => this.#redeem(family, random, 'misuse')));
    } else {
      const { kind } = await this.#redeem(family, random, 'honest');
      // Its answer is lost: a client that does not know better sends the code again.
      if ((kind === 'unavailable' || kind === 'lost') && random.happens(0.4)) {
        await this.#redeem(family, random, 'misuse');
      }
    }
    family.isBusy = false;
  }

  async #use(family: Family, random: SeededRandom): Promise<void> {
    if (family.refreshTokens.length === 0 || random.happens(0.35)) return await this.#introspect(family, random);
    if (family.isSpoilt || random.happens(0.9)) {
      const times = random.happens(0.2) ? 2 : 1;
      await Promise.all(Array.from({ length: times }, () => this.#refresh(family, random)));
      return;
    }
    const newest = family.refreshTokens.length - 1;
    switch (random.pick(['revoke', 'reuse', 'reuse', 'replay'])) {
      case 'revoke':
        return await this.#revoke(family, random);
      case 'replay':
        return void (await this.#redeem(family, random, 'misuse'));
      case 'reuse':
        if (newest >= 2) await this.#reuse(family, random, random.between(0, newest - 2));
    }
  }

  async #redeem(family: Family, random: SeededRandom, intent: Operation['intent']): Promise<Seen> {
    if (intent === 'misuse') family.isSpoilt = true;
    const asked = { kind: 'redeem', generation: undefined, intent, given: family.codeGiven } as const;
    const { seen, body } = await this.#ask(family, random, { ...asked, path: '/token', form: redemption(family.code) });
    if (seen.kind === 'granted') {
      family.begun = performance.now();
      this.#keep(family, 0, body);
    }
    return seen;
  }

  async #refresh(family: Family, random: SeededRandom): Promise<void> {
    const generation = family.refreshTokens.length - 1;
    const asked = { kind: 'refresh', generation, intent: 'honest', given: family.begun } as const;
    const form = refreshing(family.refreshTokens[generation]);
    const { seen, body } = await this.#ask(family, random, { ...asked, path: '/token', form });
    if (seen.kind === 'granted') this.#keep(family, seen.generation, body);
    if (seen.kind === 'refused') family.isSpoilt = true;
  }

  async #reuse(family: Family, random: SeededRandom, generation: number): Promise<void> {
    family.isSpoilt = true;
    const asked = { kind: 'refresh', generation, intent: 'misuse', given: family.begun } as const;
    const form = refreshing(family.refreshTokens[generation]);
    await this.#ask(family, random, { ...asked, path: '/token', form });
  }

  async #revoke(family: Family, random: SeededRandom): Promise<void> {
    family.isSpoilt = true;
    const generation = family.refreshTokens.length - 1;
    const asked = { kind: 'revoke', generation, intent: 'honest', given: family.begun } as const;
    const form = { token: String(family.refreshTokens[generation]) };
    await this.#ask(family, random, { ...asked, path: '/revoke', form });
  }

  async #introspect(family: Family, random: SeededRandom): Promise<void> {
    if (family.accessTokens.length === 0) return;
    const { token, given } = random.pick(family.accessTokens);
    const asked = { kind: 'introspect', generation: undefined, intent: 'honest' } as const;
    // An opaque token is a record of its own; a JWT lives as long as its family.
    const depends = family.client === 'opaque' ? given : family.begun;
    const shard = family.client === 'jwt' ? { shard: shardOfMark(token) } : {};
    await this.#ask(family, random, { ...asked, ...shard, given: depends, path: '/introspect', form: { token } });
  }

  async #ask(family: Family, random: SeededRandom, asked: Asked): Promise<{ seen: Seen; body: ClientAnswer['body'] }> {
    const { path, form, shard, ...operation } = asked;
    const replica = random.pick(this.#replicas);
    const begin = performance.now();
    const answer = await replica.post(family.client, path, form);
    const seen = read(asked.kind, answer);
    const { grantId, client } = family;
    const shards = [grantId.slice(0, 3), KEYS.shardOfClient(uidOf(client)), ...(shard === undefined ? [] : [shard])];
    this.#record({ ...operation, grantId, replica: replica.name, shards, begin, end: performance.now(), seen });
    return { seen, body: answer.body };
  }

  #keep(family: Family, generation: number, { refresh_token, access_token }: ClientAnswer['body']): void {
    family.refreshTokens[generation] = String(refresh_token);
    family.accessTokens.push({ token: String(access_token), given: performance.now() });
  }
}

/** Where it is marked that this JWT was revoked. */
function shardOfMark(token: string): string {
  const { jti } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { jti: string };
  return KEYS.shardOfKey(KEYS.revokedToken(jti));
}

function read(kind: Operation['kind'], { status, body }: ClientAnswer): Seen {
  if (status === 0) return { kind: 'lost' };
  if (status === 503) return { kind: 'unavailable' };
  if (status === 200) {
    switch (kind) {
      case 'redeem':
      case 'refresh':
        return { kind: 'granted', generation: Number(String(body.refresh_token).split('.')[3]) };
      case 'revoke':
        return { kind: 'revoked' };
      case 'introspect':
        return { kind: body.active === true ? 'active' : 'inactive' };
    }
  }
  if (status === 400 && body.error === 'invalid_grant' && kind !== 'revoke') return { kind: 'refused' };
  return { kind: 'unexpected', what: `${status} ${String(body.error)}` };
}
