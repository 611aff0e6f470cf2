// Sends a call to the API server and retries it: timeout, rate limit, new credentials after 401, `Retry-After` after
// 429. api-client.ts builds the calls and reads the responses.

import type { IncomingMessage } from 'node:http';
import { withDeadline } from '../../oauth/ports/deadline.ts';
import type { Resource } from '../objects/resources.ts';
import { connectionError, type FailedCall, refusal, unreadable } from './api-errors.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { Connection, type Request } from './connection.ts';
import { withEmptied } from './emptied-arrays.ts';
import { parsedJson } from './parsed-json.ts';
import { sleep } from './sleep.ts';
import { TokenBucket } from './token-bucket.ts';

/** The content type of a server-side apply. */
export const APPLY = 'application/apply-patch+yaml';
/** That of a JSON merge patch (RFC 7396). */
export const MERGE_PATCH = 'application/merge-patch+json';

const CALL_MILLISECONDS = 10_000;
const PER_SECOND = 200;
const BURST = 400;
/** Retries after 429. */
const MAX_RETRIES = 3;
const LONGEST_RETRY_MILLISECONDS = 10_000;

export interface CallsOptions {
  readonly access: ClusterAccess;
  /** `grantry/<version>`. */
  readonly userAgent: string;
  /** The timeout of a call that is no list, in milliseconds; default 10 000. */
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
  /** Names of arrays in the response that the caller does not read. */
  readonly unread?: readonly string[] | undefined;
  /** The most bytes of the response. */
  readonly maxBytes?: number | undefined;
}

/** A response as JSON, and the size that it had. */
export interface JsonAnswer {
  readonly answer: unknown;
  readonly bytes: number;
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

  /** Aborts the calls in flight. */
  close(): void {
    this.#connection.close();
  }

  /** The call as an error names it. */
  named({ verb, resource, namespace }: Call): FailedCall {
    return { verb, resource, namespace, user: this.#connection.user };
  }

  /** The whole response as JSON, within the timeout of the call. */
  async json(call: Call): Promise<JsonAnswer> {
    const signal = this.#within(call);
    const response = await this.answer({ ...call, request: { ...call.request, signal } });
    const body = await this.#body(call, response, signal);
    const bytes = body.length;
    const answer = parsedJson((call.unread === undefined ? body : withEmptied(body, call.unread)).toString('utf8'));
    if (answer === undefined) throw unreadable(this.named(call), response.statusCode ?? 0, 'UnreadableAnswer');
    return { answer, bytes };
  }

  /** Aborts with the signal of the call, and after its timeout. */
  #within({ request: { signal, limit = this.#callLimit } }: Call): AbortSignal {
    const late = AbortSignal.timeout(limit);
    return signal === undefined ? late : AbortSignal.any([signal, late]);
  }

  /** The response with status 2xx, its body unread. Retries once with new credentials after 401, and after 429. */
  async answer(call: Call): Promise<IncomingMessage> {
    let mayRenew = true;
    for (let retries = 0; ; retries++) {
      await this.#pause(call, this.#rate.take());
      const response = await this.#send(call);
      const { statusCode: status = 0 } = response;
      if (status >= 200 && status < 300) return response;
      // The signal of a watch has no timeout.
      const body = await this.#body(call, response, this.#within(call));
      if (status === 401 && mayRenew) {
        mayRenew = false;
        this.#access.renew();
        continue;
      }
      if (status !== 429 || retries >= MAX_RETRIES)
        throw refusal(this.named(call), status, parsedJson(body.toString('utf8')));
      const seconds = Number(response.headers['retry-after'] ?? 1);
      await this.#pause(call, Math.min(LONGEST_RETRY_MILLISECONDS, Math.max(1, seconds || 1) * 1000));
    }
  }

  async #send(call: Call): Promise<IncomingMessage> {
    const { request, accept = 'application/json', contentType = 'application/json', body } = call;
    const headers = body === undefined ? { accept } : { accept, 'content-type': contentType };
    const isWatch = call.verb === 'watch';
    const write = contentType === APPLY ? applyBody : JSON.stringify;
    const text = body === undefined ? undefined : write(body);
    try {
      return await this.#connection.send({ limit: this.#callLimit, ...request, headers, isWatch, body: text });
    } catch (error) {
      throw connectionError(this.named(call), error, call.request.signal);
    }
  }

  async #body(call: Call, response: IncomingMessage, signal: AbortSignal): Promise<Buffer> {
    const read = await withDeadline(signal, bytesOf(response, call.maxBytes ?? Infinity)).catch((error) => {
      response.destroy();
      throw connectionError(this.named(call), error, signal);
    });
    if (read === undefined) throw unreadable(this.named(call), 200, 'OversizedAnswer');
    return read;
  }

  async #pause(call: Call, milliseconds: number): Promise<void> {
    if (milliseconds <= 0) return;
    const { signal } = call.request;
    await sleep(milliseconds, signal);
    if (signal?.aborted) throw connectionError(this.named(call), signal.reason, signal);
  }
}

/** A whole body; undefined for one above the bound, whose connection is closed. */
async function bytesOf(response: IncomingMessage, most: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > most) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** What JSON.stringify writes and YAML may refuse: raw characters outside printable ASCII, halves of surrogate pairs. */
const ODD = /\\(u[0-9a-f]{4}|.)|[^\x20-\x7e]/gu;

/**
 * The body of a server-side apply. The API server reads it as YAML, which refuses characters that JSON has raw: DEL, C1
 * controls, noncharacters, a byte order mark. It is YAML that is JSON, except that a character beyond U+FFFF is `\U` and eight
 * digits.
 */
export function applyBody(object: unknown): string {
  return JSON.stringify(object).replace(ODD, (text, sequence: string | undefined) => {
    // JSON.stringify escapes only halves that are alone. No YAML holds one.
    if (sequence !== undefined) return /^ud[89a-f]/.test(sequence) ? '\\ufffd' : text;
    const code = (text.codePointAt(0) ?? 0).toString(16);
    return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
  });
}
