import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { nameLookup } from '../../src/outbound/name-lookup.ts';

/** Response codes of DNS. */
const SERVER_FAILURE = 2;
const NO_SUCH_NAME = 3;
const IPV4_TYPE = 1;

const SYSTEM = [{ address: '192.0.2.9', family: 4 }];

let server: Socket;
/** What the name server answers for IPv4: an address, a response code, or nothing at all. */
let answer: string | number | undefined;
let askedSystem: string[];
let questions: number;

beforeEach(async () => {
  askedSystem = [];
  questions = 0;
  server = createSocket('udp4');
  server.on('message', (query, { port, address }) => {
    questions += 1;
    if (answer !== undefined) server.send(answerTo(query, answer), port, address);
  });
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => server.close());

function lookup(signal = AbortSignal.timeout(5000), name = 'keys.test') {
  const system = async (host: string) => {
    askedSystem.push(host);
    return SYSTEM;
  };
  return nameLookup({ nameServers: [`127.0.0.1:${server.address().port}`], system })(name, signal);
}

/** The answer to a query of one question (RFC 1035 §4.1); there is no address but those of IPv4. */
function answerTo(query: Buffer, given: string | number): Buffer {
  const end = query.indexOf(0, 12) + 5;
  const question = query.subarray(12, end);
  const records =
    typeof given === 'string' && question.readUInt16BE(question.length - 4) === IPV4_TYPE
      ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...given.split('.').map(Number)])
      : Buffer.alloc(0);
  const counts = [0, 1, 0, records.length > 0 ? 1 : 0, 0, 0, 0, 0];
  const head = Buffer.from([0x81, 0x80 | (typeof given === 'number' ? given : 0), ...counts]);
  return Buffer.concat([query.subarray(0, 2), head, question, records]);
}

it('given a name with an address of one family → that address, and the system is not asked', async () => {
  answer = '192.0.2.1';
  expect(await lookup()).toEqual([{ address: '192.0.2.1', family: 4 }]);
  expect(askedSystem).toEqual([]);
});

it('given a name that the name servers do not know → that of the system', async () => {
  answer = NO_SUCH_NAME;
  expect(await lookup()).toEqual(SYSTEM);
  expect(askedSystem).toEqual(['keys.test']);
});

it('given a name server that fails → its error, and no thread of the system waits for the same server', async () => {
  answer = SERVER_FAILURE;
  await expect(lookup()).rejects.toMatchObject({ code: 'ESERVFAIL' });
  expect(askedSystem).toEqual([]);
});

it('given a name server that never answers → the signal ends the lookup, and the system is not asked', async () => {
  answer = undefined;
  const stop = new AbortController();
  const found = lookup(stop.signal);
  stop.abort();
  await expect(found).rejects.toMatchObject({ code: 'ECANCELLED' });
  expect(askedSystem).toEqual([]);
});

it.each([
  ['127.0.0.1', { address: '127.0.0.1', family: 4 }],
  ['[::1]', { address: '::1', family: 6 }],
])('given the address %s and a dead name server → itself, and no question to either', async (host, address) => {
  answer = undefined;
  expect(await lookup(AbortSignal.timeout(5000), host)).toEqual([address]);
  expect([questions, askedSystem]).toEqual([0, []]);
});

it('given localhost and a dead name server → that of the system alone', async () => {
  answer = undefined;
  expect(await lookup(AbortSignal.timeout(5000), 'localhost')).toEqual(SYSTEM);
  expect([questions, askedSystem]).toEqual([0, ['localhost']]);
});
