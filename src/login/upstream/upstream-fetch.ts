// Every call to one identity provider: verified TLS with the authorities of its Secret, the proxy of the environment, no redirect,
// and bounds on time, size and calls at once.

import type { Dispatcher, Headers, RequestInit, Response } from 'undici';
import { withDeadline } from '../../oauth/ports/deadline.ts';
import { isLoopback } from '../../oauth/values/redirect-uri.ts';

/** From the call to the last byte, in milliseconds: a browser waits for it. */
const LIMIT = 5000;
const BODY_BYTES_MAX = 1024 * 1024;
/** A provider that answers late holds these, and no more, while the sign-ins of others go on. */
const AT_ONCE = 32;

/** The provider was not reached, answered with a fault of its own, or has too many calls already. */
export class UpstreamUnavailableError extends Error {
  /** The address that was called. */
  readonly url: string;
  /** Of the answer; undefined where there was none. */
  readonly status: number | undefined;

  constructor(url: string, { cause, status }: { readonly cause?: unknown; readonly status?: number } = {}) {
    super('the identity provider is unavailable', { cause });
    this.name = 'UpstreamUnavailableError';
    this.url = url;
    this.status = status;
  }
}

export interface UpstreamFetchOptions {
  /** PEM certificates that are trusted beside those of Node; undefined for none. */
  readonly authorities: string | undefined;
  /** Whether plain http may be used, to loopback alone. */
  readonly allowsPlain: boolean;
  /** Milliseconds; default 5000. */
  readonly limit?: number;
}

/** The connections to one provider. undici is loaded by the first call. */
export class UpstreamFetch {
  readonly #options: UpstreamFetchOptions;
  #dispatcher: Dispatcher | undefined;
  #running = 0;

  constructor(options: UpstreamFetchOptions) {
    this.#options = options;
  }

  /**
   * As `fetch`, with the whole body read.
   * @throws UpstreamUnavailableError also for a status of 429 and from 500 on
   * @throws Error for an address without TLS, and for an answer that is a redirect or too large
   */
  async fetch(url: string, init: RequestInit): Promise<Response> {
    if (!isPermitted(url, this.#options)) throw new Error('an address of an identity provider is not secure');
    if (this.#running >= AT_ONCE) throw new UpstreamUnavailableError(url);
    this.#running += 1;
    const signal = AbortSignal.timeout(this.#options.limit ?? LIMIT);
    try {
      return await withDeadline(signal, this.#fetch(url, { ...init, signal }));
    } catch (error) {
      if (error !== signal.reason) throw error;
      // The next call would wait behind a connection that is still being set up for this one.
      this.close();
      throw new UpstreamUnavailableError(url, { cause: error });
    } finally {
      this.#running -= 1;
    }
  }

  /** Closes the connections; running calls end first, and a later one has another. */
  close(): void {
    this.#dispatcher?.close().catch(() => {});
    this.#dispatcher = undefined;
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    const { fetch, Response } = await import('undici');
    const dispatcher = await this.#connections();
    const response = await fetch(url, { ...init, dispatcher, redirect: 'manual' }).catch((error) => {
      throw new UpstreamUnavailableError(url, { cause: error });
    });
    const { status, headers } = response;
    if (status === 429 || status >= 500) {
      await response.body?.cancel();
      throw new UpstreamUnavailableError(url, { status });
    }
    if (status >= 300 && status < 400) {
      await response.body?.cancel();
      throw new Error('an identity provider redirects no call of a server');
    }
    const read = new Response(await bounded(url, response), { status, headers: unencoded(headers) });
    // A response that is made has no address of its own.
    return Object.defineProperty(read, 'url', { value: url });
  }

  async #connections(): Promise<Dispatcher> {
    if (this.#dispatcher === undefined) {
      const { EnvHttpProxyAgent } = await import('undici');
      const { getCACertificates } = await import('node:tls');
      const { authorities } = this.#options;
      const connect = {
        rejectUnauthorized: true,
        ...(authorities !== undefined && { ca: [...getCACertificates('default'), authorities] }),
      };
      this.#dispatcher ??= new EnvHttpProxyAgent({ connect, requestTls: connect });
    }
    return this.#dispatcher;
  }
}

/** The body, read to its end. @throws Error above the bound */
async function bounded(url: string, response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of response.body ?? []) {
      length += chunk.length;
      if (length > BODY_BYTES_MAX) break;
      chunks.push(chunk);
    }
  } catch (error) {
    throw new UpstreamUnavailableError(url, { cause: error });
  }
  if (length > BODY_BYTES_MAX) throw new Error('the answer of an identity provider is too large');
  return Buffer.concat(chunks);
}

/** The body was decoded as it was read: what said how it was encoded is no longer so. */
function unencoded(headers: Headers): [string, string][] {
  return [...headers].filter(([name]) => name !== 'content-encoding' && name !== 'content-length');
}

/** Whether an address of the provider may be called, or a browser be sent there. */
export function isPermitted(address: string, { allowsPlain }: Pick<UpstreamFetchOptions, 'allowsPlain'>): boolean {
  const url = URL.parse(address);
  if (url === null) return false;
  return url.protocol === 'https:' || (allowsPlain && url.protocol === 'http:' && isLoopback(address));
}
