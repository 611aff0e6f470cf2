// Calls to the API server until one is accepted: their limits in time and rate, fresh credentials for who is not known any
// more, and patience when a call was one too many. What is asked and what the answer means is api-client.ts's.

import type { IncomingMessage } from 'node:http';
import type { Resource } from '../objects/resources.ts';
import { type FailedCall, refusal, silence, unreadable } from './api-errors.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { Connection, type Request } from './connection.ts';
import { withEmptied } from './emptied-arrays.ts';
import { parsedJson } from './parsed-json.ts';
import { sleep } from './sleep.ts';
import { TokenBucket } from './token-bucket.ts';

const CALL_MILLISECONDS = 10_000;
const PER_SECOND = 200;
const BURST = 400;
/** How often a call that was refused as one too many is tried again. */
const REPEATS = 3;
const LONGEST_REPEAT_MILLISECONDS = 10_000;

export interface CallsOptions {
  readonly access: ClusterAccess;
  /** `grantry/<version>`. */
  readonly userAgent: string;
  /** Milliseconds for one call without a list; default 10 000. */
  readonly callLimit?: number;
}

export interface Call {
  readonly verb: string;
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly request: Omit<Request, 'limit' | 'headers' | 'isWatch' | 'body'> & { readonly limit?: number };
  readonly accept?: string | undefined;
  readonly contentType?: string;
  readonly body?: unknown;
  /** Names of arrays in the answer that nobody reads. */
  readonly unread?: readonly string[] | undefined;
}

/** Every method throws KubernetesError. */
export class Calls {
  readonly #access: ClusterAccess;
  readonly #connection: Connection;
  readonly #callLimit: number;
  readonly #rate = new TokenBucket({ perSecond: PER_SECOND, burst: BURST });

  constructor(options: CallsOptions) {
    this.#access = options.access;
    this.#connection = new Connection(options);
    this.#callLimit = options.callLimit ?? CALL_MILLISECONDS;
  }

  /** Cuts what still runs. */
  close(): void {
    this.#connection.close();
  }

  /** What is said of the call if it fails. */
  named({ verb, resource, namespace }: Call): FailedCall {
    return { verb, resource, namespace, user: this.#connection.user };
  }

  /** The whole answer, as JSON, within the call's limit. */
  async json(call: Call): Promise<unknown> {
    const limit = AbortSignal.timeout(call.request.limit ?? this.#callLimit);
    const signal = call.request.signal === undefined ? limit : AbortSignal.any([call.request.signal, limit]);
    const response = await this.answer({ ...call, request: { ...call.request, signal } });
    const body = await this.#body(call, response, signal);
    const answer = parsedJson((call.unread === undefined ? body : withEmptied(body, call.unread)).toString('utf8'));
    if (answer === undefined) throw unreadable(this.named(call), response.statusCode ?? 0, 'UnreadableAnswer');
    return answer;
  }

  /** The answer to a call that was accepted, its body unread. Asks again with fresh credentials, and after a pause when it was one too many. */
  async answer(call: Call): Promise<IncomingMessage> {
    let mayRenew = true;
    for (let repeats = 0; ; repeats++) {
      await this.#pause(call, this.#rate.take());
      const response = await this.#send(call);
      const { statusCode: status = 0 } = response;
      if (status >= 200 && status < 300) return response;
      const body = await this.#body(call, response, call.request.signal);
      if (status === 401 && mayRenew) {
        mayRenew = false;
        this.#access.renew();
        continue;
      }
      if (status !== 429 || repeats >= REPEATS)
        throw refusal(this.named(call), status, parsedJson(body.toString('utf8')));
      const seconds = Number(response.headers['retry-after'] ?? 1);
      await this.#pause(call, Math.min(LONGEST_REPEAT_MILLISECONDS, Math.max(1, seconds || 1) * 1000));
    }
  }

  async #send(call: Call): Promise<IncomingMessage> {
    const { request, accept = 'application/json', contentType = 'application/json', body } = call;
    const headers = body === undefined ? { accept } : { accept, 'content-type': contentType };
    const isWatch = call.verb === 'watch';
    const text = body === undefined ? undefined : JSON.stringify(body);
    try {
      return await this.#connection.send({ limit: this.#callLimit, ...request, headers, isWatch, body: text });
    } catch (error) {
      throw silence(this.named(call), error, call.request.signal);
    }
  }

  async #body(call: Call, response: IncomingMessage, signal: AbortSignal | undefined): Promise<Buffer> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of response) chunks.push(chunk as Buffer);
    } catch (error) {
      throw silence(this.named(call), error, signal);
    }
    return Buffer.concat(chunks);
  }

  async #pause(call: Call, milliseconds: number): Promise<void> {
    if (milliseconds <= 0) return;
    const { signal } = call.request;
    await sleep(milliseconds, signal);
    if (signal?.aborted) throw silence(this.named(call), signal.reason, signal);
  }
}
