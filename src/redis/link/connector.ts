// Opens the sockets of connections to Redis, in place of ioredis, which removes its listener after a socket's first
// error. A TLS socket may emit a second one: it is destroyed because the server's certificate is not trusted, and then
// receives the server's alert about the aborted handshake. An error event without a listener ends the process.

import { createConnection, Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions as TlsOptions } from 'node:tls';
import { AbstractConnector } from 'ioredis';
import type { RedisAddress } from './redis-url.ts';

export interface ConnectorParts {
  /** Called at every connect; undefined without TLS. */
  readonly tls: () => TlsOptions | undefined;
  /** How long a connection that this process ends may take to close, in milliseconds. */
  readonly disconnectTimeout: number;
  /** Called once a connection is set up: false ends it. After a failed SELECT it would otherwise go on in database 0. */
  readonly isFit?: () => boolean;
}

/** Subclasses choose the address. */
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

  /** A failed socket where certificate and key are no pair, as while they are replaced: a throw ends ioredis for good. */
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

/** Connects to one address. */
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
