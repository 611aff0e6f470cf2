// Opens the sockets of connections to Redis, in place of ioredis, which stops listening after a socket's first error. A TLS
// socket may have a second one: it is destroyed since we do not trust the server's certificate, and is then told that the
// server did not like how the handshake ended. An error that nobody hears ends the process.

import { createConnection, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions as TlsOptions } from 'node:tls';
import { AbstractConnector } from 'ioredis';
import type { RedisAddress } from './redis-url.ts';

export interface ConnectorParts {
  /** Asked at every connect; undefined without TLS. */
  readonly tls: () => TlsOptions | undefined;
  /** How long a connection that we end may take to close, in milliseconds. */
  readonly disconnectTimeout: number;
}

export abstract class Connector extends AbstractConnector {
  readonly #tls: ConnectorParts['tls'];

  constructor({ tls, disconnectTimeout }: ConnectorParts) {
    super(disconnectTimeout);
    this.#tls = tls;
  }

  /** @throws when a certificate, key or authority of ours cannot be read */
  protected dial(address: RedisAddress): Socket {
    const tls = this.#tls();
    const socket = tls === undefined ? createConnection({ ...address }) : connectTls({ ...address, ...tls });
    socket.on('error', (error) => {
      this.firstError = error;
    });
    this.stream = socket;
    return socket;
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
