// The client when the way to the API server is bad: limits on time and rate, connections, and answers of others. What a
// real API server answers is tested in test/cluster/.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ApiClient } from '../../../src/kubernetes/api/api-client.ts';
import type { CallsOptions } from '../../../src/kubernetes/api/calls.ts';
import { CONFIG_MAPS } from '../../../src/kubernetes/objects/resources.ts';
import { makeCertificates } from '../../redis/setup/certificates.ts';

const OBJECT = { metadata: { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1' } };
const at = { namespace: 'n', name: 'a' };
/** How long is waited for what a busy machine does late. */
const PATIENCE = 15_000;

let server: Server;
let client: ApiClient;
let requests: { readonly method: string | undefined; readonly body: string; readonly authorization: string }[];
let sockets: Set<Socket>;
let connections: number;
/** What a request gets; by default the object. */
let answer: (request: IncomingMessage, response: ServerResponse) => void;

beforeEach(async () => {
  [requests, sockets, connections] = [[], new Set(), 0];
  answer = (_, response) => response.end(JSON.stringify(OBJECT));
  server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    requests.push({ method: request.method, body, authorization: request.headers.authorization ?? '' });
    answer(request, response);
  });
  server.on('connection', (socket) => {
    connections++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  client = clientWith({});
});
afterEach(() => {
  vi.useRealTimers();
  client.close();
  server.closeAllConnections();
  server.close();
});

function clientWith(options: Partial<CallsOptions>, url = addressOfServer()): ApiClient {
  const access = {
    server: url,
    credentials: () => Promise.resolve({ headers: { authorization: 'Bearer t' }, tls: {}, user: 'some-user' }),
    renew: () => {},
  };
  return new ApiClient({ access, userAgent: 'grantry/test', ...options });
}

function addressOfServer(): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const get = () => client.get(CONFIG_MAPS, at);

describe('a call', () => {
  it('shares at most 32 connections with the calls beside it', async () => {
    answer = (_, response) => setTimeout(() => response.end(JSON.stringify(OBJECT)), 5);
    await Promise.all(Array.from({ length: 200 }, get));
    expect(requests.length).toBe(200);
    expect(connections).toBeLessThanOrEqual(32);
    await get();
    expect(connections).toBeLessThanOrEqual(32);
  });

  it('is made once more when the kept connection was closed at that moment', async () => {
    await get();
    let cuts = 1;
    answer = (request, response) => {
      if (cuts-- > 0) request.socket.resetAndDestroy();
      else response.end(JSON.stringify(OBJECT));
    };
    expect(await get()).toMatchObject(OBJECT);
    expect(connections).toBe(2);
  });

  it('is not made again when a new connection breaks', async () => {
    answer = (request) => request.socket.resetAndDestroy();
    await expect(get()).rejects.toMatchObject({ status: 0, reason: 'NoAnswer', verb: 'get' });
    expect(requests.length).toBe(1);
  });

  it('ends in time when nothing is answered, or only half', async () => {
    client.close();
    client = clientWith({ callLimit: 100 });
    answer = () => {};
    await expect(get()).rejects.toMatchObject({ status: 0, reason: 'Timeout' });
    answer = (_, response) => {
      response.writeHead(200).write('{"metadata":');
    };
    await expect(get()).rejects.toMatchObject({ status: 0, reason: 'Timeout' });
  });

  it('fails with a word when the answer breaks off or is no JSON', async () => {
    answer = (_, response) => {
      response.writeHead(200, { 'content-length': 1000 }).write('{', () => response.destroy());
    };
    await expect(get()).rejects.toMatchObject({ status: 0, reason: 'NoAnswer' });
    answer = (_, response) => response.end('<html>');
    await expect(get()).rejects.toMatchObject({ status: 200, reason: 'UnreadableAnswer' });
    for (const other of ['null', '5', '[]', '{}', '{"metadata":null}', '{"metadata":5}']) {
      answer = (_, response) => response.end(other);
      await expect(get()).rejects.toMatchObject({ status: 200, reason: 'UnreadableAnswer' });
      await expect(client.list(CONFIG_MAPS)).rejects.toMatchObject({ status: 200, reason: 'UnreadableAnswer' });
    }
    answer = (_, response) => response.writeHead(502).end('<html>');
    await expect(get()).rejects.toMatchObject({ status: 502, reason: 'Refused' });
  });

  it('that is refused with text of a tenant in the message → an error in printable ASCII, for status and logs', async () => {
    const message = `spec.scopes: Invalid value: "a\u202e\u007fb\ufffe": ${'x'.repeat(1000)}`;
    answer = (_, response) =>
      response.writeHead(422).end(JSON.stringify({ kind: 'Status', code: 422, reason: 'Invalid', message }));
    const error = await get().catch((reason: Error) => reason.message);
    expect(error).toMatch(
      /: 422 Invalid \(spec\.scopes: Invalid value: "a\\u\{202e\}\\u\{7f\}b\\u\{fffe\}": x{400,}\.\.\.\)$/,
    );
  });

  it('fails when the answer changes the protocol without a request for it', async () => {
    answer = ({ socket }) => socket.write('HTTP/1.1 101 Any\r\nConnection: Upgrade\r\nUpgrade: any\r\n\r\n');
    await expect(get()).rejects.toMatchObject({ status: 0, reason: 'NoAnswer' });
    const watch = { resourceVersion: '1', timeoutSeconds: 60, signal: new AbortController().signal };
    await expect(client.watch(CONFIG_MAPS, watch)).rejects.toMatchObject({ status: 0, reason: 'NoAnswer' });
  });

  it('waits as long as Retry-After says after a 429', async () => {
    const times: number[] = [];
    answer = (_, response) => {
      times.push(performance.now());
      if (times.length > 1) response.end(JSON.stringify(OBJECT));
      else response.writeHead(429, { 'retry-after': '1' }).end();
    };
    expect(await get()).toMatchObject(OBJECT);
    // A timer may be a little early.
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(990);
  });

  it('is held back when 400 were made at once, and 200 a second after that', async () => {
    const begun = performance.now();
    await Promise.all(Array.from({ length: 500 }, get));
    expect(performance.now() - begun).toBeGreaterThan(450);
  });

  it('says that there are no credentials', async () => {
    const access = {
      server: 'https://127.0.0.1:1',
      credentials: () => Promise.reject(new Error('/a/token cannot be read: ENOENT')),
      renew: () => {},
    };
    const error = await new ApiClient({ access, userAgent: 'x' })
      .get(CONFIG_MAPS, at)
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ status: 0, reason: 'NoCredentials' });
    expect(String(error)).toContain(
      'get configmaps in namespace n as unknown user: NoCredentials (/a/token cannot be read',
    );
  });

  it('does not wait for credentials that never come', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const access = { server: 'https://127.0.0.1:1', credentials: () => new Promise<never>(() => {}), renew: () => {} };
    const answer = new ApiClient({ access, userAgent: 'x' }).list(CONFIG_MAPS);
    const refused = expect(answer).rejects.toMatchObject({ status: 0, reason: 'NoCredentials' });
    await vi.advanceTimersByTimeAsync(30_000);
    vi.useRealTimers();
    await refused;
  });

  it('says what is wrong with the address', async () => {
    client.close();
    // No process listens there, while a port that was just closed may already be in use again.
    client = clientWith({}, 'http://127.0.0.1:1');
    const error = await get().catch((reason: unknown) => reason);
    expect(String(error)).toContain('get configmaps in namespace n as some-user: NoAnswer (ECONNREFUSED)');
  });

  it('sends what a deletion depends on', async () => {
    await client.delete(CONFIG_MAPS, { ...at, uid: 'u', resourceVersion: '7' });
    expect(requests[0]?.method).toBe('DELETE');
    expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject({ preconditions: { uid: 'u', resourceVersion: '7' } });
  });
});

