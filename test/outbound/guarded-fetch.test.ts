import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FetchFailedError, GuardedFetch, type GuardedFetchOptions } from '../../src/outbound/guarded-fetch.ts';
import type { AddressLookup } from '../../src/outbound/name-lookup.ts';
import { ReachableAddresses } from '../../src/outbound/reachable-addresses.ts';
import { freePort } from '../free-port.ts';
import { until } from '../until.ts';
import { type Answer, json, type KeyHost, startKeyHost, toLoopback } from './key-host.ts';

const LOOPBACK = new ReachableAddresses(['127.0.0.0/8']);
const LIMIT = 400;
const TENANT = 'shop';

let host: KeyHost;

beforeAll(async () => {
  host = await startKeyHost();
});
afterAll(() => host.stop());
beforeEach(() => {
  host.answer = json({ keys: [] });
});

function guardedFetch(options: Partial<GuardedFetchOptions> = {}): GuardedFetch {
  return new GuardedFetch({ reachable: LOOPBACK, authorities: host.authority, lookup: toLoopback, ...options });
}

/** The fault of a fetch that must fail. */
async function faultOf(fetched: Promise<unknown>): Promise<string> {
  const failure = await fetched.then(
    () => new Error('something was fetched'),
    (error) => error,
  );
  if (failure instanceof FetchFailedError) return failure.fault;
  throw failure;
}

function answerOf(status: number, type: string, body: string | Buffer): Answer {
  return (_request, response) => void response.writeHead(status, { 'content-type': type }).end(body);
}

describe('a document', () => {
  it.each(['application/json', 'application/jwk-set+json', 'Application/JSON; charset=utf-8'])(
    'given %s → its content and its Cache-Control',
    async (type) => {
      host.answer = json({ keys: [1] }, { 'content-type': type, 'cache-control': 'max-age=7' });
      const fetched = await guardedFetch().json(host.uri(), TENANT);
      expect(fetched).toEqual({ content: { keys: [1] }, cacheControl: 'max-age=7' });
    },
  );

  it('given any fetch → a GET without credentials, uncompressed, over a connection that is not kept', async () => {
    await guardedFetch().json(host.uri('a', 'x?y=z'), TENANT);
    const request = host.requests.at(-1);
    expect(request?.method).toBe('GET');
    expect(request?.url).toBe('/x?y=z');
    expect(request?.headers).toEqual({
      host: `a.keys.test:${host.port}`,
      accept: 'application/json, application/jwk-set+json',
      'accept-encoding': 'identity',
      'user-agent': 'grantry',
      connection: 'close',
    });
    await until('the connection is closed', async () => (await host.connections()) === 0);
  });

  it('given 64 KiB → read; given a byte more → body_too_large', async () => {
    const full = JSON.stringify('x'.repeat(64 * 1024 - 2));
    const inTwoParts = (text: string): Answer => {
      return (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).write(text.slice(0, 9));
        response.end(text.slice(9));
      };
    };
    host.answer = inTwoParts(full);
    await expect(guardedFetch().json(host.uri(), TENANT)).resolves.toHaveProperty('content');
    host.answer = inTwoParts(` ${full}`);
    expect(await faultOf(guardedFetch().json(host.uri(), TENANT))).toBe('body_too_large');
  });
});

