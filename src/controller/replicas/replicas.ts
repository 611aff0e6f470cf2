// How the controller reaches the replicas of the token server: their addresses, and an authenticated request to the
// admin port of one of them. The requests themselves are in observed-replicas.ts and replica-reports.ts.

import { isIP } from 'node:net';
import type { Logger } from 'pino';
import { z } from 'zod';
import { controllerProof } from '../../admission/references/controller-proof.ts';
import { CONTROLLER_SECRET } from '../../admission/references/secret-parts.ts';
import type { KubernetesObject } from '../../kubernetes/objects/resources.ts';
import { withDeadline } from '../../oauth/ports/deadline.ts';
import type { Clock } from '../../oauth/ports/ports.ts';

/** One replica that takes requests. */
export interface Replica {
  /** For messages: the pod's name, or the address. */
  readonly name: string;
  /** Of its admin port, without a slash at the end. */
  readonly url: string;
}

/** The replicas that take requests now; undefined where no addresses are configured. */
export type FindReplicas = () => readonly Replica[] | undefined;

/** The replicas at fixed addresses. */
export function replicasAt(urls: readonly string[]): readonly Replica[] {
  return urls.map((url) => {
    const trimmed = url.replace(/\/+$/, '');
    return { name: trimmed, url: trimmed };
  });
}

const ENDPOINT_SLICE = z.object({
  endpoints: z
    .array(
      z.object({
        addresses: z.array(z.string()).min(1),
        conditions: z.object({ ready: z.boolean().nullish() }).nullish(),
        targetRef: z.object({ name: z.string().nullish() }).nullish(),
      }),
    )
    .nullish(),
  ports: z.array(z.object({ name: z.string().nullish(), port: z.int().nullish() })).nullish(),
});

const ADMIN_PORT_NAME = 'admin';

/** The ready replicas behind a Service, by its EndpointSlices; its port is the one named `admin`. */
export function replicasIn(slices: Iterable<KubernetesObject>): readonly Replica[] {
  const found = new Map<string, Replica>();
  for (const slice of slices) {
    const read = ENDPOINT_SLICE.safeParse(slice).data;
    const port = read?.ports?.find(({ name }) => name === ADMIN_PORT_NAME)?.port;
    if (port === undefined || port === null) continue;
    for (const { addresses, conditions, targetRef } of read?.endpoints ?? []) {
      // Not known is treated as ready, as in kube-proxy.
      if (conditions?.ready === false) continue;
      const [address = ''] = addresses;
      const url = `http://${isIP(address) === 6 ? `[${address}]` : address}:${port}`;
      found.set(url, { name: targetRef?.name ?? address, url });
    }
  }
  return [...found.values()];
}

/** A replica that does not answer within this time is treated as behind. */
const ANSWER_MILLISECONDS = 2000;
const LARGEST_ANSWER_BYTES = 8 * 1024 * 1024;

export interface ReplicasOptions {
  readonly find: FindReplicas;
  /**
   * The key that proves the controller's requests; undefined while there is none, and then the replicas refuse them.
   */
  readonly key: () => string | undefined;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
}

/** Sends requests to the replicas, each with a proof that it comes from the controller. */
export class Replicas {
  /** The replicas that take requests now. */
  readonly find: FindReplicas;
  readonly #options: ReplicasOptions;
  /** The replicas that rejected the last proof, by address. */
  readonly #rejectingProof = new Set<string>();

  constructor(options: ReplicasOptions) {
    this.#options = options;
    this.find = options.find;
  }

  /**
   * Posts JSON to one replica.
   * @returns undefined when it does not answer in time, not with 200, or not what `schema` says
   */
  async ask<Answer>(
    replica: Replica,
    path: string,
    request: object,
    schema: z.ZodType<Answer>,
  ): Promise<Answer | undefined> {
    const signal = AbortSignal.timeout(ANSWER_MILLISECONDS);
    try {
      const text = await withDeadline(signal, this.#answerOf(replica, { path, body: JSON.stringify(request) }, signal));
      return text === undefined ? undefined : schema.safeParse(JSON.parse(text)).data;
    } catch {
      // Unreachable, slow, or not a replica at all: the same to the caller.
      return undefined;
    }
  }

  /** The body of a 200 answer. */
  async #answerOf(
    replica: Replica,
    { path, body }: { readonly path: string; readonly body: string },
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { key, clock } = this.#options;
    const authorization = controllerProof({ path, body }, key(), clock.now());
    const response = await fetch(`${replica.url}${path}`, {
      method: 'POST',
      body,
      redirect: 'error',
      signal,
      headers: { 'content-type': 'application/json', ...(authorization !== undefined && { authorization }) },
    });
    if (authorization !== undefined) this.#reportRejectedProof(replica, response.status);
    if (response.status === 200 && response.body !== null) return await limitedText(response.body);
    await response.body?.cancel();
    return undefined;
  }

  /** Logs only the first rejection of a series: a replica is polled every few seconds. */
  #reportRejectedProof({ name, url }: Replica, status: number): void {
    if (status === 200) this.#rejectingProof.delete(url);
    if (status !== 403 || this.#rejectingProof.has(url)) return;
    this.#rejectingProof.add(url);
    const secret = CONTROLLER_SECRET.name;
    this.#options.log.warn({ replica: name, secret }, 'a replica does not believe that the controller asks it');
  }
}

async function limitedText(body: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > LARGEST_ANSWER_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