describe('a watch', () => {
  it('that is not accepted within 30 seconds has failed', async () => {
    answer = () => {};
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const refused = expect(watch(new AbortController().signal)).rejects.toMatchObject({ status: 0, reason: 'Timeout' });
    await expect.poll(() => requests.length, { timeout: PATIENCE }).toBe(1);
    await vi.advanceTimersByTimeAsync(30_000);
    vi.useRealTimers();
    await refused;
  });

  const watch = (signal: AbortSignal) =>
    client.watch(CONFIG_MAPS, { resourceVersion: '1', timeoutSeconds: 300, signal });

  it('that is not read any more keeps no connection open', async () => {
    answer = (_, response) => {
      response.writeHead(200).write(`${JSON.stringify({ type: 'ADDED', object: OBJECT })}\n`);
    };
    const stop = new AbortController();
    for await (const frame of await watch(stop.signal)) {
      expect(frame.type).toBe('ADDED');
      break;
    }
    await expect.poll(() => sockets.size, { timeout: PATIENCE }).toBe(0);
  });

  it.skipIf(process.platform !== 'linux').each(['http', 'https'] as const)(
    'over %s has the kernel ask every 30 seconds whether the other side is still there',
    async (protocol) => {
      const { port, tls, peer } = await silentServer(protocol);
      const server = `${protocol}://127.0.0.1:${port}`;
      const credentials = () => Promise.resolve({ headers: {}, tls, user: 'some-user' });
      const own = new ApiClient({ access: { server, credentials, renew: () => {} }, userAgent: 'grantry/test' });
      onTestFinished(() => own.close());
      await own.watch(CONFIG_MAPS, { resourceVersion: '1', timeoutSeconds: 300, signal: new AbortController().signal });
      const isAsSaid = (seconds: number | undefined) => seconds !== undefined && seconds > 15 && seconds <= 31;
      await expect.poll(() => secondsToProbe(peer(), port), { timeout: PATIENCE }).toSatisfy(isAsSaid);
    },
  );

  it('ends with an error when its signal is aborted', async () => {
    answer = (_, response) => void response.writeHead(200).flushHeaders();
    const stop = new AbortController();
    const frames = await watch(stop.signal);
    const read = (async () => {
      for await (const _ of frames) return;
    })();
    stop.abort();
    await expect(read).rejects.toMatchObject({ status: 0, reason: 'Aborted' });
    await expect(watch(stop.signal)).rejects.toMatchObject({ reason: 'Aborted' });
  });

  it('that is open takes nothing from the calls', async () => {
    answer = (request, response) => {
      if (request.url?.includes('watch=1')) response.writeHead(200).flushHeaders();
      else response.end(JSON.stringify(OBJECT));
    };
    const stop = new AbortController();
    await Promise.all(Array.from({ length: 40 }, () => watch(stop.signal)));
    expect(await get()).toMatchObject(OBJECT);
    stop.abort();
  });
});

