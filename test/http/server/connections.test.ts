// What one connection may do and how it ends, over real sockets (RFC 9112 §9; docs/scope.md, S5): pipelined requests, peers
// that send for ever, and answers that a slow peer still gets.

import { subscribe } from 'node:diagnostics_channel';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Connections } from '../../../src/http/server/connections.ts';
import { HTTP_TIMEOUTS, type HttpTimeouts, strictFastify } from '../../../src/http/server/strict-fastify.ts';
import { mutualTlsSettings, type ServerCertificate } from '../../../src/http/server/tls.ts';
import { CertificateMaker } from '../../client-certificates.ts';
import { type Grantry, startGrantry } from '../../grantry.ts';
import { until } from '../../until.ts';
import { type MutualTlsGrantry, MutualTlsWorld } from '../mtls/mutual-tls-grantry.ts';
import { answersIn } from './raw-socket.ts';

const FORM = 'Content-Type: application/x-www-form-urlencoded';

/** A peer that keeps what it gets. */
class Peer {
  readonly socket: Socket;
  /** Resolves with all that came, once the server has closed the connection. */
  readonly closed: Promise<string>;
  #received = '';

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => (this.#received += chunk.toString('latin1')));
    socket.on('error', () => {});
    this.closed = new Promise((resolve) => socket.on('close', () => resolve(this.#received)));
  }

  static at(port: number): Peer {
    return new Peer(connect({ host: '127.0.0.1', port }));
  }

  /** One that does not end its side when the server does. */
  static halfOpen(port: number): Peer {
    return new Peer(connect({ host: '127.0.0.1', port, allowHalfOpen: true }));
  }

  static overTls(port: number): Peer {
    return new Peer(connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false }));
  }

  get received(): string {
    return this.#received;
  }

  /** Sends the text, then a byte of `rest` again and again until the connection is closed. */
  drip(text: string, rest: string): void {
    this.socket.write(text);
    const timer = setInterval(() => this.socket.write(rest), 100);
    this.socket.on('close', () => clearInterval(timer));
  }
}

describe('2000 pipelined requests in one segment', () => {
  const world = new MutualTlsWorld();
  const handled: FastifyRequest[] = [];
  let grantry: Grantry;
  let mtls: MutualTlsGrantry;

  beforeAll(async () => {
    grantry = await startGrantry({ clients: [{ clientId: 'team.public' }] });
    mtls = await world.start({ clients: [] });
    subscribe('tracing:fastify.request.handler:start', (message) => {
      handled.push((message as { readonly request: FastifyRequest }).request);
    });
  });
  afterAll(() => world.maker.remove());

  function flood(method: string, path: string): string {
    const post = method === 'POST' ? `${FORM}\r\nContent-Length: 3\r\n\r\na=b` : '\r\n';
    return `${method} ${path} HTTP/1.1\r\nHost: a\r\n${post}`.repeat(2000);
  }

  async function expectBounded(peer: Peer, requests: string, url: string): Promise<void> {
    handled.length = 0;
    peer.socket.write(requests);
    const neighbour = await fetch(url);
    expect(neighbour.status).toBe(200);
    const before = handled.length;
    const answers = answersIn(await peer.closed);
    expect(answers.length).toBeLessThanOrEqual(8);
    // The neighbour's request is handled too.
    expect([before <= 9, handled.length <= 9]).toEqual([true, true]);
  }

  it('given each route of the public port, GET and POST → at most 8 reach a handler, the connection ends, a neighbour is answered in between', async () => {
    const paths = routesOf(grantry.server.public);
    expect(paths).toContain('/account/sessions');
    for (const path of paths) {
      for (const method of ['GET', 'POST']) {
        await expectBounded(Peer.at(grantry.port), flood(method, path), grantry.url('/.well-known/jwks.json'));
      }
    }
  });

  it('given each route of the listener for mutual TLS → the same', async () => {
    const listener = mtls.grantry.server.mutualTls;
    const paths = listener === undefined ? [] : routesOf(listener);
    expect(paths).toContain('/token');
    for (const path of paths) {
      for (const method of ['GET', 'POST']) {
        const url = mtls.grantry.url('/.well-known/jwks.json');
        await expectBounded(Peer.overTls(mtls.port), flood(method, path), url);
      }
    }
  });
});

/** The paths of a server, from the tree that Fastify prints. */
function routesOf(server: FastifyInstance): readonly string[] {
  const above: string[] = [];
  const lines = server.printRoutes({ commonPrefix: false }).split('\n');
  return lines.flatMap((line) => {
    const [, indent, segment] = /^([│ ]*)[├└]── (\S+) \(/.exec(line) ?? [];
    if (indent === undefined || segment === undefined) return [];
    const depth = indent.length / 4;
    above.length = depth;
    above.push(`${above[depth - 1] ?? ''}${segment}`);
    return [above[depth] ?? ''];
  });
}

/** More than the buffers of a connection hold, so that a part of it waits in the process. */
const LARGE = 'x'.repeat(8_000_000);
/** More than a peer takes that reads nothing. */
const LONG = 'x'.repeat(1_000_000);

describe('a server with short limits', () => {
  const maker = new CertificateMaker();
  const { certificate, key } = maker.make({ subject: '/CN=localhost' });
  const servers: FastifyInstance[] = [];
  afterAll(async () => {
    maker.remove();
    await Promise.all(servers.map((server) => server.close()));
  });

  interface Running {
    readonly port: number;
    /** The targets of the requests that reached a hook. */
    readonly seen: readonly string[];
    /** How many connections it holds. */
    held(): Promise<number>;
  }

  async function start(limits: Partial<HttpTimeouts> = {}, tls?: ServerCertificate): Promise<Running> {
    const timeouts = { ...HTTP_TIMEOUTS, check: 50, ...limits };
    const newRequestId = () => 'id';
    const server = strictFastify({
      timeouts,
      tls: tls && mutualTlsSettings(tls),
      newRequestId,
      isDraining: () => false,
      refuse: (error) => {
        throw error;
      },
      connections: new Connections({ issuer: 'https://a', limits: timeouts, newRequestId, finished: () => {} }),
    });
    const seen: string[] = [];
    server.addHook('onRequest', (request, _reply, done) => {
      seen.push(request.url);
      done();
    });
    server.get('/', () => 'short');
    server.get('/large', () => LARGE);
    server.get('/last', (_request, reply) => {
      reply.raw.shouldKeepAlive = false;
      return 'last';
    });
    server.get('/long', () => LONG);
    for (const [path, answer] of [
      ['/early', LONG],
      ['/early-large', LARGE],
    ] as const) {
      server.post(path, { onRequest: (_request, reply) => void reply.code(413).send(answer) }, () => 'late');
    }
    server.post('/', () => 'posted');
    servers.push(server);
    await server.listen({ host: '127.0.0.1', port: 0 });
    const address = server.server.address();
    return {
      port: typeof address === 'object' ? (address?.port ?? 0) : 0,
      seen,
      held: () =>
        new Promise((resolve, reject) => {
          server.server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
        }),
    };
  }

  const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

  it('given 8 requests in one segment → each is answered; given 9 → the connection is destroyed, 8 are seen', async () => {
    const { port, seen } = await start();
    const eight = Peer.at(port);
    eight.socket.write(get('/').repeat(8));
    await until('eight answers', () => answersIn(eight.received).length === 8);
    eight.socket.write(get('/').repeat(8));
    await until('eight more', () => answersIn(eight.received).length === 16);
    eight.socket.destroy();
    const nine = Peer.at(port);
    nine.socket.write(get('/nowhere').repeat(9));
    await nine.closed;
    expect(seen.filter((target) => target === '/nowhere')).toHaveLength(8);
  });

  it.each([
    ['plain HTTP', undefined],
    ['TLS', { certificate, key }],
  ])('given 50 requests one after the other over %s → each is answered', async (_, tls) => {
    const { port } = await start({}, tls);
    const peer = tls === undefined ? Peer.at(port) : Peer.overTls(port);
    for (let count = 1; count <= 50; count += 1) {
      peer.socket.write(get('/'));
      await until(`answer ${count}`, () => answersIn(peer.received).length === count, 15_000, 1);
    }
    peer.socket.destroy();
  });

  it.each([
    ['in the same segment', (peer: Peer) => peer.socket.write(get('/last') + get('/'))],
    [
      'later',
      async (peer: Peer) => {
        peer.socket.write(get('/last'));
        await until('the answer', () => peer.received.endsWith('last'));
        peer.socket.write(get('/').repeat(3));
      },
    ],
  ])('given requests behind the last answer %s → they get none, and reach no handler', async (_, send) => {
    const { port, seen } = await start();
    const peer = Peer.at(port);
    await send(peer);
    expect(answersIn(await peer.closed).map(({ body }) => body)).toEqual(['last']);
    expect(seen).toEqual(['/last']);
  });

  it('given the rest of a request after 408 → it reaches no handler', async () => {
    const { port, seen, held } = await start({ headers: 100, request: 10_000 });
    const peer = Peer.halfOpen(port);
    peer.socket.write('GET / HTTP/1.1\r\nHost: a\r\n');
    await until('408', () => peer.received.startsWith('HTTP/1.1 408'));
    peer.socket.write(`\r\n${get('/')}`);
    await until('no connection', async () => (await held()) === 0);
    expect(answersIn(peer.received).map(({ status }) => status)).toEqual([408]);
    expect(seen).toEqual([]);
    peer.socket.destroy();
  });

  const EARLY = `POST /early HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 60000\r\n\r\n`;
  const POST = `POST / HTTP/1.1\r\nHost: a\r\n${FORM}\r\nContent-Length: 60000\r\n\r\n`;
  it.each([
    ['headers', 'GET / HTTP/1.1\r\nX: ', 'a'],
    ['a body', POST, 'a'],
    ['chunks', POST.replace('Content-Length: 60000', 'Transfer-Encoding: chunked'), '1\r\na\r\n'],
    ['the body of a request that is refused by its headers', POST.replace('POST /', 'POST /nowhere'), 'a'],
    ['a second request behind an answer', get('/'), 'G'],
    ['empty lines behind an answer', get('/'), '\r\n'],
    ['garbage', '\0\0\0', 'a'],
    ['bytes behind the last answer', get('/last'), 'a'],
    ['empty lines behind the last answer', get('/last'), '\r\n'],
    ['empty lines behind an answer by HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n', '\r\n'],
  ])('given 200 peers that send %s for ever → no connection is held', async (_, text, rest) => {
    const { port, held } = await start({ headers: 300, request: 400, keepAlive: 300 });
    const peers = Array.from({ length: 200 }, () => Peer.halfOpen(port));
    for (const peer of peers) peer.drip(text, rest);
    await Promise.all(peers.map(({ closed }) => closed));
    await until('no connection', async () => (await held()) === 0);
  });

  it.each([
    ['one answer', get('/large')],
    ['a last answer', `GET /large HTTP/1.0\r\n\r\n`],
    ['several answers', get('/large').repeat(3)],
    ['an answer before the body', POST.replace('POST /', 'POST /early-large')],
  ])('given peers that read nothing of %s and send empty lines for ever → no connection is held', async (_, text) => {
    const { port, held } = await start({ headers: 300, request: 400, keepAlive: 300 });
    const peers = Array.from({ length: 3 }, () => Peer.halfOpen(port));
    for (const peer of peers) {
      peer.socket.pause();
      peer.drip(text, '\r\n');
    }
    await until('the connections', async () => (await held()) === 3);
    await until('no connection', async () => (await held()) === 0);
    for (const { socket } of peers) socket.destroy();
  });

  it('given 200 peers that send a TLS handshake for ever → no connection is held', async () => {
    const { port, held } = await start({ headers: 300, request: 400 }, { certificate, key });
    const peers = Array.from({ length: 200 }, () => Peer.halfOpen(port));
    // The head of a record of 16 000 bytes with a ClientHello.
    for (const peer of peers) peer.drip('\x16\x03\x01\x3e\x80\x01\x00\x3e\x7c\x03\x03', 'a');
    await Promise.all(peers.map(({ closed }) => closed));
    await until('no connection', async () => (await held()) === 0);
  });

  it('given 200 peers that send headers over TLS for ever → no connection is held', async () => {
    const { port, held } = await start({ headers: 300, request: 400 }, { certificate, key });
    const peers = Array.from({ length: 200 }, () => Peer.overTls(port));
    for (const peer of peers) peer.drip('GET / HTTP/1.1\r\nX: ', 'a');
    await Promise.all(peers.map(({ closed }) => closed));
    await until('no connection', async () => (await held()) === 0);
  });

  it.each([
    ['with Connection: close', 'GET /long HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', '', undefined],
    ['by HTTP/1.0', 'GET /long HTTP/1.0\r\n\r\n', '', undefined],
    ['by HTTP/1.0 over TLS', 'GET /long HTTP/1.0\r\n\r\n', '', { certificate, key }],
    ['by HTTP/1.0, and sends empty lines', 'GET /long HTTP/1.0\r\n\r\n', '\r\n', undefined],
    ['by HTTP/1.0, and sends more', 'GET /long HTTP/1.0\r\n\r\n', 'a', undefined],
    ['by HTTP/1.0 over TLS, and sends more', 'GET /long HTTP/1.0\r\n\r\n', 'a', { certificate, key }],
    ['before its body, which it goes on sending', EARLY, 'a', undefined],
  ])('given a peer that reads its answer slowly %s → it gets the whole of it', async (_, text, rest, tls) => {
    const { port } = await start({}, tls);
    const peer = tls === undefined ? Peer.halfOpen(port) : Peer.overTls(port);
    const { socket } = peer;
    const whole = new Promise<void>((resolve) => {
      socket.on('data', () => {
        if (peer.received.endsWith(LONG)) resolve();
        if (rest !== '') socket.write(rest);
        socket.pause();
        setImmediate(() => socket.resume());
      });
    });
    socket.write(text);
    await Promise.race([whole, peer.closed]);
    expect(answersIn(peer.received).map(({ body }) => body === LONG)).toEqual([true]);
    socket.destroy();
  });
});
