// What a Cluster answers when it is asked for its map. The server is a fake: no real one answers nonsense.

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { unhandledErrorsDuring } from '../../unhandled-errors.ts';
import { until } from '../../until.ts';
import { connectTo } from '../setup/connect.ts';

const INFO = 'redis_version:7.2.0\r\nrole:master\r\nloading:0\r\n';

/** A server that has all slots and answers CLUSTER SLOTS with what the test says. */
async function startFake() {
  let map: ((port: number) => string) | undefined;
  let asked = 0;
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      for (const [command] of String(bytes).matchAll(/\*\d+\r\n(\$\d+\r\n[^\r]*\r\n)+/g)) {
        if (/slots/i.test(command)) asked += 1;
        if (/slots/i.test(command)) socket.write((map ?? rightMap)(port));
        else if (/info/i.test(command)) socket.write(`$${INFO.length}\r\n${INFO}\r\n`);
        else socket.write('+OK\r\n');
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `redis+cluster://127.0.0.1:${port}`,
    answer: (next: string) => {
      map = () => next;
    },
    asked: () => asked,
    [Symbol.dispose]: () => {
      server.close();
    },
  };
}

function rightMap(port: number): string {
  return `*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:${port}\r\n`;
}

it.each([
  ['ranges that are no lists', '*1\r\n:5\r\n'],
  ['ranges without a server', '*1\r\n*2\r\n:0\r\n:16383\r\n'],
  ['a server that is null', '*1\r\n*3\r\n:0\r\n:16383\r\n*-1\r\n'],
  ['slots that are no numbers', '*1\r\n*3\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n'],
])('a map of %s ends no process and replaces no map', async (_, nonsense) => {
  using server = await startFake();
  const unheard = await unhandledErrorsDuring(async () => {
    const connection = await connectTo(server);
    server.answer(nonsense);
    const before = server.asked();
    await until('it has asked twice more', () => server.asked() >= before + 2);
    expect(connection.isUp).toBe(true);
    await connection.close();
  });
  expect(unheard).toEqual([]);
});
