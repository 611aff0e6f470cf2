import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { OAuthError } from '../../src/oauth/ports/error.ts';
import type { VerificationKey } from '../../src/oauth/values/jwk.ts';
import { GuardedFetch } from '../../src/outbound/guarded-fetch.ts';
import { PublishedKeySets } from '../../src/outbound/key-sets.ts';
import type { AddressLookup } from '../../src/outbound/name-lookup.ts';
import type { FetchReport } from '../../src/outbound/published-set.ts';
import { ReachableAddresses } from '../../src/outbound/reachable-addresses.ts';
import { TestClock } from '../grantry.ts';
import { until } from '../until.ts';
import { json, type KeyHost, publicJwk, startKeyHost, toLoopback } from './key-host.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const OWNER = { uid: 'uid-of-a', namespace: 'shop' };
const OLD = publicJwk('old');
const NEW = publicJwk('new');

let host: KeyHost;
let clock: TestClock;
let reports: FetchReport[];
let keySets: PublishedKeySets;

beforeAll(async () => {
  host = await startKeyHost();
});
afterAll(() => host.stop());
beforeEach(() => {
  clock = new TestClock();
  reports = [];
  keySets = newKeySets();
  host.answer = json({ keys: [OLD] });
});

function newKeySets(lookup: AddressLookup = toLoopback): PublishedKeySets {
  const reachable = new ReachableAddresses(['127.0.0.0/8']);
  const fetch = new GuardedFetch({ reachable, authorities: host.authority, lookup });
  return new PublishedKeySets({ fetch, clock, onFetch: (report) => reports.push(report) });
}

async function kidsAt(kid?: string, uri = host.uri(), owner = OWNER): Promise<readonly (string | undefined)[]> {
  return idsOf(await keySets.keysAt(owner, uri, kid));
}

function idsOf(keys: readonly VerificationKey[]): readonly (string | undefined)[] {
  return keys.map((key) => key.kid);
}

function outcomes(): readonly string[] {
  return reports.map(({ outcome }) => outcome);
}

async function refusal(asked: Promise<unknown>): Promise<Partial<OAuthError>> {
  const { code, reason, detail, retryAfterSeconds } = await asked.then(
    () => ({}) as OAuthError,
    (error: OAuthError) => error,
  );
  return { code, reason, detail, retryAfterSeconds } as Partial<OAuthError>;
}

function unavailable(detail: string): object {
  return { code: 'temporarily_unavailable', reason: 'client_jwks_unavailable', detail, retryAfterSeconds: 5 };
}

/** Answers that wait until they are released. */
function hold(content: unknown): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  host.answer = (request, response) => void promise.then(() => json(content)(request, response));
  return resolve;
}

function fail(): void {
  host.answer = (_request, response) => void response.writeHead(500).end();
}

describe('the first use', () => {
  it('given a set → its keys; given 20 calls at once → one fetch', async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => kidsAt('old')));
    expect(all).toEqual(Array(20).fill(['old']));
    expect(outcomes()).toEqual(['fetched']);
  });

  it('given keys for other purposes → they are left out', async () => {
    host.answer = json({ keys: [{ kty: 'oct', k: 'AAAA' }, { ...OLD, use: 'enc' }, 7, NEW] });
    expect(await kidsAt('new')).toEqual(['new']);
  });

  it.each([
    ['17 keys', { keys: Array(17).fill(OLD) }, 'too_many_keys'],
    ['17 keys of which one is usable', { keys: [...Array(16).fill({ kty: 'oct' }), OLD] }, 'too_many_keys'],
    ['a list', [OLD], 'not_a_key_set'],
    ['a single key', OLD, 'not_a_key_set'],
    ['null', null, 'not_a_key_set'],
  ])('given %s → 503', async (_name, content, outcome) => {
    host.answer = json(content);
    expect(await refusal(keySets.keysAt(OWNER, host.uri(), 'old'))).toEqual(unavailable(outcome));
    expect(outcomes()).toEqual([outcome]);
  });

  it('given 16 keys → all of them', async () => {
    host.answer = json({ keys: Array(16).fill(OLD) });
    expect(await kidsAt('old')).toHaveLength(16);
  });

  it('given an address that must not be fetched → 503', async () => {
    expect(await refusal(keySets.keysAt(OWNER, 'https://127.0.0.1/', undefined))).toEqual(
      unavailable('address_refused'),
    );
  });
});

