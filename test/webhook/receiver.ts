// A receiver that alerts are posted to: it keeps what came and answers as the test sets.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request as it came. */
export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

export interface Receiver {
  readonly url: string;
  readonly received: readonly Received[];
  /** The most requests that waited for their answer at once. */
  readonly mostWaiting: number;
  /** What it answers from now on; `undefined`: nothing at all. */
  answer: { readonly status: number; readonly headers?: Readonly<Record<string, string>> } | undefined;
  /** Answers those that still wait. */
  answerWaiting(): void;
  stop(): void;
}

/** Starts one on loopback that answers 204. Stop it. */
export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const waiting = new Set<ServerResponse>();
  let mostWaiting = 0;
  function reply(response: ServerResponse): void {
    const { answer } = receiver;
    if (answer === undefined) return;
    waiting.delete(response);
    response.writeHead(answer.status, answer.headers).end('thank you');
  }
  const server = createServer(async (request, response) => {
    waiting.add(response);
    mostWaiting = Math.max(mostWaiting, waiting.size);
    response.once('close', () => waiting.delete(response));
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    received.push({ headers: request.headers, body, at: Date.now() });
    reply(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/alerts`,
    received,
    get mostWaiting() {
      return mostWaiting;
    },
    answer: { status: 204 },
    answerWaiting: () => waiting.forEach(reply),
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return receiver;
}
