// A name server on loopback, over UDP. It answers each name as the test sets, or never, and records the questions. Counts calls of
// getaddrinfo in this process, too.

import { createHook } from 'node:async_hooks';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** Response codes of DNS. */
export const SERVER_FAILURE = 2;
export const NO_SUCH_NAME = 3;
const TYPES = { 1: 'A', 28: 'AAAA' } as const;

export type QuestionType = (typeof TYPES)[keyof typeof TYPES];
/** The bytes of addresses, a response code, or nothing at all. */
export type NameAnswer = readonly (readonly number[])[] | number | undefined;

export interface NameServer {
  /** `ADDRESS:PORT`. */
  readonly address: string;
  /** `NAME TYPE`, each as often as it was asked. */
  readonly questions: readonly string[];
  answer: (name: string, type: QuestionType) => NameAnswer;
  stop(): void;
}

/** Starts one that knows no name. Stop it. */
export async function startNameServer(): Promise<NameServer> {
  const questions: string[] = [];
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const server: NameServer = {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    answer: () => NO_SUCH_NAME,
    stop: () => socket.close(),
  };
  socket.on('message', (query, { port, address }) => {
    const { name, type } = questionOf(query);
    questions.push(`${name} ${type}`);
    const answer = server.answer(name, type);
    if (answer !== undefined) socket.send(answerTo(query, answer), port, address);
  });
  return server;
}

/** Counts the calls of getaddrinfo from now on, whatever makes them. End it. */
export function countGetaddrinfo(): { readonly calls: () => number; readonly end: () => void } {
  let calls = 0;
  const hook = createHook({
    init(_id, type) {
      if (type === 'GETADDRINFOREQWRAP') calls += 1;
    },
  }).enable();
  return { calls: () => calls, end: () => void hook.disable() };
}

/** RFC 1035 §4.1: the question is behind a head of twelve bytes. */
function questionOf(query: Buffer): { readonly name: string; readonly type: QuestionType; readonly end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase());
    at += 1 + length;
  }
  const type = TYPES[query.readUInt16BE(at + 1) as keyof typeof TYPES];
  return { name: labels.join('.'), type, end: at + 5 };
}

function answerTo(query: Buffer, given: Exclude<NameAnswer, undefined>): Buffer {
  const { type, end } = questionOf(query);
  const addresses = typeof given === 'number' ? [] : given;
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180 | (typeof given === 'number' ? given : 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(addresses.length, 6);
  const records = addresses.map((bytes) =>
    Buffer.from([0xc0, 12, 0, type === 'A' ? 1 : 28, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes]),
  );
  return Buffer.concat([head, query.subarray(12, end), ...records]);
}
