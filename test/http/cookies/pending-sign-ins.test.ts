// The cookies of pending sign-ins at a provider, in a jar as browsers keep it, over Fastify: whatever comes back opens what
// was sealed for this browser, or nothing.

import { randomBytes } from 'node:crypto';
import cookies from '@fastify/cookie';
import fc from 'fast-check';
import Fastify from 'fastify';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PendingSignIns, type SealedSignIn } from '../../../src/http/cookies/pending-sign-ins.ts';
import { OAuthError } from '../../../src/oauth/ports/error.ts';
import type { AuthorizationSnapshot } from '../../../src/oauth/ports/login-stores.ts';
import { cookieHeader, keepCookie } from '../sign-in/sign-in-browser.ts';

/** In seconds. */
const LIFETIME = 600;
const STATE_LENGTH = 43;

const clock = { time: 1_800_000_000_000, now: () => clock.time };
const random = { bytes: (count: number) => randomBytes(count) };
const pendingSignIns = new PendingSignIns({
  issuer: 'https://login.example.com',
  peppers: [Buffer.alloc(32, 1)],
  clock,
  random,
});
const app = Fastify();
/** What the next request does. */
let kept: { readonly browser: string; readonly sent: Omit<SealedSignIn, 'leftAt'> };
let taken: { readonly browser: string; readonly state: string };

beforeAll(async () => {
  await app.register(cookies);
  app.get('/keep', async (request, reply) => {
    try {
      pendingSignIns.keep({ request, reply }, kept.browser, kept.sent);
      return 'kept';
    } catch (error) {
      return error instanceof OAuthError ? error.reason : String(error);
    }
  });
  app.get('/take', async (request, reply) => {
    return { sent: pendingSignIns.take({ request, reply }, taken.browser, taken.state) ?? null };
  });
});
afterAll(() => app.close());

type Jar = Map<string, string>;
let jar: Jar;
beforeEach(() => {
  jar = new Map();
});

async function send(path: string, from: Jar) {
  const answer = await app.inject({ url: path, headers: { cookie: cookieHeader(from) } });
  for (const line of [answer.headers['set-cookie'] ?? []].flat()) keepCookie(from, line);
  return answer;
}

const newState = () => randomBytes(32).toString('base64url');

/** @param length of random text in the request, which does not deflate */
function awayWith(length: number, state = newState()): Omit<SealedSignIn, 'leftAt'> {
  const request: AuthorizationSnapshot = {
    clientUid: '6f0f0b52-6f0e-5c6a-9d57-0f5d2a6f2b11',
    clientId: 'shop.web',
    redirectUri: 'https://app.example.com/cb',
    scope: ['orders:read'],
    audiences: ['https://api.example.com'],
    codeChallenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    state: randomBytes(length).toString('base64url').slice(0, length),
  };
  return {
    destination: { request },
    provider: { name: 'corp', uid: 'uid-corp', issuer: 'https://corp.example.com' },
    pending: { state, nonce: newState(), codeVerifier: newState() },
  };
}

async function keep(sent: Omit<SealedSignIn, 'leftAt'>, browser = 'browser', from = jar): Promise<string> {
  kept = { browser, sent };
  return (await send('/keep', from)).body;
}

async function take(state: string, browser = 'browser', from = jar): Promise<unknown> {
  taken = { browser, state };
  const { statusCode, body } = await send('/take', from);
  expect(statusCode).toBe(200);
  return (JSON.parse(body) as { sent: unknown }).sent;
}

const ofSignIns = (from: Jar) => [...from].filter(([name]) => name.startsWith('__Host-grantry-away-'));
const charactersOf = (from: Jar) => ofSignIns(from).reduce((sum, [, value]) => sum + value.length, 0);

const SIZE = fc.integer({ min: 0, max: 6000 });

