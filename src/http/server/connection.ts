// One connection of a peer: how many requests it may have at once, until when it must have made progress, and how it
// ends. Node limits how long a request may take to arrive; whatever a peer sends keeps its other limits from passing.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** In milliseconds. */
export interface ConnectionLimits {
  /** From the headers of a request to the end of its answer. */
  readonly answer: number;
  /** For the peer to take an answer. */
  readonly request: number;
  /** Between two requests of one connection. */
  readonly keepAlive: number;
}

/** Of one turn of the event loop, in which a segment is read with all its requests. Few clients send more than one. */
const REQUESTS_AT_ONCE = 8;

/** How long an ended connection is still read, in milliseconds, and how much later than announced an idle one ends. */
const LINGER = 1_000;

export class Connection {
  readonly #socket: Socket;
  readonly #limits: ConnectionLimits;
  /** Requests without an answer, or answered in this turn. */
  #unanswered = 0;
  #latest: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined;
  #isEnded = false;
  #limit: NodeJS.Timeout | undefined;

  constructor(socket: Socket, limits: ConnectionLimits) {
    this.#socket = socket;
    this.#limits = limits;
    // Node calls this after the last answer of a connection.
    socket.destroySoon = () => this.end();
    socket.on('close', () => clearTimeout(this.#limit));
  }

  /**
   * Whether a request may be handled: the parser still emits what one segment holds behind an answer that ends the
   * connection (RFC 9112 §9.6), and behind one request too many, which destroys it.
   */
  admit(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#latest?.response.shouldKeepAlive === false) return false;
    if (this.#unanswered === REQUESTS_AT_ONCE) {
      this.#socket.destroy();
      return false;
    }
    this.#unanswered += 1;
    // The limit of an answer before it stays: a peer must not put it off by one request more.
    if (this.#latest?.response.writableFinished ?? true) this.#allow(this.#limits.answer);
    this.#latest = { request, response };
    response.on('prefinish', () => this.#allow(this.#limits.request));
    // Before Node's own listener, which writes the next answer or ends the connection.
    response.prependListener('finish', () => {
      this.#allow(response === this.#latest?.response ? this.#limits.keepAlive + LINGER : this.#limits.answer);
      // An answer may be complete before the rest of its segment is read, which is still the same turn.
      setImmediate(() => (this.#unanswered -= 1));
    });
    return true;
  }

  /** Where in the stream bytes are that cannot be read. */
  get place(): 'between requests' | 'in a request' | 'behind a request' | 'behind an answer' {
    if (this.#latest === undefined) return 'between requests';
    const { request, response } = this.#latest;
    // The rest of a request that was refused by its headers, or data after the last answer: the client expects no other.
    if (response.writableEnded)
      return request.complete && response.shouldKeepAlive ? 'between requests' : 'behind an answer';
    // A second answer while the first is still to come would be taken for the first.
    return request.complete || response.headersSent ? 'behind a request' : 'in a request';
  }

  /**
   * Ends the connection behind what has been written. What the peer sends is read and discarded for a while: a socket
   * that is closed over unread bytes resets the connection, which takes from the peer what it has not read (RFC 9112 §9.6).
   */
  end(answer?: string): void {
    if (this.#isEnded) return;
    const socket = this.#socket;
    this.#isEnded = true;
    this.#destroyIn(this.#limits.request);
    socket.removeAllListeners('data').on('data', () => {});
    socket.resume();
    if (answer !== undefined) socket.write(answer);
    socket.end(() => this.#destroyIn(LINGER));
  }

  /** Gives the peer this long, in milliseconds, until the next step. */
  #allow(milliseconds: number): void {
    if (!this.#isEnded) this.#destroyIn(milliseconds);
  }

  #destroyIn(milliseconds: number): void {
    clearTimeout(this.#limit);
    if (!this.#socket.destroyed) this.#limit = setTimeout(() => this.#socket.destroy(), milliseconds);
  }
}
