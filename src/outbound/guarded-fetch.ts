// Fetches a small JSON document from an address that a tenant chose, or posts a form to one: only hosts that may be reached,
// over verified TLS, and bounded in time and size. It follows no redirect, uses no proxy, sends no credentials, keeps no connection.

import type { LookupAddress } from 'node:dns';
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { createSecureContext, getCACertificates } from 'node:tls';

import { jwksUriFault } from '../oauth/values/jwks-uri.ts';
import { isLoopback } from '../oauth/values/redirect-uri.ts';
import { FetchSlots } from './fetch-slots.ts';
import { type AddressLookup, nameLookup } from './name-lookup.ts';
import type { ReachableAddresses } from './reachable-addresses.ts';

/** From the call to the last byte, in milliseconds: a request of a client waits for it. */
const LIMIT = 2000;
/** The same for a form that is posted. */
const POST_LIMIT = 5000;
const BODY_BYTES_MAX = 64 * 1024;
const MEDIA_TYPES = ['application/json', 'application/jwk-set+json'];

/** Why there is no document. */
export type FetchFault =
  /** More fetches are running than may, for as long as this one had. */
  | 'busy'
  | 'name_unresolved'
  /** The host, or one of its addresses, may not be reached. */
  | 'address_refused'
  | 'connection_failed'
  | 'tls_failed'
  | 'timeout'
  /** Any status but 200, a redirect too. */
  | 'status_refused'
  | 'body_too_large'
  /** By its media type, or by its bytes. */
  | 'not_json';

export class FetchFailedError extends Error {
  readonly fault: FetchFault;

  constructor(fault: FetchFault, cause?: unknown) {
    super(`nothing was fetched: ${fault}`, { cause });
    this.name = 'FetchFailedError';
    this.fault = fault;
  }
}

export interface FetchedDocument {
  readonly content: unknown;
  /** The `Cache-Control` header; undefined when absent. */
  readonly cacheControl: string | undefined;
}

export interface GuardedFetchOptions {
  readonly reachable: ReachableAddresses;
  /** PEM certificates of authorities that are trusted beside those of Node; undefined for none. */
  readonly authorities: string | undefined;
  /** Default: that of the hosts file and the name servers. */
  readonly lookup?: AddressLookup | undefined;
  /** Milliseconds; default 2000. */
  readonly limit?: number;
}

export class GuardedFetch {
  readonly #options: GuardedFetchOptions;
  readonly #slots = new FetchSlots();
  #agent: Agent | undefined;

  constructor(options: GuardedFetchOptions) {
    this.#options = options;
  }

  /** The JSON document at an address. @param tenant as for `post` @throws FetchFailedError */
  async json(address: string, tenant: string): Promise<FetchedDocument> {
    if (jwksUriFault(address) !== undefined) throw new FetchFailedError('address_refused');
    const signal = AbortSignal.timeout(this.#options.limit ?? LIMIT);
    return await this.#reach({ url: new URL(address), sharer: tenant, signal }, async (url, addresses) =>
      readJson(await this.#answer(url, addresses, signal), signal),
    );
  }

  /**
   * Posts a form and reads nothing of the answer but its status. Without TLS only loopback is reached.
   * @param tenant whose slots the call takes: another tenant may have addresses at the same host
   * @throws FetchFailedError
   */
  async post(address: string, form: URLSearchParams, tenant: string): Promise<number> {
    const isPlain = address.startsWith('http:') && isLoopback(address);
    if (!isPlain && jwksUriFault(address) !== undefined) throw new FetchFailedError('address_refused');
    const signal = AbortSignal.timeout(this.#options.limit ?? POST_LIMIT);
    return await this.#reach({ url: new URL(address), sharer: tenant, signal }, async (to, addresses) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const { request, response } = this.#send(to, addresses, { signal, method: 'POST', headers }, form.toString());
      const { statusCode } = await response;
      request.destroy();
      return statusCode ?? 0;
    });
  }

