// Reads what a server really sent: every byte of every connection, parsed as HTTP/1.1 responses. Nothing a server answers
// past its own hooks (parser errors, time-outs) escapes it.

import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

/** One response as it went over the wire. */
export interface WireResponse {
  /** Undefined where the server answered without having read a request. */
  readonly method: string | undefined;
  /** As sent; undefined where no request was read. */
  readonly target: string | undefined;
  readonly status: number;
  /** Lower-case names; repeated headers keep all their values. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  readonly body: string;
}

/** Calls `onResponse` for each complete response of `server`. */
export function tapResponses(server: Server, onResponse: (response: WireResponse) => void): void {
  const requests = new WeakMap<Socket, { method: string; target: string }[]>();
  server.prependListener('request', (request: IncomingMessage & { originalUrl?: string }) => {
    const queue = requests.get(request.socket) ?? [];
    queue.push({ method: request.method ?? '', target: request.originalUrl ?? request.url ?? '' });
    requests.set(request.socket, queue);
  });
  server.on('connection', (socket) => {
    const reader = new ResponseReader(() => requests.get(socket)?.shift(), onResponse);
    const { write, end } = socket;
    socket.write = function tapped(this: Socket, ...sent: Parameters<Socket['write']>) {
      reader.push(sent[0], sent[1]);
      return Reflect.apply(write, this, sent);
    } as Socket['write'];
    socket.end = function tapped(this: Socket, ...sent: Parameters<Socket['end']>) {
      const [last] = sent as unknown[];
      // A last chunk is written by `end` itself, through the write above in some versions of Node and past it in others.
      if (typeof last === 'string' || last instanceof Uint8Array) {
        socket.write(last);
        return Reflect.apply(
          end,
          this,
          sent.slice(1).filter((argument) => typeof argument === 'function'),
        );
      }
      return Reflect.apply(end, this, sent);
    } as Socket['end'];
  });
}

/** Cuts a byte stream into responses. */
class ResponseReader {
  readonly #nextRequest: () => { method: string; target: string } | undefined;
  readonly #onResponse: (response: WireResponse) => void;
  #pending = '';

  constructor(
    nextRequest: () => { method: string; target: string } | undefined,
    onResponse: (response: WireResponse) => void,
  ) {
    this.#nextRequest = nextRequest;
    this.#onResponse = onResponse;
  }

  push(chunk: unknown, encoding: unknown): void {
    this.#pending +=
      typeof chunk === 'string'
        ? Buffer.from(chunk, (typeof encoding === 'string' ? encoding : 'utf8') as BufferEncoding).toString('latin1')
        : Buffer.from(chunk as Uint8Array).toString('latin1');
    while (this.#readOne());
  }

  #peeked: { method: string; target: string } | undefined;

  #readOne(): boolean {
    const end = this.#pending.indexOf('\r\n\r\n');
    if (end < 0) return false;
    const [statusLine = '', ...lines] = this.#pending.slice(0, end).split('\r\n');
    const status = Number(statusLine.split(' ')[1]);
    const rest = this.#pending.slice(end + 4);
    if (status === 100) {
      this.#pending = rest;
      return true;
    }
    const headers = readHeaders(lines);
    this.#peeked ??= this.#nextRequest();
    const bodiless = this.#peeked?.method === 'HEAD' || status === 204 || status === 304;
    const body = bodiless ? { text: '', length: 0 } : readBody(headers, rest);
    if (body === undefined) return false;
    this.#pending = rest.slice(body.length);
    const request = this.#peeked;
    this.#peeked = undefined;
    const text = Buffer.from(body.text, 'latin1').toString('utf8');
    this.#onResponse({ method: request?.method, target: request?.target, status, headers, body: text });
    return true;
  }
}

function readHeaders(lines: readonly string[]): Map<string, string[]> {
  const headers = new Map<string, string[]>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    headers.set(name, [...(headers.get(name) ?? []), line.slice(colon + 1).trim()]);
  }
  return headers;
}

function readBody(
  headers: ReadonlyMap<string, readonly string[]>,
  rest: string,
): { text: string; length: number } | undefined {
  if (headers.get('transfer-encoding')?.[0] === 'chunked') return readChunks(rest);
  const length = Number(headers.get('content-length')?.[0] ?? 0);
  return rest.length < length ? undefined : { text: rest.slice(0, length), length };
}

function readChunks(rest: string): { text: string; length: number } | undefined {
  let text = '';
  let position = 0;
  for (;;) {
    const line = rest.indexOf('\r\n', position);
    if (line < 0) return undefined;
    const size = Number.parseInt(rest.slice(position, line), 16);
    const next = line + 2 + size + 2;
    if (rest.length < next) return undefined;
    if (size === 0) return { text, length: next };
    text += rest.slice(line + 2, line + 2 + size);
    position = next;
  }
}
