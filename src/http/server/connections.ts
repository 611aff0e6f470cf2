// Answers connections outside a request: malformed HTTP, stalled peers, and `Expect`. Node would answer these itself
// and bypass every hook; the answers here carry the same headers and the same error body as all others. What one
// connection may do, and until when, is in `connection.ts`.

import type { RequestListener, Server } from 'node:http';
import type { Socket } from 'node:net';
import { Connection, type ConnectionLimits } from './connection.ts';
import { describeError, errorBody } from './errors.ts';
import { announcesTooMuch } from './raw-request.ts';
import type { FinishedRequest } from './request-log.ts';
import { commonHeaders, PAGE_HEADERS } from './security-headers.ts';

// An `import` would load Node's fetch as well, a megabyte of program that nothing at the start needs.
const { STATUS_CODES } = process.getBuiltinModule('node:http');

export interface ConnectionOptions {
  readonly issuer: string;
  readonly limits: ConnectionLimits;
  readonly newRequestId: () => string;
  /** Called with an answer that belongs to no request. */
  readonly finished: (request: FinishedRequest) => void;
}

export class Connections {
  readonly #options: ConnectionOptions;
  readonly #open = new WeakMap<Socket, Connection>();

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** Follows the connections of a server, hands their requests over, and decides about `100 Continue` (RFC 9110 §10.1.1). */
  follow(server: Server, opening: 'connection' | 'secureConnection', handle: RequestListener): void {
    // Node caches the address when it is first read. A later read may fail: the peer may close before its request is
    // handled.
    server.on('connection', (socket) => void socket.remoteAddress);
    server.on(opening, (socket: Socket) => {
      void socket.remoteAddress;
      this.#open.set(socket, new Connection(socket, this.#options.limits));
    });
    server.on('request', (request, response) => {
      if (this.#open.get(request.socket)?.admit(request, response)) handle(request, response);
    });
    server.on('checkContinue', (request, response) => {
      if (!announcesTooMuch(request)) response.writeContinue();
      server.emit('request', request, response);
    });
    // An unknown expectation may be ignored; Node's own 417 would lack the common headers.
    server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  }

  /** Answers a connection on which no request, or only half of one, could be read, and ends it. */
  answer(error: Error, socket: Socket): void {
    if (socket.destroyed || !socket.writable) return;
    const { issuer, newRequestId, finished } = this.#options;
    const answer = describeError(error, issuer);
    const connection = this.#open.get(socket);
    const place = connection?.place;
    if (place === 'behind an answer') {
      connection?.end();
      return;
    }
    if (connection === undefined || place === 'behind a request' || answer.reason === 'unexpected') {
      socket.destroy();
      return;
    }
    const body = errorBody(answer);
    const requestId = newRequestId();
    const headers = {
      ...commonHeaders(issuer),
      ...PAGE_HEADERS,
      'x-request-id': requestId,
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(Buffer.byteLength(body)),
      connection: 'close',
    };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    connection.end(`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n${lines.join('')}\r\n${body}`);
    finished({
      requestId,
      route: 'unreadable',
      method: 'OTHER',
      status: answer.status,
      durationMilliseconds: 0,
      facts: { outcome: 'refused', reason: answer.reason },
    });
  }
}