  /** Does something with the addresses of a host, each of which may be reached. */
  async #reach<Result>(
    { url, sharer, signal }: { readonly url: URL; readonly sharer: string; readonly signal: AbortSignal },
    use: (url: URL, addresses: readonly LookupAddress[]) => Promise<Result>,
  ): Promise<Result> {
    const { lookup = nameLookup() } = this.#options;
    const leave = await this.#slots.enter(sharer, signal).catch(() => {
      throw new FetchFailedError('busy');
    });
    const found = lookup(url.hostname, signal);
    try {
      const addresses = this.#checked(await whileRunning(found, signal));
      return await use(url, addresses);
    } finally {
      // Not every lookup can be stopped: its slot is taken until it ends, or hosts without an answer would pile up.
      found.then(leave, leave);
    }
  }

  /** The addresses, when each may be reached. */
  #checked(addresses: readonly LookupAddress[]): readonly LookupAddress[] {
    if (addresses.length === 0) throw new FetchFailedError('name_unresolved');
    const isReachable = addresses.every(({ address }) => this.#options.reachable.includes(address));
    if (!isReachable) throw new FetchFailedError('address_refused');
    return addresses;
  }

  /** The head of a 200 answer in JSON. */
  async #answer(url: URL, addresses: readonly LookupAddress[], signal: AbortSignal): Promise<IncomingMessage> {
    const headers = { accept: MEDIA_TYPES.join(', ') };
    const { request, response } = this.#send(url, addresses, { signal, headers });
    const refused = headFault(await response);
    if (refused === undefined) return await response;
    request.destroy();
    throw new FetchFailedError(refused);
  }

  /** Sends a request to one of the addresses. */
  #send(
    url: URL,
    addresses: readonly LookupAddress[],
    options: Pick<RequestOptions, 'method' | 'headers'> & { readonly signal: AbortSignal },
    body?: string,
  ): { readonly request: ClientRequest; readonly response: Promise<IncomingMessage> } {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const { signal, headers } = options;
    let fault: FetchFault = 'connection_failed';
    const isPlain = url.protocol === 'http:';
    // An import of node:http would load Node's fetch with it, at each start.
    const send = isPlain ? process.getBuiltinModule('node:http').request : httpsRequest;
    const request = send(url, {
      ...options,
      agent: isPlain ? false : this.#connections(),
      // The socket gets the addresses that were checked: a second lookup could have another answer.
      lookup: answering(addresses),
      // Whatever NODE_TLS_REJECT_UNAUTHORIZED says.
      rejectUnauthorized: true,
      headers: { ...headers, 'accept-encoding': 'identity', 'user-agent': 'grantry' },
    });
    request.once('socket', (socket) => {
      socket.once('connect', () => {
        if (!isPlain) fault = 'tls_failed';
      });
      socket.once('secureConnect', () => {
        fault = 'connection_failed';
      });
    });
    request.on('error', (error) => reject(new FetchFailedError(signal.aborted ? 'timeout' : fault, error)));
    request.once('response', resolve);
    request.end(body);
    return { request, response: promise };
  }

  /** Made at the first fetch: reading all authorities takes a while. */
  #connections(): Agent {
    const { authorities } = this.#options;
    const unkept = { keepAlive: false, maxCachedSessions: 0 };
    this.#agent ??= new Agent(
      authorities === undefined
        ? unkept
        : { ...unkept, secureContext: createSecureContext({ ca: [...getCACertificates('default'), authorities] }) },
    );
    return this.#agent;
  }
}

async function whileRunning(
  found: Promise<readonly LookupAddress[]>,
  signal: AbortSignal,
): Promise<readonly LookupAddress[]> {
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = () => reject(new FetchFailedError('timeout'));
  signal.addEventListener('abort', stop, { once: true });
  const named = found.catch((error) => {
    throw new FetchFailedError('name_unresolved', error);
  });
  try {
    return await Promise.race([named, promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** A lookup as sockets call it, with a known answer. */
function answering(addresses: readonly LookupAddress[]): LookupFunction {
  const [first] = addresses;
  return (_host, { all }, callback) => {
    if (all) callback(null, [...addresses]);
    else callback(null, first?.address ?? '', first?.family);
  };
}

function headFault({ statusCode, headers }: IncomingMessage): FetchFault | undefined {
  if (statusCode !== 200) return 'status_refused';
  const mediaType = headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (mediaType === undefined || !MEDIA_TYPES.includes(mediaType)) return 'not_json';
  return Number(headers['content-length'] ?? 0) > BODY_BYTES_MAX ? 'body_too_large' : undefined;
}

async function readJson(response: IncomingMessage, signal: AbortSignal): Promise<FetchedDocument> {
  const body = await readBody(response).catch((error) => {
    if (error instanceof FetchFailedError) throw error;
    throw new FetchFailedError(signal.aborted ? 'timeout' : 'connection_failed', error);
  });
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    return { content: JSON.parse(text), cacheControl: response.headers['cache-control'] };
  } catch (error) {
    throw new FetchFailedError('not_json', error);
  }
}

async function readBody(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop destroys the response, and the connection with it.
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new FetchFailedError('body_too_large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
