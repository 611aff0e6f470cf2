// Requests to the API server over kept connections: credentials, TLS, TCP keep-alive and time limits. What a request
// means is api-client.ts's, and what an answer does is calls.ts's.

import type { Agent, IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import type { ClusterAccess, TlsFiles } from './cluster-access.ts';
import { withTimeout } from './timeout.ts';

// An `import` would load Node's fetch as well, a megabyte of program that nothing at the start needs.
const { Agent: HttpAgent, request: requestHttp } = process.getBuiltinModule('node:http');

/** How often the kernel asks whether the other side is still there. */
const KEEP_ALIVE_MILLISECONDS = 30_000;
/** A plugin may wait for somebody who is not there. */
const CREDENTIALS_MILLISECONDS = 30_000;
/** Connections for calls; watches have each their own. */
const CALL_CONNECTIONS = 32;

export interface Request {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds until the headers of the answer must be there. */
  readonly limit: number;
  /** Whether the answer is a watch: a connection of its own. */
  readonly isWatch: boolean;
}

/** No answer came. The reason is `NoCredentials`, `Timeout`, `Aborted` or `NoAnswer`. */
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
  #user = 'nobody yet';

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** Who asked last, for messages. */
  get user(): string {
    return this.#user;
  }

  /** The answer, its body still unread. Throws NoAnswerError. */
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
      // Node sends none with DELETE by itself, and the preconditions in its body would be lost.
      ...(request.body === undefined ? {} : { 'content-length': String(Buffer.byteLength(request.body)) }),
    };
    try {
      return await this.#exchange(request, headers, agent);
    } catch (error) {
      // The API server may close a kept connection at the moment it is used again: then the request was not read.
      if (error instanceof ReusedConnectionError) return this.#exchange(request, headers, agent);
      throw error;
    }
  }

  /** Closes what is kept. Requests that still run are cut. */
  close(): void {
    this.#pool?.calls.destroy();
    this.#pool?.watches.destroy();
    this.#pool = undefined;
  }

  #exchange(request: Request, headers: Record<string, string>, agent: Agent): Promise<IncomingMessage> {
    const { method, path, body, signal, limit } = request;
    const { server } = this.#options.access;
    const open = server.startsWith('https:') ? requestHttps : requestHttp;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(new NoAnswerError('Aborted', 'not asked any more'));
      const sent = open(`${server}${path}`, { method, headers, agent, signal });
      const timer = setTimeout(() => {
        sent.destroy(new NoAnswerError('Timeout', `no answer within ${limit / 1000} s`));
      }, limit);
      sent.on('response', (response) => {
        clearTimeout(timer);
        // Whoever reads it sees the error too; nobody reading it must not end the process.
        response.on('error', () => {});
        resolve(response);
      });
      sent.on('error', (error: NodeJS.ErrnoException) => {
        clearTimeout(timer);
        if (sent.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE')) {
          return reject(new ReusedConnectionError());
        }
        reject(noAnswer(error, signal));
      });
      // An answer that is none, such as one that changes the protocol, ends it without another word.
      sent.on('close', () => {
        clearTimeout(timer);
        reject(new NoAnswerError('NoAnswer', 'the connection was closed'));
      });
      sent.end(body);
    });
  }

  /** Connections are shared as long as the TLS files are the same; those of old ones end with their requests. */
  #agentFor(tls: TlsFiles, isWatch: boolean): Agent {
    if (this.#pool === undefined || !sameTls(this.#pool.tls, tls)) {
      // The kernel probes them as well, in use or not.
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

/** The fault of a broken request or answer in words of our own. */
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
