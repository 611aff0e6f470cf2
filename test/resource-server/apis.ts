// One API behind each adapter, on a free port: `/notes` needs the scope `read`, whatever the method, and says who asks.

import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import fastify from 'fastify';
import { accessOf as accessOfConnect, protect as protectConnect } from '../../src/resource-server/connect.ts';
import { accessOf, resourceServer } from '../../src/resource-server/fastify.ts';
import { protect, type Verifier } from '../../src/resource-server/index.ts';

/** A running API. */
export interface TestApi {
  readonly port: number;
  stop(): Promise<void>;
}

const NEEDS = { scope: 'read' };

export const ADAPTERS: Readonly<Record<'Fetch' | 'Fastify' | 'Connect', (verifier: Verifier) => Promise<TestApi>>> = {
  Fetch: (verifier) => {
    const handler = protect(verifier, (_request, { subject }) => Response.json({ subject }), NEEDS);
    return listening((incoming, outgoing) => void throughFetch(handler, incoming, outgoing));
  },

  Connect: (verifier) => {
    const middleware = protectConnect<IncomingMessage>(verifier, NEEDS);
    return listening(async (incoming, outgoing) => {
      // As a body parser in front of it does.
      Object.assign(incoming, { body: await text(incoming) });
      middleware(incoming, outgoing, (error) => {
        outgoing.statusCode = error === undefined ? 200 : 500;
        outgoing.end(JSON.stringify(error === undefined ? { subject: accessOfConnect(incoming).subject } : {}));
      });
    });
  },

  Fastify: async (verifier) => {
    const app = fastify();
    app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, (_request, body, done) =>
      done(null, body),
    );
    await app.register(resourceServer, { verifier, needs: NEEDS });
    app.all('/notes', (request) => ({ subject: accessOf(request).subject }));
    await app.listen({ host: '127.0.0.1', port: 0 });
    return { port: (app.server.address() as AddressInfo).port, stop: () => app.close() };
  },
};

async function throughFetch(
  handler: (request: Request) => Promise<Response>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const headers = new Headers();
  const { rawHeaders } = incoming;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '');
  }
  const body = await text(incoming);
  const { method = 'GET' } = incoming;
  const request = new Request(`http://api.internal${incoming.url}`, {
    method,
    headers,
    body: method === 'GET' ? null : body,
  });
  const response = await handler(request);
  const answer = Buffer.from(await response.arrayBuffer());
  response.headers.set('content-length', `${answer.length}`);
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.end(answer);
}

async function listening(listener: RequestListener): Promise<TestApi> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
