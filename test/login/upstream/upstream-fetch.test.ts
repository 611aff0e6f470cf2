// The calls to one identity provider: bounds on time, size and calls at once, whatever the other side does.

import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { UpstreamFetch, UpstreamUnavailableError } from '../../../src/login/upstream/upstream-fetch.ts';
import { CertificateMaker } from '../../client-certificates.ts';
import { until } from '../../until.ts';
import { proxyOfTheEnvironment } from './environment-proxy.ts';

const MIB = 1024 * 1024;

let answer: RequestListener;
let server: ReturnType<typeof createServer>;
let url: string;
let calls: UpstreamFetch;
beforeEach(async () => {
  server = createServer((request, response) => answer(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  calls = new UpstreamFetch({ authorities: undefined, allowsPlain: true, limit: 100 });
});
afterEach(() => {
  calls.close();
  server.closeAllConnections();
  server.close();
});

/** The name of what is thrown, or the body. */
async function outcome(): Promise<string> {
  try {
    return await (await calls.fetch(url, {})).text();
  } catch (error) {
    return error instanceof UpstreamUnavailableError ? 'unavailable' : `refused: ${(error as Error).message}`;
  }
}

describe('a provider that is slow', () => {
  it('to answer → unavailable', async () => {
    answer = () => {};
    expect(await outcome()).toBe('unavailable');
  });

  it('to end its body, of which something comes again and again → unavailable', async () => {
    answer = (_request, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write('x'), 10);
      response.on('close', () => clearInterval(drip));
    };
    expect(await outcome()).toBe('unavailable');
  });
});

describe('a body', () => {
  it('without an end → refused above 1 MiB, and the connection is closed', async () => {
    const isClosed = Promise.withResolvers<void>();
    let sent = 0;
    answer = (_request, response) => {
      response.writeHead(200).on('close', isClosed.resolve);
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536))) sent += 65_536;
      };
      response.on('drain', more);
      more();
    };
    calls = new UpstreamFetch({ authorities: undefined, allowsPlain: true });
    expect(await outcome()).toMatch(/^refused/);
    await isClosed.promise;
    expect(sent).toBeLessThan(64 * MIB);
  });

  it('of 1 MiB → read; of one byte more, also where it came compressed → refused', async () => {
    let body = Buffer.alloc(MIB, 'a');
    answer = (_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(body));
    };
    calls = new UpstreamFetch({ authorities: undefined, allowsPlain: true });
    expect(await outcome()).toHaveLength(MIB);
    body = Buffer.alloc(MIB + 1, 'a');
    expect(await outcome()).toMatch(/^refused/);
    body = Buffer.alloc(16 * MIB);
    expect(await outcome()).toMatch(/^refused/);
  });
});

it('33 calls at once → the last one is unavailable, and each end makes room', async () => {
  const held: (() => void)[] = [];
  answer = (_request, response) => void held.push(() => response.end('done'));
  calls = new UpstreamFetch({ authorities: undefined, allowsPlain: true });
  const running = Array.from({ length: 32 }, outcome);
  await until('all are there', () => held.length === 32);
  expect(await outcome()).toBe('unavailable');
  held[0]?.();
  expect(await Promise.race(running)).toBe('done');
  const next = outcome();
  await until('another one is there', () => held.length === 33);
  for (const end of held) end();
  expect(new Set(await Promise.all([...running, next]))).toEqual(new Set(['done']));
});

it.each(['http://corp.example.com/', 'http://127.0.0.1.evil.example/', 'ftp://127.0.0.1/', 'file:///etc/passwd', 'x'])(
  '%s → refused without a call',
  async (address) => {
    url = address;
    expect(await outcome()).toMatch(/^refused/);
  },
);

it('http on loopback, where the issuer has https → refused without a call', async () => {
  let isAsked = false;
  answer = (_request, response) => {
    isAsked = true;
    response.end();
  };
  calls = new UpstreamFetch({ authorities: undefined, allowsPlain: false });
  expect([await outcome(), isAsked]).toEqual([expect.stringMatching(/^refused/), false]);
});

it('behind the proxy of the environment → reached through it, with TLS to the provider itself', async () => {
  const maker = new CertificateMaker();
  const authority = maker.authority();
  const { certificate, key } = maker.make({ issuer: authority, extensions: ['subjectAltName=DNS:localhost'] });
  maker.remove();
  const secure = createSecureServer({ cert: certificate, key }, (_request, response) => response.end('reached'));
  await once(secure.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    secure.closeAllConnections();
    secure.close();
  });
  const { port } = secure.address() as AddressInfo;
  const asked = await proxyOfTheEnvironment(port);
  const host = `localhost:${port}`;
  const reach = async (authorities: string | undefined) => {
    const through = new UpstreamFetch({ authorities, allowsPlain: false });
    onTestFinished(() => through.close());
    return await (await through.fetch(`https://${host}/`, {})).text();
  };
  expect(await reach(authority.certificate)).toBe('reached');
  await expect(reach(undefined)).rejects.toThrow(UpstreamUnavailableError);
  expect(asked).toEqual([host, host]);
});
