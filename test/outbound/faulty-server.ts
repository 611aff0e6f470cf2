// What a server may do to a call: the table of behaviours of `outgoing-calls.test.ts`, and a server on loopback that behaves so at one
// path and well at the others.

import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import type { MadeCertificate } from '../client-certificates.ts';

/** One request, and the connection that it came by. */
interface Exchange {
  /** Writes over TLS where the call has it. */
  readonly socket: Socket;
  /** Below TLS. */
  readonly raw: Socket;
  /** A body that the call accepts. */
  readonly body: string;
}

export interface Behaviour {
  /** What is faulty: `head` for every call, `body` for those that read it; `nothing` where the call has its answer. */
  readonly faulty: 'head' | 'body' | 'nothing';
  /** Whether it goes on until the caller ends it: the word is that of a timeout then. */
  readonly isEndless?: true;
  /** Whether it begins at the connection, before any byte of TLS or HTTP. */
  readonly isAtConnect?: true;
  /** Whether it is one of TLS. */
  readonly isOfTls?: true;
  act(exchange: Exchange): void;
}

const OK = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n';
/** A fatal alert in the clear: handshake_failure. */
const ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 40]);

const sized = (body: string) => `${OK}content-length: ${Buffer.byteLength(body)}\r\n\r\n`;
const chunked = (body: string) => `${OK}transfer-encoding: chunked\r\n\r\n${chunk(body)}`;
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

/** Writes the first text, and the other one again and again until the caller closes the connection. */
function drip({ socket }: Exchange, first: string, again: string): void {
  socket.write(first);
  const timer = setInterval(() => socket.write(again), 10);
  socket.once('close', () => clearInterval(timer));
}

export const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  'nothing at all': { faulty: 'head', isEndless: true, act: () => {} },
  '101 Switching Protocols': {
    faulty: 'head',
    act: ({ socket }) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
    },
  },
  '103, then 101': {
    faulty: 'head',
    act: ({ socket }) => {
      socket.write(
        'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n',
      );
    },
  },
  '103 without end': {
    faulty: 'head',
    isEndless: true,
    act: (exchange) => drip(exchange, '', 'HTTP/1.1 103 Early Hints\r\n\r\n'),
  },
  '100 without end': {
    faulty: 'head',
    act: (exchange) => drip(exchange, '', 'HTTP/1.1 100 Continue\r\n\r\n'),
  },
  'a header after the other without end': {
    faulty: 'head',
    isEndless: true,
    act: (exchange) => drip(exchange, OK, 'a: b\r\n'),
  },
  'a header of 64 KiB': { faulty: 'head', act: ({ socket }) => void socket.write(`${OK}a: ${'b'.repeat(65_536)}`) },
  'something that is not HTTP': { faulty: 'head', act: ({ socket }) => void socket.write('SSH-2.0-OpenSSH_9.2\r\n') },
  'two lengths': {
    faulty: 'head',
    act: ({ socket, body }) => void socket.write(`${OK}content-length: 1\r\n${sized(body).slice(OK.length)}${body}`),
  },
  'a length that is no number': {
    faulty: 'head',
    act: ({ socket, body }) => void socket.write(`${OK}content-length: -1\r\n\r\n${body}`),
  },
  'a close before the head': { faulty: 'head', act: ({ socket }) => void socket.destroy() },
  'a close within the head': { faulty: 'head', act: ({ socket }) => void socket.write(OK, () => socket.destroy()) },
  'a half-close before the head': { faulty: 'head', act: ({ socket }) => void socket.end() },
  'a half-close within the head': { faulty: 'head', act: ({ socket }) => void socket.end(OK) },
  'a reset before the head': { faulty: 'head', act: ({ raw }) => void raw.resetAndDestroy() },
  'an alert in place of the answer': { faulty: 'head', isOfTls: true, act: ({ raw }) => void raw.write(ALERT) },
  'an alert in the handshake': {
    faulty: 'head',
    isOfTls: true,
    isAtConnect: true,
    act: ({ raw }) => void raw.once('data', () => raw.end(ALERT)),
  },
  'a handshake without an answer': {
    faulty: 'head',
    isOfTls: true,
    isAtConnect: true,
    isEndless: true,
    act: ({ raw }) => void raw.resume(),
  },
  'a reset at the connection': { faulty: 'head', isAtConnect: true, act: ({ raw }) => void raw.resetAndDestroy() },
  'a close at the connection': { faulty: 'head', isAtConnect: true, act: ({ raw }) => void raw.destroy() },
  '503 whose body never ends': {
    faulty: 'head',
    act: (exchange) => drip(exchange, 'HTTP/1.1 503 No\r\ncontent-length: 9999999\r\n\r\n', 'x'),
  },
  '429 whose body never ends': {
    faulty: 'head',
    act: (exchange) => drip(exchange, 'HTTP/1.1 429 No\r\ncontent-length: 9999999\r\n\r\n', 'x'),
  },
  'a redirect whose body never ends': {
    faulty: 'head',
    act: (exchange) => drip(exchange, 'HTTP/1.1 302 Found\r\nlocation: /x\r\ncontent-length: 9999999\r\n\r\n', 'x'),
  },
  'a body that never begins': {
    faulty: 'body',
    isEndless: true,
    act: ({ socket, body }) => void socket.write(sized(body)),
  },
  'a body of a known length that never ends': {
    faulty: 'body',
    isEndless: true,
    act: (exchange) => drip(exchange, `${OK}content-length: 60000\r\n\r\n${exchange.body}`, ' '),
  },
  'a body of chunks that never ends': {
    faulty: 'body',
    isEndless: true,
    act: (exchange) => drip(exchange, chunked(exchange.body), chunk(' ')),
  },
  // What has come of it is a whole document at any time.
  'a body up to the close that never comes': {
    faulty: 'body',
    isEndless: true,
    act: (exchange) => drip(exchange, `${OK}\r\n${exchange.body}`, ' '),
  },
  'trailers without end': {
    faulty: 'body',
    isEndless: true,
    act: (exchange) => drip(exchange, `${chunked(exchange.body)}0\r\n`, 'a: b\r\n'),
  },
  'a length that is too large, and a close': {
    faulty: 'body',
    act: ({ socket, body }) => {
      socket.write(`${sized(`${body} `)}${body}`, () => socket.destroy());
    },
  },
  'a length that is too small': {
    faulty: 'body',
    act: ({ socket, body }) => void socket.write(`${sized(body.slice(1))}${body}`),
  },
  'a close after the head': { faulty: 'body', act: ({ socket, body }) => void socket.end(sized(body)) },
  'a reset within the body': {
    faulty: 'body',
    act: ({ socket, raw, body }) => {
      socket.write(`${sized(body)}${body.slice(1)}`, () => raw.resetAndDestroy());
    },
  },
  'an alert within the body': {
    faulty: 'body',
    isOfTls: true,
    act: ({ socket, raw, body }) => {
      socket.write(`${sized(body)}${body.slice(1)}`, () => raw.write(ALERT));
    },
  },
  'a chunk of another length than it says': {
    faulty: 'body',
    act: ({ socket, body }) => void socket.write(`${OK}transfer-encoding: chunked\r\n\r\n1\r\n${body}\r\n0\r\n\r\n`),
  },
  '103, then the answer': {
    faulty: 'nothing',
    act: ({ socket, body }) => void socket.write(`HTTP/1.1 103 Early Hints\r\n\r\n${sized(body)}${body}`),
  },
  'trailers after the answer': {
    faulty: 'nothing',
    act: ({ socket, body }) => void socket.write(`${chunked(body)}0\r\na: b\r\n\r\n`),
  },
  'a second answer': {
    faulty: 'nothing',
    act: ({ socket, body }) => void socket.write(`${sized(body)}${body}${OK}content-length: 2\r\n\r\n{}`),
  },
  'the answer, and a half-close': {
    faulty: 'nothing',
    act: ({ socket, body }) => void socket.end(`${sized(body)}${body}`),
  },
};

