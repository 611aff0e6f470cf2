// Replicas as the controller meets them on their admin port, made to answer what a test says; and the way it asks them.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { type FindReplicas, Replicas, type ReplicasOptions } from '../../../src/controller/replicas/replicas.ts';

/** What a made-up replica does with a question; undefined: it never answers. */
export type Answering = (path: string, question: unknown) => Answer | Promise<Answer>;

type Answer = { status?: number; body: unknown } | undefined;

/** Starts a replica for the rest of the test. @returns its address */
export async function startReplica(answering: Answering): Promise<string> {
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', async () => {
      const answer = await answering(request.url ?? '', JSON.parse(text));
      if (answer === undefined) return;
      const body = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' }).end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What a test proves its questions with. */
export const PROOF_KEY = 'k'.repeat(43);

/** Replicas that are asked as a controller does. */
export function askable(find: FindReplicas, options: Partial<ReplicasOptions> = {}): Replicas {
  return new Replicas({ find, key: () => PROOF_KEY, clock: { now: Date.now }, log: { warn: () => {} }, ...options });
}
