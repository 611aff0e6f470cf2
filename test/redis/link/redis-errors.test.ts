import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { UnansweredError, within } from '../../../src/redis/link/redis-errors.ts';

it('an answer that came while this process stood still counts, though its time is over', async () => {
  const server = createServer((socket) => socket.write('answer')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as { port: number }).port, '127.0.0.1');
  await once(socket, 'connect');
  const outcome = within(50, once(socket, 'data'));
  const until = performance.now() + 200;
  while (performance.now() < until);
  expect(String(await outcome)).toBe('answer');
  socket.destroy();
  server.close();
});

it('no answer in time is one that never comes', async () => {
  await expect(within(10, new Promise(() => {}))).rejects.toThrow(UnansweredError);
});