describe('a failing host', () => {
  it('given nothing cached → 503, no further fetch for 5 seconds, and then the keys', async () => {
    fail();
    const all = await Promise.all([1, 2, 3].map(() => refusal(keySets.keysAt(OWNER, host.uri(), 'old'))));
    expect(all).toEqual(Array(3).fill(unavailable('status_refused')));
    host.answer = json({ keys: [OLD] });
    clock.advance(5 * SECOND - 1);
    expect(await refusal(keySets.keysAt(OWNER, host.uri(), 'old'))).toEqual(unavailable('status_refused'));
    expect(outcomes()).toEqual(['status_refused']);
    clock.advance(1);
    expect(await kidsAt('old')).toEqual(['old']);
  });

  it('given a cached set → it is used for 24 hours, and tried again every 5 seconds; then 503', async () => {
    await kidsAt('old');
    fail();
    clock.advance(24 * HOUR);
    expect(await kidsAt('old')).toEqual(['old']);
    expect(await kidsAt('old')).toEqual(['old']);
    expect(outcomes()).toEqual(['fetched', 'status_refused']);
    clock.advance(1);
    expect(await refusal(keySets.keysAt(OWNER, host.uri(), 'old'))).toEqual(unavailable('status_refused'));
    clock.advance(5 * SECOND);
    expect(await refusal(keySets.keysAt(OWNER, host.uri(), 'old'))).toEqual(unavailable('status_refused'));
    expect(outcomes()).toEqual(['fetched', 'status_refused', 'status_refused']);
  });

  it('given a host that comes back → its new set counts at once, the old one no more', async () => {
    await kidsAt('old');
    fail();
    clock.advance(3 * HOUR);
    await kidsAt('old');
    host.answer = json({ keys: [NEW] });
    clock.advance(5 * SECOND);
    expect(await kidsAt('old')).toEqual(['new']);
  });

  it('given failure, failure, success → the first and the last are news', async () => {
    fail();
    await refusal(keySets.keysAt(OWNER, host.uri(), 'old'));
    clock.advance(5 * SECOND);
    await refusal(keySets.keysAt(OWNER, host.uri(), 'old'));
    host.answer = json({ keys: [OLD] });
    clock.advance(5 * SECOND);
    await kidsAt('old');
    expect(reports.map(({ isNews }) => isNews)).toEqual([true, false, true]);
    expect(new Set(reports.map((report) => report.host))).toEqual(new Set([`a.keys.test:${host.port}`]));
  });
});

describe('how long a set is fresh', () => {
  it.each([
    [undefined, 5 * MINUTE],
    ['no-store', 5 * MINUTE],
    ['max-age=1', 5 * MINUTE],
    ['public, max-age=600', 10 * MINUTE],
    ['s-maxage=60, Max-Age="600"', 10 * MINUTE],
    ['max-age=86400', HOUR],
    [`max-age=${'9'.repeat(400)}`, HOUR],
    ['max-age=-1', 5 * MINUTE],
  ])('given Cache-Control %s → %i ms, and as long again while one fetch runs', async (cacheControl, fresh) => {
    host.answer = json({ keys: [OLD] }, cacheControl === undefined ? {} : { 'cache-control': cacheControl });
    await kidsAt('old');
    clock.advance(fresh);
    await kidsAt('old');
    expect(outcomes()).toEqual(['fetched']);

    const release = hold({ keys: [NEW] });
    clock.advance(1);
    expect(await Promise.all([kidsAt('old'), kidsAt('old')])).toEqual([['old'], ['old']]);
    clock.advance(fresh - 1);
    expect(await kidsAt('old')).toEqual(['old']);
    clock.advance(1);
    const waiting = kidsAt('new');
    release();
    expect(await waiting).toEqual(['new']);
    expect(outcomes()).toEqual(['fetched', 'fetched']);
  });
});