describe('where the host lies', () => {
  it('given a name of a private address → address_refused, and nothing is connected', async () => {
    const before = host.requests.length;
    const fetch = guardedFetch({ reachable: new ReachableAddresses([]) });
    expect(await faultOf(fetch.json(host.uri(), TENANT))).toBe('address_refused');
    expect(host.requests.length).toBe(before);
  });

  it('given a private address among public ones → address_refused', async () => {
    const lookup: AddressLookup = async () => [
      { address: '1.1.1.1', family: 4 },
      { address: '169.254.169.254', family: 4 },
    ];
    expect(await faultOf(guardedFetch({ lookup }).json(host.uri(), TENANT))).toBe('address_refused');
  });

  it.each([
    ...['https://127.0.0.1/', 'https://0x7f.1/', 'https://2130706433/', 'https://127.1/', 'https://[::1]/'],
    ...['https://[::ffff:127.0.0.1]/', 'http://a.keys.test/', 'https://user@a.keys.test/', 'https://a.keys.test/#x'],
    ...['file:///etc/passwd', 'https://', 'nonsense'],
  ])('given %s → address_refused before any lookup', async (address) => {
    let lookups = 0;
    const lookup: AddressLookup = (name, signal) => {
      lookups += 1;
      return toLoopback(name, signal);
    };
    expect(await faultOf(guardedFetch({ lookup }).json(address, TENANT))).toBe('address_refused');
    expect(lookups).toBe(0);
  });

  it('given a name that changes its address between two lookups → only the checked address is connected to', async () => {
    const inner = await startPlainServer('127.0.0.2', host.port);
    const answers = ['127.0.0.1', '127.0.0.2'];
    let lookups = 0;
    const lookup: AddressLookup = async () => [{ address: answers[lookups++] ?? '', family: 4 }];
    try {
      const fetch = guardedFetch({ lookup, reachable: new ReachableAddresses(['127.0.0.1']) });
      await expect(fetch.json(host.uri(), TENANT)).resolves.toHaveProperty('content', { keys: [] });
      expect(lookups).toBe(1);
      expect(await faultOf(fetch.json(host.uri(), TENANT))).toBe('address_refused');
      expect(inner.connections).toBe(0);
    } finally {
      inner.stop();
    }
  });

  it('given several addresses of which the first does not answer → the next is tried', async () => {
    const lookup: AddressLookup = async () => [
      { address: '127.0.0.3', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ];
    await expect(guardedFetch({ lookup }).json(host.uri(), TENANT)).resolves.toHaveProperty('content', { keys: [] });
  });

  it('given a name without addresses → name_unresolved', async () => {
    const lookup: AddressLookup = () => Promise.reject(new Error('ENOTFOUND'));
    expect(await faultOf(guardedFetch({ lookup }).json(host.uri(), TENANT))).toBe('name_unresolved');
    expect(await faultOf(guardedFetch({ lookup: async () => [] }).json(host.uri(), TENANT))).toBe('name_unresolved');
  });

  it('given no other lookup → localhost is found in the hosts file, and refused', async () => {
    const fetch = new GuardedFetch({ reachable: new ReachableAddresses([]), authorities: undefined });
    expect(await faultOf(fetch.json(`https://localhost:${host.port}/`, TENANT))).toBe('address_refused');
  });
});

describe('a bad answer', () => {
  it.each([204, 206, 304, 404, 500])('given the status %i → status_refused', async (status) => {
    host.answer = answerOf(status, 'application/json', '');
    expect(await faultOf(guardedFetch().json(host.uri(), TENANT))).toBe('status_refused');
  });

  it.each([301, 302, 307, 308])('given a redirect by %i → status_refused, and not followed', async (status) => {
    const before = host.requests.length;
    host.answer = (_request, response) => {
      response.writeHead(status, { location: host.uri('b'), 'content-type': 'application/json' }).end('{"keys":[]}');
    };
    expect(await faultOf(guardedFetch().json(host.uri(), TENANT))).toBe('status_refused');
    expect(host.requests.length).toBe(before + 1);
  });

  it.each([
    ['HTML', 'text/html', '{"keys":[]}'],
    ['plain text', 'text/plain', '{"keys":[]}'],
    ['another kind of JSON', 'application/problem+json', '{"keys":[]}'],
    ['HTML as JSON', 'application/json', '<!doctype html>'],
    ['no bytes', 'application/json', ''],
    ['bytes that are not UTF-8', 'application/json', Buffer.from([0x22, 0xff, 0x22])],
    ['gzip', 'application/json', gzipSync('{"keys":[]}')],
  ])('given %s → not_json', async (_name, type, body) => {
    host.answer = answerOf(200, type, body);
    expect(await faultOf(guardedFetch().json(host.uri(), TENANT))).toBe('not_json');
  });

  it('given no media type → not_json', async () => {
    host.answer = (_request, response) => void response.writeHead(200).end('{"keys":[]}');
    expect(await faultOf(guardedFetch().json(host.uri(), TENANT))).toBe('not_json');
  });

  it('given 10 MB → body_too_large by its length, before it is read', async () => {
    host.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 10 * 2 ** 20 }).write(' ');
    };
    expect(await faultOf(guardedFetch().json(host.uri(), TENANT))).toBe('body_too_large');
  });

  it('given an endless body → body_too_large at its bound, and the connection is closed', async () => {
    host.answer = (_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write(' '.repeat(1000)));
      };
      response.writeHead(200, { 'content-type': 'application/json' }).on('drain', more);
      more();
    };
    expect(await faultOf(guardedFetch().json(host.uri(), TENANT))).toBe('body_too_large');
    await until('the connection is closed', async () => (await host.connections()) === 0);
  });

  it('given a body that is cut off → connection_failed', async () => {
    host.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 11 });
      response.write('{"keys"', () => response.destroy());
    };
    expect(await faultOf(guardedFetch().json(host.uri(), TENANT))).toBe('connection_failed');
  });
});

describe('slowness', () => {
  it('given a byte of the body now and then → timeout after the limit in all', async () => {
    host.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const timer = setInterval(() => response.write(' '), LIMIT / 10);
      response.once('close', () => clearInterval(timer));
    };
    const startedAt = performance.now();
    expect(await faultOf(guardedFetch({ limit: LIMIT }).json(host.uri(), TENANT))).toBe('timeout');
    expect(performance.now() - startedAt).toBeLessThan(5 * LIMIT);
    await until('the connection is closed', async () => (await host.connections()) === 0);
  });

  it('given a host that accepts and stays silent → timeout', async () => {
    host.answer = () => {};
    expect(await faultOf(guardedFetch({ limit: LIMIT }).json(host.uri(), TENANT))).toBe('timeout');
  });

  it('given a lookup that never ends → timeout', async () => {
    const lookup: AddressLookup = () => new Promise(() => {});
    expect(await faultOf(guardedFetch({ limit: LIMIT, lookup }).json(host.uri(), TENANT))).toBe('timeout');
  });
});

