// A proxy in front of a real API server that makes the network and the server as bad as a test wants them. It serves with
// the API server's own certificate, so a kubeconfig differs only in its address:
//
//   const proxy = await FaultProxy.start(cluster.address);
//   const kubeconfig = cluster.kubeconfig({ token, url: proxy.url });
//   proxy.answer(watchOf('oauthclients'), { status: 410, reason: 'Expired', times: 1 });   // instead of the API server
//   proxy.stall(watchOf('oauthclients'));          // open now or later: connected, and not a byte more
//   proxy.write(watchOf('secrets'), '{"type":');   // into what is being answered now
//   proxy.delay(listOf('secrets'), 500); proxy.cut(); proxy.refuse(); proxy.clear();
//   proxy.requests                                 // everything that was asked, in order
//   await proxy.stop();

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, request, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiServerAddress } from './api-server.ts';

/** A request as it came. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** In which form the answer is asked for; empty: in any. */
  readonly accept: string;
}

/** Which requests a fault is about. */
export type Match = (request: SeenRequest) => boolean;

const anything: Match = () => true;

/** Watches of a kind by its plural, in any namespace. */
export function watchOf(plural: string): Match {
  return ({ method, path, query }) =>
    method === 'GET' && path.endsWith(`/${plural}`) && ['1', 'true'].includes(query.get('watch') ?? '');
}

/** Lists of a kind by its plural, each page of them. */
export function listOf(plural: string): Match {
  const isWatch = watchOf(plural);
  return (seen) => seen.method === 'GET' && seen.path.endsWith(`/${plural}`) && !isWatch(seen);
}

/** An answer instead of the API server's, in the form of its errors. */
export interface InjectedAnswer {
  readonly status: number;
  /** `Expired`, `InternalError` …; its Status object says so. */
  readonly reason: string;
  /** How many requests get it; default: all until `clear()`. */
  readonly times?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request that is being answered. */
interface Exchange {
  readonly seen: SeenRequest;
  /** Ends its connection with a reset, as a peer does that is gone. */
  readonly reset: () => void;
  readonly response: ServerResponse;
  /** From the API server; undefined until it answers. */
  upstream?: IncomingMessage;
}

export class FaultProxy {
  /** What takes the place of the API server's address. */
  readonly url: string;
  readonly requests: SeenRequest[] = [];
  /** How many connections were made so far, refused ones too. */
  connections = 0;
  readonly #server: Server;
  readonly #target: string;
  readonly #agent: Agent;
  /** By the port of the client: what TLS is spoken over, which alone can be reset. */
  readonly #sockets = new Map<number, Socket>();
  readonly #exchanges = new Set<Exchange>();
  #answers: { readonly match: Match; readonly answer: InjectedAnswer; left: number }[] = [];
  #delays: { readonly match: Match; readonly milliseconds: number }[] = [];
  #stalls: Match[] = [];
  #isRefusing = false;
  #release = Promise.withResolvers<void>();

