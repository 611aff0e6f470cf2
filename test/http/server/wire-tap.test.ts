// That the tap misses nothing: what it does not see, the oracle cannot check.

import { createServer, type RequestListener, type Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { tapResponses, type WireResponse } from '../../wire-tap.ts';
import { exchangeBytes } from './raw-socket.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function tapped(listener: RequestListener): Promise<{ port: number; seen: WireResponse[] }> {
  const seen: WireResponse[] = [];
  const server = createServer(listener);
  servers.push(server);
  tapResponses(server, (response) => seen.push(response));
  server.on('clientError', (_error, socket) => socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nbad'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as { port: number }).port, seen };
}

const request = (line: string) => `${line} HTTP/1.1\r\nHost: a\r\n\r\n`;

describe('the wire tap', () => {
  it('sees answers with a length, in chunks, without a body, and several on one connection', async () => {
    const { port, seen } = await tapped((message, response) => {
      if (message.url === '/length') response.setHeader('content-length', 5).end('hello');
      else if (message.url === '/chunks') {
        response.write('hel');
        response.end('lo');
      } else response.writeHead(204).end();
    });
    const lines = ['GET /length', 'HEAD /length', 'GET /chunks', 'GET /none', 'GET /length'];
    await exchangeBytes(port, lines.map(request).join(''), { quietMilliseconds: 300 });
    expect(seen.map(({ method, target, status, body }) => [method, target, status, body])).toEqual([
      ['GET', '/length', 200, 'hello'],
      ['HEAD', '/length', 200, ''],
      ['GET', '/chunks', 200, 'hello'],
      ['GET', '/none', 204, ''],
      ['GET', '/length', 200, 'hello'],
    ]);
  });

  it('sees what is written past every handler', async () => {
    const { port, seen } = await tapped((_message, response) => response.end('fine'));
    await exchangeBytes(port, `${request('GET /')}garbage\r\n\r\n`, { quietMilliseconds: 300 });
    expect(seen.map(({ method, status, body }) => [method, status, body])).toEqual([
      ['GET', 200, 'fine'],
      [undefined, 400, 'bad'],
    ]);
  });

  it('sees repeated headers and what is not ASCII', async () => {
    const { port, seen } = await tapped((_message, response) => {
      response.setHeader('set-cookie', ['a=1', 'b=2']).end('grüß');
    });
    await exchangeBytes(port, request('GET /'), { quietMilliseconds: 300 });
    expect(seen[0]?.headers.get('set-cookie')).toEqual(['a=1', 'b=2']);
    expect(seen[0]?.body).toBe('grüß');
  });
});