describe('a bad connection', () => {
  it('given a closed port → connection_failed', async () => {
    const address = `https://a.keys.test:${await freePort()}/`;
    expect(await faultOf(guardedFetch().json(address, TENANT))).toBe('connection_failed');
  });

  it('given an authority that is not trusted → tls_failed, whatever NODE_TLS_REJECT_UNAUTHORIZED says', async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      expect(await faultOf(guardedFetch({ authorities: undefined }).json(host.uri(), TENANT))).toBe('tls_failed');
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    }
  });

  it('given a certificate of another name → tls_failed', async () => {
    expect(await faultOf(guardedFetch().json(`https://a.other.test:${host.port}/`, TENANT))).toBe('tls_failed');
  });

  it('given a server without TLS → tls_failed', async () => {
    const server = await startPlainServer('127.0.0.1', 0);
    try {
      expect(await faultOf(guardedFetch().json(`https://a.keys.test:${server.port}/`, TENANT))).toBe('tls_failed');
      expect(server.connections).toBe(1);
    } finally {
      server.stop();
    }
  });
});

describe('many at once', () => {
  it('given 5 of each of 15 tenants, each with its host → at most 2 of a tenant and 20 in all, and each is answered', async () => {
    const held: (() => void)[] = [];
    host.answer = (request, response) => void held.push(() => json({ keys: [] })(request, response));
    const fetch = guardedFetch({ limit: 10_000 });
    const before = host.requests.length;
    const names = Array.from({ length: 15 }, (_, index) => `h${index}`);
    const fetched = names.flatMap((name) => Array.from({ length: 5 }, () => fetch.json(host.uri(name), name)));
    await until('20 arrived', () => host.requests.length === before + 20);
    host.answer = json({ keys: [] });
    for (const answer of held) answer();
    await Promise.all(fetched);
    expect(host.requests.length).toBe(before + 75);
    expect(host.most.inAll).toBe(20);
    expect(Math.max(...host.most.byHost.values())).toBe(2);
  });

  it('given 2 slow fetches of a tenant → a third, of another host, fails at its own limit; another tenant is served', async () => {
    const fetch = guardedFetch({ limit: LIMIT });
    host.answer = (request, response) => {
      if (request.headers.host?.startsWith('quick')) json({ keys: [] })(request, response);
    };
    const before = host.requests.length;
    const slow = [1, 2, 3].map((index) => faultOf(fetch.json(host.uri(`slow-${index}`), 'hostile')));
    await expect(fetch.json(host.uri('quick'), TENANT)).resolves.toHaveProperty('content');
    const [first, second, third] = await Promise.all(slow);
    expect([first, second]).toEqual(['timeout', 'timeout']);
    // The slot of the first is free at the end of the limit, which is that of the third, too.
    expect(third).toMatch(/^(?:busy|timeout)$/);
    expect(host.requests.length).toBeLessThanOrEqual(before + 4);
    host.answer = json({ keys: [] });
    await expect(fetch.json(host.uri('slow'), 'hostile')).resolves.toHaveProperty('content');
  });

  it('given 2 lookups of a tenant that go on after their timeout → a third fetch is busy', async () => {
    const { promise: lasting, resolve: end } = Promise.withResolvers<void>();
    let isSlow = true;
    const lookup: AddressLookup = async (name, signal) => {
      if (isSlow) await lasting;
      return toLoopback(name, signal);
    };
    const fetch = guardedFetch({ limit: LIMIT, lookup });
    expect(await Promise.all([1, 2].map(() => faultOf(fetch.json(host.uri(), TENANT))))).toEqual([
      'timeout',
      'timeout',
    ]);
    isSlow = false;
    expect(await faultOf(fetch.json(host.uri(), TENANT))).toBe('busy');
    end();
    await expect(fetch.json(host.uri(), TENANT)).resolves.toHaveProperty('content');
  });

  it('given 3 lookups of a tenant that fail → the next fetch is made', async () => {
    let fails = true;
    const lookup: AddressLookup = async (name, signal) => {
      if (fails) throw new Error('ENOTFOUND');
      return await toLoopback(name, signal);
    };
    const fetch = guardedFetch({ lookup });
    for (let call = 0; call < 3; call++) {
      expect(await faultOf(fetch.json(host.uri(), TENANT))).toBe('name_unresolved');
    }
    fails = false;
    await expect(fetch.json(host.uri(), TENANT)).resolves.toHaveProperty('content');
  });
});

/** A server without TLS that counts its connections. Stop it. */
async function startPlainServer(address: string, port: number) {
  const counted = { connections: 0 };
  const server = createServer().on('connection', () => {
    counted.connections += 1;
  });
  server.listen(port, address);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return counted.connections;
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
