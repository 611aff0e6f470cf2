// Runs on the load's core: sends requests for some seconds, or until all of them are sent, and prints what it saw as JSON.
// Any answer other than 200 fails the run, since refusing is cheaper than serving.

import { json } from 'node:stream/consumers';
import autocannon from 'autocannon';
import { quantile } from '../statistics.ts';
import { refresh, type Tokens } from './load-client.ts';

/** What each request carries. */
export type Bodies =
  /** The same all the time. */
  | { readonly kind: 'repeated'; readonly body: string; readonly seconds: number }
  /** The same, each time from the next of several clients. */
  | {
      readonly kind: 'clients';
      readonly body: string;
      readonly credentials: readonly string[];
      readonly seconds: number;
    }
  /** Each once; the load ends with the last of them. */
  | { readonly kind: 'single'; readonly bodies: readonly string[] }
  /** The same, each time beside another proof; the load ends with the last of them. */
  | { readonly kind: 'proved'; readonly body: string; readonly proofs: readonly string[] }
  /** A refresh token, of which each answer gives the next. */
  | { readonly kind: 'refreshes'; readonly tokens: readonly string[]; readonly seconds: number }
  /** Nothing: a GET with one of these tokens after the other in its header. */
  | { readonly kind: 'bearers'; readonly tokens: readonly string[]; readonly seconds: number };

/** What to send, and over how many connections. */
export interface LoadOrder {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly bodies: Bodies;
}

/** What one load came to. */
export interface LoadReport {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Milliseconds: number;
  readonly p99Milliseconds: number;
}

const { url, headers, connections, bodies } = (await json(process.stdin)) as LoadOrder;
const latencies: number[] = [];
let began = performance.now();
let ended = began;

const length = lengthOf(bodies);
const requests = [requestWith(bodies)];
const method = bodies.kind === 'bearers' ? 'GET' : 'POST';
const load = autocannon({ url, connections, method, headers, requests, ...length }, (error, result) => {
  if (error) throw error;
  if (result.errors > 0 || result.non2xx > 0 || latencies.length === 0) {
    throw new Error(`${url}: ${result.errors} errors, ${result.non2xx} answers other than 2xx`);
  }
  const report: LoadReport = {
    requests: latencies.length,
    seconds: (ended - began) / 1000,
    p50Milliseconds: quantile(latencies, 0.5),
    p99Milliseconds: quantile(latencies, 0.99),
  };
  process.stdout.write(JSON.stringify(report));
});
load.on('start', () => {
  began = performance.now();
});
// autocannon's own histogram counts whole milliseconds, which is all the difference there is here, and its own time whole
// ticks of a second.
load.on('response', (_client, _status, _bytes, milliseconds) => {
  latencies.push(milliseconds);
  ended = performance.now();
});

function lengthOf(source: Bodies): { readonly amount: number } | { readonly duration: number } {
  switch (source.kind) {
    case 'single':
      return { amount: source.bodies.length };
    case 'proved':
      return { amount: source.proofs.length };
    case 'repeated':
    case 'clients':
    case 'refreshes':
    case 'bearers':
      return { duration: source.seconds };
  }
}

function requestWith(source: Bodies): autocannon.Request {
  switch (source.kind) {
    case 'repeated':
      return { body: source.body };
    case 'single':
      return bodiesFrom([...source.bodies].reverse());
    case 'proved':
      return provedBy([...source.proofs], source.body);
    case 'clients':
      return { ...authorizedBy(source.credentials), body: source.body };
    case 'bearers':
      return authorizedBy(source.tokens.map((token) => `Bearer ${token}`));
    case 'refreshes': {
      const waiting = source.tokens.map(refresh);
      return {
        ...bodiesFrom(waiting),
        onResponse: (_status, answer) => {
          const { refresh_token: successor } = JSON.parse(answer) as Tokens;
          if (successor === undefined) throw new Error(`${url}: no refresh token`);
          // Behind all others: no family is used twice in a row.
          waiting.unshift(refresh(successor));
        },
      };
    }
  }
}

/** @param values of the header `authorization`, used in turn */
function authorizedBy(values: readonly string[]): autocannon.Request {
  let next = 0;
  return {
    setupRequest: (request) => ({
      ...request,
      headers: { ...headers, authorization: values[next++ % values.length] },
    }),
  };
}

/** Takes proofs from the end. */
function provedBy(proofs: string[], body: string): autocannon.Request {
  return {
    setupRequest: (request) => {
      const dpop = proofs.pop();
      if (dpop === undefined) throw new Error(`${url}: nothing is left to send`);
      return { ...request, body, headers: { ...headers, dpop } };
    },
  };
}

/** Takes from the end. */
function bodiesFrom(bodies: string[]): autocannon.Request {
  return {
    setupRequest: (request) => {
      const body = bodies.pop();
      if (body === undefined) throw new Error(`${url}: nothing is left to send`);
      return Object.assign(request, { body });
    },
  };
}