describe('a pending sign-in', () => {
  it('of any size that fits → comes back as it was, once, and leaves no cookie', async () => {
    await fc.assert(
      fc.asyncProperty(SIZE, async (size) => {
        const [from, sent] = [new Map<string, string>(), awayWith(size)];
        expect(await keep(sent, 'browser', from)).toBe('kept');
        const copy = new Map(from);
        const { state } = sent.pending;
        expect(await take(state, 'browser', from)).toEqual(Object.assign({ leftAt: clock.now() }, sent));
        expect(ofSignIns(from)).toEqual([]);
        for (const value of copy.values()) expect(value.length).toBeLessThanOrEqual(3500);
      }),
      { numRuns: 50 },
    );
  });

  it('that is too large → refused, and what was kept stays', async () => {
    const sent = awayWith(100);
    await keep(sent);
    const before = new Map(jar);
    expect(await keep(awayWith(8000))).toBe('request_too_long_for_upstream');
    expect(jar).toEqual(before);
    expect(await take(sent.pending.state)).not.toBeNull();
  });

  it(`after ${LIFETIME} s, of another browser, or of another state with the same begin → none`, async () => {
    const sent = awayWith(3000);
    await keep(sent);
    const { state } = sent.pending;
    expect(await take(state, 'another', new Map(jar))).toBeNull();
    expect(await take(`${state.slice(0, 8)}${newState().slice(8, STATE_LENGTH)}`, 'browser', new Map(jar))).toBeNull();
    clock.time += LIFETIME * 1000 - 1;
    expect(await take(state, 'browser', new Map(jar))).not.toBeNull();
    clock.time += 1;
    expect(await take(state)).toBeNull();
  });
});

describe('several pending sign-ins of one browser', () => {
  it('of any sizes → at most four and 7 000 characters, the last one is among them, and each of these comes back', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(SIZE, { minLength: 1, maxLength: 8 }), async (sizes) => {
        const from: Jar = new Map();
        const all = sizes.map((size) => awayWith(size));
        for (const sent of all) {
          expect(await keep(sent, 'browser', from)).toBe('kept');
          expect(charactersOf(from)).toBeLessThanOrEqual(7000);
        }
        const came: boolean[] = [];
        for (const sent of all) came.push((await take(sent.pending.state, 'browser', new Map(from))) !== null);
        expect(came.filter(Boolean).length).toBeLessThanOrEqual(4);
        // Those that are gone are the oldest.
        expect(came).toEqual(came.toSorted((one, other) => Number(one) - Number(other)));
        expect(came.at(-1)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });
});

describe('cookies that another party has changed', () => {
  it('parts that are dropped, swapped, cut, longer, of another sign-in, or changed in a character → none', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 3000, max: 4500 }),
        fc.nat(),
        fc.constantFrom('drop first', 'drop second', 'swap', 'cut', 'longer', 'other first', 'other second', 'flip'),
        async (size, at, change) => {
          const [from, other] = [new Map<string, string>(), new Map<string, string>()];
          const [sent, another] = [awayWith(size), awayWith(size)];
          await keep(sent, 'browser', from);
          await keep(another, 'browser', other);
          const [first = '', second = ''] = ofSignIns(from).map(([name]) => name);
          const [ofFirst = '', ofSecond = ''] = ofSignIns(from).map(([, value]) => value);
          const [foreignFirst = '', foreignSecond = ''] = ofSignIns(other).map(([, value]) => value);
          const index = at % ofFirst.length;
          const flipped = `${ofFirst.slice(0, index)}${ofFirst[index] === 'A' ? 'B' : 'A'}${ofFirst.slice(index + 1)}`;
          const changes: Readonly<Record<typeof change, readonly [string, string]>> = {
            'drop first': ['', ofSecond],
            'drop second': [ofFirst, ''],
            swap: [ofSecond, ofFirst],
            cut: [ofFirst.slice(0, index), ofSecond],
            longer: [ofFirst, `${ofSecond}AAAA`],
            'other first': [foreignFirst, ofSecond],
            'other second': [ofFirst, foreignSecond],
            flip: [flipped, ofSecond],
          };
          expect([first, second]).not.toContain('');
          const [toFirst, toSecond] = changes[change];
          from.set(first, toFirst).set(second, toSecond);
          expect(await take(sent.pending.state, 'browser', from), change).toBeNull();
        },
      ),
      { numRuns: 80 },
    );
  });

  it('any texts in cookies of any such names → none, and room for a pending sign-in', async () => {
    const token = fc.string({ unit: fc.constantFrom(...'Aa0-_.~!%=+/"'), maxLength: 60 });
    const tag = fc.string({ unit: fc.constantFrom(...'Aa0-_.2'), maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(tag, token), { maxLength: 8 }), fc.string(), async (planted, state) => {
        const from: Jar = new Map(planted.map(([name, value]) => [`__Host-grantry-away-${name}`, value]));
        expect(await take(state, 'browser', new Map(from))).toBeNull();
        for (const [name] of planted) expect(await take(name, 'browser', new Map(from))).toBeNull();
        const sent = awayWith(500);
        expect(await keep(sent, 'browser', from)).toBe('kept');
        expect(await take(sent.pending.state, 'browser', from)).not.toBeNull();
      }),
      { numRuns: 60 },
    );
  });
});