  private constructor(server: Server, target: ApiServerAddress) {
    this.#server = server;
    this.#target = target.url;
    this.#agent = new Agent({ ca: readFileSync(target.certificateFile), keepAlive: true });
    this.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('connection', (socket: Socket) => {
      this.connections += 1;
      if (this.#isRefusing) socket.resetAndDestroy();
      const port = socket.remotePort ?? 0;
      this.#sockets.set(port, socket);
      socket.once('close', () => this.#sockets.delete(port));
    });
    server.on('request', (asked: IncomingMessage, response: ServerResponse) => void this.#serve(asked, response));
    server.on('tlsClientError', () => {});
  }

  static async start(target: ApiServerAddress): Promise<FaultProxy> {
    const server = createServer({ cert: readFileSync(target.certificateFile), key: readFileSync(target.keyFile) });
    // A watch may be silent for as long as it likes.
    server.requestTimeout = 0;
    server.timeout = 0;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new FaultProxy(server, target);
  }

  /** Answers in place of the API server, which does not hear of it. */
  answer(match: Match, answer: InjectedAnswer): void {
    this.#answers.push({ match, answer, left: answer.times ?? Number.POSITIVE_INFINITY });
  }

  /** Passes what matches on only after a while. */
  delay(match: Match, milliseconds: number): void {
    this.#delays.push({ match, milliseconds });
  }

  /** Silence: what matches stays connected and gets no byte, also what is being answered now. `clear()` lets it flow on. */
  stall(match: Match = anything): void {
    this.#stalls.push(match);
    for (const { seen, upstream } of this.#exchanges) if (match(seen)) upstream?.pause();
  }

  /** How many matching answers are being given now. */
  answering(match: Match): number {
    return this.#beingGiven(match).length;
  }

  /** Writes a text into every one of them; how many there were. */
  write(match: Match, text: string): number {
    const matching = this.#beingGiven(match);
    for (const { response } of matching) response.write(text);
    return matching.length;
  }

  #beingGiven(match: Match): readonly Exchange[] {
    return [...this.#exchanges].filter(({ seen, upstream }) => upstream !== undefined && match(seen));
  }

  /** Breaks the connections of what is being answered now, without a word of HTTP; how many there were. */
  cut(match: Match = anything): number {
    const matching = [...this.#exchanges].filter(({ seen }) => match(seen));
    for (const { reset } of matching) reset();
    return matching.length;
  }

  /** The port is closed: connections are reset, those that are open too. */
  refuse(): void {
    this.#isRefusing = true;
    for (const socket of this.#sockets.values()) socket.resetAndDestroy();
  }

  /** Ends every fault; what was held back flows on. */
  clear(): void {
    this.#isRefusing = false;
    [this.#answers, this.#delays, this.#stalls] = [[], [], []];
    this.#release.resolve();
    this.#release = Promise.withResolvers();
    for (const { upstream } of this.#exchanges) upstream?.resume();
  }

  /** How many requests of a kind there were. */
  count(match: Match): number {
    return this.requests.filter(match).length;
  }

  async stop(): Promise<void> {
    // What is stalled would else wait for ever, and its connections with it.
    this.clear();
    this.refuse();
    this.#agent.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(asked: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname: path, searchParams: query } = new URL(asked.url ?? '/', this.url);
    const seen: SeenRequest = { method: asked.method ?? '', path, query, accept: asked.headers.accept ?? '' };
    const port = asked.socket.remotePort ?? 0;
    const reset = () => void this.#sockets.get(port)?.resetAndDestroy();
    const exchange: Exchange = { seen, reset, response };
    this.requests.push(seen);
    this.#exchanges.add(exchange);
    response.once('close', () => {
      this.#exchanges.delete(exchange);
      exchange.upstream?.destroy();
    });
    const delay = this.#delays.find(({ match }) => match(seen));
    if (delay !== undefined) await sleep(delay.milliseconds);
    while (this.#isStalled(seen) && !response.destroyed) await this.#release.promise;
    if (response.destroyed) return;
    const injected = this.#answers.find(({ match, left }) => left > 0 && match(seen));
    if (injected === undefined) this.#forward(asked, exchange);
    else {
      injected.left -= 1;
      asked.resume();
      answerWith(response, injected.answer);
    }
  }

  #forward(asked: IncomingMessage, exchange: Exchange): void {
    const { seen, response, reset } = exchange;
    const { method, headers, url } = asked;
    const forwarded = request(`${this.#target}${url}`, { method, headers, agent: this.#agent }, (upstream) => {
      exchange.upstream = upstream;
      response.writeHead(upstream.statusCode ?? 502, upstream.headers);
      // The head of a watch says that it is there; it would else wait for the first event.
      response.flushHeaders();
      upstream.on('data', (chunk) => response.write(chunk));
      upstream.on('end', () => response.end());
      upstream.on('error', reset);
      if (this.#isStalled(seen)) upstream.pause();
    });
    // The API server is unavailable: so is what stands before it.
    forwarded.on('error', reset);
    response.once('close', () => forwarded.destroy());
    asked.pipe(forwarded);
  }

  #isStalled(seen: SeenRequest): boolean {
    return this.#stalls.some((match) => match(seen));
  }
}

function answerWith(response: ServerResponse, { status, reason, headers }: InjectedAnswer): void {
  const body = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, message: 'injected', code: status };
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}
