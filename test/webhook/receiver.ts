// Somebody's server that alerts are posted to: it keeps what came and answers as it is told.

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
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
  /** What it answers from now on; `undefined`: nothing at all. */
  answer: { readonly status: number; readonly headers?: Readonly<Record<string, string>> } | undefined;
  stop(): void;
}

/** Starts one on loopback that answers 204. Stop it. */
export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    received.push({ headers: request.headers, body, at: Date.now() });
    const { answer } = receiver;
    if (answer !== undefined) response.writeHead(answer.status, answer.headers).end('thank you');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const receiver: Receiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/alerts`,
    received,
    answer: { status: 204 },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return receiver;
}
