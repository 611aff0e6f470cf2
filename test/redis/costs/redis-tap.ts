// A relay between grantry and its Redis that reads along: which commands are sent, how many bytes go each way, and how
// often the process waits for Redis.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** What went through between `begin` and `end`. */
export interface Traffic {
  /** The name of each command, in order. */
  readonly commands: readonly string[];
  /** Bytes to Redis. */
  readonly sent: number;
  /** Bytes from Redis. */
  readonly received: number;
  /** Requests, or several that were sent at once, that came after the replies to all before them. */
  readonly roundTrips: number;
}

export class RedisTap {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #commands: string[] = [];
  #sent = 0;
  #received = 0;
  #roundTrips = 0;
  #isAwaited = false;

  private constructor(port: number) {
    this.#server = createServer((client) => this.#relay(client, connect({ host: '127.0.0.1', port, noDelay: true })));
  }

  /** Listens on a port of its own. @param port of the Redis */
  static async to(port: number): Promise<RedisTap> {
    const tap = new RedisTap(port);
    tap.#server.listen(0, '127.0.0.1');
    await once(tap.#server, 'listening');
    return tap;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Whether a request is on its way that has no reply. */
  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  begin(): void {
    this.#commands = [];
    this.#sent = 0;
    this.#received = 0;
    this.#roundTrips = 0;
  }

  end(): Traffic {
    return {
      commands: this.#commands,
      sent: this.#sent,
      received: this.#received,
      roundTrips: this.#roundTrips,
    };
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #relay(client: Socket, redis: Socket): void {
    client.setNoDelay();
    const reader = new RequestReader((words) => this.#read(words));
    client.on('data', (chunk) => {
      if (!this.#isAwaited) this.#roundTrips += 1;
      this.#isAwaited = true;
      reader.push(chunk);
      redis.write(chunk);
    });
    redis.on('data', (chunk) => {
      this.#isAwaited = false;
      this.#received += chunk.length;
      client.write(chunk);
    });
    for (const [socket, other] of [
      [client, redis],
      [redis, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
  }

  #read(words: readonly string[]): void {
    this.#commands.push((words[0] ?? '').toUpperCase());
    this.#sent += lengthOf(words);
  }
}

/** The bytes of a request. The fraction of a time is left out: it has as many digits as chance gives it. */
function lengthOf(words: readonly string[]): number {
  const whole = words.map((word) => word.replace(/^(\d+)\.\d+$/, '$1'));
  return whole.reduce(
    (sum, word) => sum + `$${word.length}\r\n\r\n`.length + word.length,
    `*${words.length}\r\n`.length,
  );
}

/** Cuts a byte stream into requests: arrays of bulk strings. Each word has a character for each byte. */
class RequestReader {
  readonly #onRequest: (words: readonly string[]) => void;
  #pending = '';

  constructor(onRequest: (words: readonly string[]) => void) {
    this.#onRequest = onRequest;
  }

  push(chunk: Buffer): void {
    this.#pending += chunk.toString('latin1');
    while (this.#readOne());
  }

  #readOne(): boolean {
    let position = 0;
    const number = (): number | undefined => {
      const end = this.#pending.indexOf('\r\n', position);
      if (end < 0) return undefined;
      const value = Number(this.#pending.slice(position + 1, end));
      position = end + 2;
      return value;
    };
    const count = number();
    if (count === undefined) return false;
    const words: string[] = [];
    while (words.length < count) {
      const length = number();
      if (length === undefined || this.#pending.length < position + length + 2) return false;
      words.push(this.#pending.slice(position, position + length));
      position += length + 2;
    }
    this.#pending = this.#pending.slice(position);
    this.#onRequest(words);
    return true;
  }
}
