// Every outgoing call against everything that a server may do: it ends with a word of its own, within its time limit, and leaves
// no place taken and no connection open. A module that opens connections without a row in the table fails.

import { AsyncLocalStorage } from 'node:async_hooks';
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { until } from '../until.ts';
import { connectingModules, connects } from './connecting-modules.ts';
import { BEHAVIOURS, type Behaviour, isAt, startFaultyServer } from './faulty-server.ts';
import { type Answer, certificate, OTHER_MODULES, OUTGOING_CALLS, type OutgoingCall } from './outgoing-calls.ts';

/** A call that has not ended by now never does. */
const PATIENCE = 30_000;

/** Time limits of calls, in milliseconds, in place of their own: behaviours without end are many, and this machine may be busy. */
const HURRIED = 150;
const UNHURRIED = 60_000;
const limit = new AsyncLocalStorage<number>();
beforeAll(() => {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((own) => timeout(limit.getStore() ?? own));
});
afterAll(() => vi.restoreAllMocks());

async function settled(call: Promise<string>): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(resolve, PATIENCE, 'not ended');
  return await Promise.race([call, promise]).finally(() => clearTimeout(timer));
}

/** The outcomes that a call may have of a behaviour. */
function permitted({ reads, words }: OutgoingCall, { faulty, isEndless }: Behaviour): readonly string[] {
  if (faulty === 'nothing') return ['answered'];
  // What comes after the head may come before the call has ended.
  if (faulty === 'body' && reads === 'head') return isEndless ? ['answered'] : ['answered', ...words];
  return isEndless ? words.slice(0, words[1] === 'busy' ? 2 : 1) : words;
}

describe.each(OUTGOING_CALLS.map((call) => [call.name, call] as const))('%s', (_name, outgoing) => {
  const { path, body, atOnce, isOverTls } = outgoing;
  const behaviours = Object.entries(BEHAVIOURS).filter(([, { isOfTls }]) => isOverTls || !isOfTls);

  it.for(behaviours)(
    'given %s → its outcome, and the next call is answered',
    { concurrent: true },
    async ([, behaviour], { onTestFinished }) => {
      let good: Answer = () => body;
      const server = await startFaultyServer(
        async ({ url = '', method = '' }, response) => {
          const content = await good(url, method);
          response.writeHead(200, { 'content-type': 'application/json' }).end(content);
        },
        isOverTls ? certificate : undefined,
      );
      onTestFinished(() => server.stop());
      const made = await outgoing.make(server.url, (others) => {
        good = others;
      });
      const { call, end, counted, body: own = body } = made;
      const others = good;
      good = (at, method) => (isAt(path, at) ? own : others(at, method));
      if (end !== undefined) onTestFinished(end);
      server.attack = { path, behaviour, body: own };

      const outcomes = permitted(outgoing, behaviour);
      const isAnswered = outcomes[0] === 'answered';
      const calls = Array.from({ length: isAnswered ? 1 : atOnce });
      const had = await limit.run(isAnswered ? UNHURRIED : HURRIED, () =>
        Promise.all(calls.map(() => settled(call()))),
      );
      expect(had.filter((outcome) => !outcomes.includes(outcome))).toEqual([]);
      for (const outcome of counted === undefined ? [] : new Set(had)) {
        expect(await counted?.(outcome)).toBe(had.filter((each) => each === outcome).length);
      }

      const mayStay = behaviour.faulty === 'nothing' || (behaviour.isAtConnect && outgoing.goesOnToConnect);
      if (!mayStay) await until('no connection is open', () => server.open.size === 0);
      server.attack = undefined;
      expect(await limit.run(UNHURRIED, () => settled(call()))).toBe('answered');
    },
  );
});

describe('the modules that open connections', () => {
  it('each has a row, or tests of its own', () => {
    const rows = [...OUTGOING_CALLS.flatMap(({ modules }) => modules), ...Object.keys(OTHER_MODULES)];
    expect(connectingModules('src')).toEqual([...new Set(rows)].sort());
    expect(Object.values(OTHER_MODULES).filter((tests) => !existsSync(tests))).toEqual([]);
  });

  it.each([
    ["import { request } from 'node:https';", true],
    ["import * as http from 'http';", true],
    ["import undici from 'undici';", true],
    ["import { connect, isIP } from 'node:net';", true],
    ["export const a = async () => await import('undici');", true],
    ["export const { get } = process.getBuiltinModule('node:http');", true],
    ["export const a = process.getBuiltinModule('node:http').get;", true],
    ["export const a = fetch('https://a.example');", true],
    ["export const a = globalThis.fetch('https://a.example');", true],
    ["import type { Agent } from 'node:http';", false],
    ["import { isIP, type Socket } from 'node:net';", false],
    ["export const { STATUS_CODES } = process.getBuiltinModule('node:http');", false],
    ["export const a = process.getBuiltinModule('node:https').createServer();", false],
    ["export const a = async () => { const { getCACertificates } = await import('node:tls'); };", false],
    ['export const a = (b: { fetch(): void }) => b.fetch();', false],
  ])('%s → %s', (text, expected) => {
    expect(connects(text)).toBe(expected);
  });
});
