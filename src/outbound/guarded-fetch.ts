// Fetches a small JSON document from an address that a tenant chose, or posts a form to one: only hosts that may be reached,
// over verified TLS, and bounded in time and size. It follows no redirect, uses no proxy, sends no credentials, keeps no connection.
// A call ends by its deadline, whatever the host does, and its slot is free once its lookup has ended too.

import type { LookupAddress } from 'node:dns';
import type { IncomingMessage, RequestOptions } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { createSecureContext, getCACertificates } from 'node:tls';

import { withDeadline } from '../oauth/ports/deadline.ts';
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

interface Call extends Pick<RequestOptions, 'method' | 'headers'> {
  readonly url: URL;
  /** Whose slots it takes. */
  readonly tenant: string;
  /** Milliseconds. */
  readonly limit: number;
  readonly body?: string;
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
    const headers = { accept: MEDIA_TYPES.join(', ') };
    return await this.#call({ url: new URL(address), tenant, limit: LIMIT, headers }, readJson);
  }

  /**
   * Posts a form and reads nothing of the answer but its status. Without TLS only loopback is reached.
   * @param tenant whose slots the call takes: another tenant may have addresses at the same host
   * @throws FetchFailedError
   */
  async post(address: string, form: URLSearchParams, tenant: string): Promise<number> {
    const isPlain = address.startsWith('http:') && isLoopback(address);
    if (!isPlain && jwksUriFault(address) !== undefined) throw new FetchFailedError('address_refused');
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    return await this.#call(
      { url: new URL(address), tenant, limit: POST_LIMIT, method: 'POST', headers, body: form.toString() },
      async ({ statusCode = 0 }) => statusCode,
    );
  }

  /** Sends a request to one of the addresses of its host, each of which may be reached, and reads the answer. */
  async #call<Result>(call: Call, read: (response: IncomingMessage) => Promise<Result>): Promise<Result> {
    const signal = AbortSignal.timeout(this.#options.limit ?? call.limit);
    const leave = await this.#slots.enter(call.tenant, signal).catch(() => {
      throw new FetchFailedError('busy');
    });
    const { lookup = nameLookup() } = this.#options;
    const found = lookup(call.url.hostname, signal);
    try {
      return await withDeadline(signal, this.#exchange({ call, found, signal, read }));
    } catch (error) {
      throw error === signal.reason ? new FetchFailedError('timeout') : error;
    } finally {
      // The lookup of the system goes on after the signal: calls for hosts without an answer would pile up in it.
      found.then(leave, leave);
    }
  }

  async #exchange<Result>({
    call,
    found,
    signal,
    read,
  }: {
    readonly call: Call;
    readonly found: Promise<readonly LookupAddress[]>;
    readonly signal: AbortSignal;
    readonly read: (response: IncomingMessage) => Promise<Result>;
  }): Promise<Result> {
    const addresses = await found.catch((error) => {
      throw new FetchFailedError('name_unresolved', error);
    });
    const response = await this.#send(call, this.#checked(addresses), signal);
    try {
      return await read(response);
    } finally {
      response.destroy();
    }
  }

  /** The addresses, when each may be reached. */
  #checked(addresses: readonly LookupAddress[]): readonly LookupAddress[] {
    if (addresses.length === 0) throw new FetchFailedError('name_unresolved');
    const isReachable = addresses.every(({ address }) => this.#options.reachable.includes(address));
    if (!isReachable) throw new FetchFailedError('address_refused');
    return addresses;
  }

  /** The answer to a request, its body unread. */
  #send(
    { url, body, method, headers }: Call,
    addresses: readonly LookupAddress[],
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    let fault: FetchFault = 'connection_failed';
    const isPlain = url.protocol === 'http:';
    // An import of node:http would load Node's fetch with it, at each start.
    const send = isPlain ? process.getBuiltinModule('node:http').request : httpsRequest;
    const request = send(url, {
      method,
      // It closes the connection of a call whose time is over.
      signal,
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
    request.once('response', resolve);
    request.on('error', (error) => reject(new FetchFailedError(fault, error)));
    // No error comes before it where the host changes the protocol (101).
    request.once('close', () => reject(new FetchFailedError(fault)));
    request.end(body);
    return promise;
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

/** The document of a 200 answer in JSON. */
async function readJson(response: IncomingMessage): Promise<FetchedDocument> {
  const refused = headFault(response);
  if (refused !== undefined) throw new FetchFailedError(refused);
  const body = await readBody(response).catch((error) => {
    throw error instanceof FetchFailedError ? error : new FetchFailedError('connection_failed', error);
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
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new FetchFailedError('body_too_large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