/** A server that begins every answer, and nothing more; `peer`: the port of who asked last. */
async function silentServer(protocol: 'http' | 'https') {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-api-client-'));
  const { ca, certificate: cert, key } = makeCertificates(folder);
  rmSync(folder, { recursive: true });
  const begin = (_: IncomingMessage, response: ServerResponse) => response.writeHead(200).flushHeaders();
  const silent = protocol === 'http' ? createServer(begin) : createHttpsServer({ cert, key }, begin);
  let peer: number | undefined;
  silent.on('connection', (socket: Socket) => {
    peer = socket.remotePort;
  });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    silent.closeAllConnections();
    silent.close();
  });
  return { port: (silent.address() as AddressInfo).port, tls: { ca: Buffer.from(ca) }, peer: () => peer };
}

/**
 * When the kernel probes the connection from one port to another, as who asks sees it; undefined while it does not mean to.
 * By one of the ports alone another connection could be found: ports are used again, and what was closed is still listed.
 */
function secondsToProbe(from: number | undefined, to: number): number | undefined {
  const address = (port: number) => `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const connections = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/ +/));
  const isIt = ([, local, remote]: readonly string[]) => local === address(from ?? 0) && remote === address(to);
  const [, , , , , timer = ''] = connections.find(isIt) ?? [];
  const [kind, hundredths = ''] = timer.split(':');
  return kind === '02' ? Number.parseInt(hundredths, 16) / 100 : undefined;
}