export interface FaultyServer {
  readonly url: string;
  /** The faults of one path, for requests without a body that is read; undefined: it answers as the others. */
  attack: { readonly path: string; readonly behaviour: Behaviour; readonly body: string } | undefined;
  /** The connections that it has behaved so on, as long as the caller has not closed them. */
  readonly open: ReadonlySet<Socket>;
  stop(): void;
}

/** Whether the address of a request is a path, with any query; `/` is every path. */
export function isAt(path: string, url: string): boolean {
  return path === '/' || url.split('?')[0] === path;
}

/** Starts one that answers other requests by `answer`. Stop it. */
export async function startFaultyServer(
  answer: RequestListener,
  certificate: MadeCertificate | undefined,
): Promise<FaultyServer> {
  const open = new Set<Socket>();
  const raws = new Map<number | undefined, Socket>();
  const act = (socket: Socket, raw: Socket, { behaviour, body }: NonNullable<FaultyServer['attack']>) => {
    open.add(raw);
    raw.once('close', () => open.delete(raw));
    for (const each of [socket, raw]) each.on('error', () => {});
    behaviour.act({ socket, raw, body });
  };
  const listener: RequestListener = (request, response) => {
    const { attack } = faulty;
    const raw = raws.get(request.socket.remotePort);
    if (raw === undefined || attack === undefined || !isAt(attack.path, request.url ?? '')) {
      return answer(request, response);
    }
    // Behaviours begin after the request: a socket with unread bytes would send a reset as it closes.
    request.resume().once('end', () => act(request.socket, raw, attack));
  };
  const inner = certificate
    ? createSecureServer({ cert: certificate.certificate, key: certificate.key }, listener)
    : createServer(listener);
  inner.on('clientError', () => {});
  const front = createTcpServer({ allowHalfOpen: true }, (raw) => {
    const { remotePort } = raw;
    raws.set(remotePort, raw);
    raw.once('close', () => raws.delete(remotePort)).on('error', () => {});
    const { attack } = faulty;
    if (attack?.behaviour.isAtConnect) {
      raw.once('end', () => raw.end());
      act(raw, raw, attack);
    } else inner.emit('connection', raw);
  });
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  const { port } = front.address() as AddressInfo;
  const faulty: FaultyServer = {
    url: certificate ? `https://localhost:${port}` : `http://127.0.0.1:${port}`,
    attack: undefined,
    open,
    stop: () => {
      for (const raw of raws.values()) raw.destroy();
      front.close();
    },
  };
  return faulty;
}