describe('a key that the cached set lacks', () => {
  it('given a rotation just after a fetch → fetched again at once', async () => {
    await kidsAt('old');
    host.answer = json({ keys: [OLD, NEW] });
    clock.advance(1);
    expect(await kidsAt('new')).toEqual(['old', 'new']);
  });

  it('given a flood of unknown keys → one fetch in 30 seconds', async () => {
    await kidsAt('old');
    clock.advance(1);
    const flood = () => Promise.all(Array.from({ length: 64 }, (_, index) => kidsAt(`unknown ${index}`)));
    expect(await flood()).toEqual(Array(64).fill(['old']));
    expect(outcomes()).toHaveLength(2);
    clock.advance(30 * SECOND - 1);
    await flood();
    expect(outcomes()).toHaveLength(2);
    clock.advance(1);
    await flood();
    expect(outcomes()).toHaveLength(3);
  });

  it('given a flood before anything is cached → one fetch', async () => {
    await Promise.all(Array.from({ length: 50 }, (_, index) => kidsAt(`unknown ${index}`)));
    clock.advance(30 * SECOND - 1);
    await kidsAt('unknown');
    expect(outcomes()).toEqual(['fetched']);
  });

  it('given a host that fails now → the cached keys, not 503', async () => {
    await kidsAt('old');
    fail();
    clock.advance(1);
    expect(await kidsAt('new')).toEqual(['old']);
  });

  it('given no kid and an empty set → fetched again', async () => {
    host.answer = json({ keys: [] });
    expect(await kidsAt()).toEqual([]);
    host.answer = json({ keys: [OLD] });
    clock.advance(30 * SECOND);
    expect(await kidsAt()).toEqual(['old']);
  });

  it('given no kid and keys → the cached ones, always the same objects', async () => {
    const first = await keySets.keysAt(OWNER, host.uri(), undefined);
    clock.advance(MINUTE);
    const second = await keySets.keysAt(OWNER, host.uri(), undefined);
    expect(second[0]).toBe(first[0]);
    expect(outcomes()).toEqual(['fetched']);
  });
});

describe('a host of two tenants', () => {
  it('given slow fetches of one → the other has its own fetch of the same address, and its own set', async () => {
    const release = hold({ keys: [OLD] });
    const before = host.requests.length;
    const busy = [host.uri('a'), host.uri('b'), host.uri('c')].map((uri) => kidsAt('old', uri));
    await until('the tenant has its share', () => host.requests.length === before + 2);
    host.answer = json({ keys: [NEW] });
    expect(await kidsAt('new', host.uri('c'), { uid: 'uid-of-b', namespace: 'team' })).toEqual(['new']);
    release();
    expect((await Promise.all(busy)).slice(0, 2)).toEqual([['old'], ['old']]);
    expect(outcomes()).toEqual(Array(4).fill('fetched'));
  });
});

describe('many addresses', () => {
  it('given 1 001 → the least recently used one is forgotten', async () => {
    // Without a host each: what is cached is that it failed.
    keySets = newKeySets(async () => []);
    const uri = (index: number) => host.uri(`h${index}`);
    for (let index = 0; index < 1000; index++) await refusal(keySets.keysAt(OWNER, uri(index), undefined));
    await refusal(keySets.keysAt(OWNER, uri(0), undefined));
    expect(reports).toHaveLength(1000);
    await refusal(keySets.keysAt(OWNER, uri(1000), undefined));
    await refusal(keySets.keysAt(OWNER, uri(0), undefined));
    expect(reports).toHaveLength(1001);
    await refusal(keySets.keysAt(OWNER, uri(1), undefined));
    expect(reports).toHaveLength(1002);
  });

  it('given 1 001 namespaces with the same address → each keeps its set', async () => {
    keySets = newKeySets(async () => []);
    const owner = (index: number) => ({ uid: `uid-${index}`, namespace: `team-${index}` });
    for (const round of [1, 2]) {
      for (let index = 0; index < 1001; index++)
        await refusal(keySets.keysAt(owner(index), host.uri('shared'), undefined));
      expect([round, reports.length]).toEqual([round, 1001]);
    }
  });

  it('given a hanging host → another address is answered meanwhile', async () => {
    const release = hold({ keys: [OLD] });
    const waiting = kidsAt('old', host.uri('slow'));
    await until('the slow host has the request', () => host.requests.at(-1)?.headers.host?.startsWith('slow') === true);
    host.answer = json({ keys: [NEW] });
    expect(await kidsAt('new', host.uri('quick'))).toEqual(['new']);
    release();
    expect(await waiting).toEqual(['old']);
  });
});
