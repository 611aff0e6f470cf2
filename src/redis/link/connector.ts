// Opens the sockets of connections to Redis, in place of ioredis, which stops listening after a socket's first error. A TLS
// socket may have a second one: it is destroyed since we do not trust the server's certificate, and is then told that the
// server did not like how the handshake ended. An error that nobody hears ends the process.

import { createConnection, Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions as TlsOptions } from 'node:tls';
import { AbstractConnector } from 'ioredis';
import type { RedisAddress } from './redis-url.ts';

export interface ConnectorParts {
  /** Asked at every connect; undefined without TLS. */
  readonly tls: () => TlsOptions | undefined;
  /** How long a connection that we end may take to close, in milliseconds. */
  readonly disconnectTimeout: number;
  /** Asked once a connection is set up: false, and it is given up. Without its database a client would go on in the first one. */
  readonly isFit?: () => boolean;
}

/** Whoever extends it says where to. */
export abstract class Connector extends AbstractConnector {
  readonly #tls: ConnectorParts['tls'];
  readonly #isFit: () => boolean;

  constructor({ tls, disconnectTimeout, isFit = () => true }: ConnectorParts) {
    super(disconnectTimeout);
    this.#tls = tls;
    this.#isFit = isFit;
  }

  /** Whether the connection may be used. @param _info INFO of the server, as far as it may be read */
  override check(_info: object): boolean {
    return this.#isFit();
  }

  protected dial(address: RedisAddress): Socket {
    const socket = this.#open(address);
    socket.on('error', (error) => {
      this.firstError = error;
    });
    this.stream = socket;
    return socket;
  }

  /** A failed socket where our certificate and key are no pair, as while they are replaced: after a throw ioredis ends for good. */
  #open(address: RedisAddress): Socket {
    const tls = this.#tls();
    try {
      return tls === undefined ? createConnection({ ...address }) : connectTls({ ...address, ...tls });
    } catch (error) {
      this.firstError = error as Error;
      return new Socket().destroy();
    }
  }
}

/** To one address. */
export class AddressConnector extends Connector {
  readonly #address: RedisAddress;

  constructor(address: RedisAddress, parts: ConnectorParts) {
    super(parts);
    this.#address = address;
  }

  override async connect(): Promise<Socket> {
    this.connecting = true;
    return this.dial(this.#address);
  }
}
