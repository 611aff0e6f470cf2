// Requests to the API server over keep-alive connections: credentials, TLS, TCP keep-alive and timeouts. calls.ts
// retries; api-client.ts builds the requests.

import type { Agent, ClientRequest, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { withDeadline } from '../../oauth/ports/deadline.ts';
import type { ClusterAccess, TlsFiles } from './cluster-access.ts';
import { withTimeout } from './timeout.ts';

// An `import` would load Node's fetch as well: a megabyte of code that the start does not need.
const { Agent: HttpAgent, request: requestHttp } = process.getBuiltinModule('node:http');

/** The interval of TCP keep-alive probes. */
const KEEP_ALIVE_MILLISECONDS = 30_000;
/** An exec plugin may wait for input that never comes. */
const CREDENTIALS_MILLISECONDS = 30_000;
/** Connections for calls; each watch has its own connection. */
const CALL_CONNECTIONS = 32;

export interface Request {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The timeout for the headers of the response, in milliseconds. */
  readonly limit: number;
  /** Whether the response is a watch, which gets its own connection. */
  readonly isWatch: boolean;
}

/** The request got no response. The reason is `NoCredentials`, `Timeout`, `Aborted` or `NoAnswer`. */
export class NoAnswerError extends Error {
  readonly reason: string;

  constructor(reason: string, detail: string) {
    super(detail);
    this.name = 'NoAnswerError';
    this.reason = reason;
  }
}

export interface ConnectionOptions {
  readonly access: ClusterAccess;
  readonly userAgent: string;
}

export class Connection {
  readonly #options: ConnectionOptions;
  #pool: { readonly tls: TlsFiles; readonly calls: Agent; readonly watches: Agent } | undefined;
  #user = 'unknown user';

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** The user of the latest request, for messages. */
  get user(): string {
    return this.#user;
  }

  /** The response, its body unread. Throws NoAnswerError. */
  async send(request: Request): Promise<IncomingMessage> {
    const reading = withTimeout(this.#options.access.credentials(), CREDENTIALS_MILLISECONDS, 'they take too long');
    const credentials = await reading.catch((error: Error) => {
      throw new NoAnswerError('NoCredentials', error.message);
    });
    this.#user = credentials.user;
    const agent = this.#agentFor(credentials.tls, request.isWatch);
    const headers = {
      ...request.headers,
      ...credentials.headers,
      'user-agent': this.#options.userAgent,
      // Node sends no Content-Length with DELETE by itself, and the preconditions in the body would be lost.
      ...(request.body === undefined ? {} : { 'content-length': String(Buffer.byteLength(request.body)) }),
    };
    try {
      return await this.#exchange(request, headers, agent);
    } catch (error) {
      // The API server may close an idle connection at the moment it is reused: it has not read the request then.
      if (error instanceof ReusedConnectionError) return this.#exchange(request, headers, agent);
      throw error;
    }
  }

  /** Closes all connections. Aborts the requests in flight. */
  close(): void {
    this.#pool?.calls.destroy();
    this.#pool?.watches.destroy();
    this.#pool = undefined;
  }

  async #exchange(request: Request, headers: Record<string, string>, agent: Agent): Promise<IncomingMessage> {
    const { method, path, body, signal, limit } = request;
    const { server } = this.#options.access;
    const late = AbortSignal.timeout(limit);
    const ended = signal === undefined ? late : AbortSignal.any([signal, late]);
    if (ended.aborted) throw noAnswer(ended.reason, signal);
    const open = server.startsWith('https:') ? requestHttps : requestHttp;
    const sent = open(`${server}${path}`, { method, headers, agent, signal });
    try {
      return await withDeadline(ended, headOf(sent, body));
    } catch (error) {
      sent.destroy();
      if (late.aborted) throw new NoAnswerError('Timeout', `no answer within ${limit / 1000} s`);
      throw error instanceof ReusedConnectionError ? error : noAnswer(error as NodeJS.ErrnoException, signal);
    }
  }

  /** Requests with the same TLS files share connections; those with old files close after their last request. */
  #agentFor(tls: TlsFiles, isWatch: boolean): Agent {
    if (this.#pool === undefined || !sameTls(this.#pool.tls, tls)) {
      // The kernel sends TCP keep-alive probes on them, idle or not.
      const kept = { keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MILLISECONDS };
      const agent = this.#options.access.server.startsWith('https:')
        ? (more: object) => new HttpsAgent({ ...kept, ...more, ...defined(tls) })
        : (more: object) => new HttpAgent({ ...kept, ...more });
      this.#pool = { tls, calls: agent({ maxSockets: CALL_CONNECTIONS }), watches: agent({ maxFreeSockets: 8 }) };
    }
    return isWatch ? this.#pool.watches : this.#pool.calls;
  }
}

class ReusedConnectionError extends Error {}

/** The response to a request, its body unread. */
function headOf(sent: ClientRequest, body: string | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.on('response', (response) => {
      // A reader of the response gets the error too; without a reader it must not end the process.
      response.on('error', () => {});
      resolve(response);
    });
    sent.on('error', (error: NodeJS.ErrnoException) => {
      const isStale = sent.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
      reject(isStale ? new ReusedConnectionError() : error);
    });
    // A connection that closes without a response, as after a change of the protocol, emits neither 'response' nor
    // 'error'.
    sent.on('close', () => reject(new NoAnswerError('NoAnswer', 'the connection was closed')));
    sent.end(body);
  });
}

/** The error of a failed request or response as a NoAnswerError. */
export function noAnswer(error: NodeJS.ErrnoException, signal: AbortSignal | undefined): NoAnswerError {
  if (error instanceof NoAnswerError) return error;
  if (signal?.aborted) return new NoAnswerError('Aborted', 'not asked any more');
  return new NoAnswerError('NoAnswer', error.code ?? error.message);
}

function sameTls(one: TlsFiles, other: TlsFiles): boolean {
  const text = ({ ca, cert, key, servername, rejectUnauthorized }: TlsFiles) =>
    JSON.stringify([ca?.toString(), cert?.toString(), key?.toString(), servername, rejectUnauthorized]);
  return one === other || text(one) === text(other);
}

function defined(tls: TlsFiles): object {
  return Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined));
}
