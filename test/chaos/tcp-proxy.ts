// A proxy between the replicas and Redis that loses replies: what was asked has been done then, unknown to the replica.

import { once } from 'node:events';
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net';

/** `swallow`: no reply comes back. `cut`: now and then a connection ends instead of, or in the middle of, a reply. */
export type ProxyMode = 'pass' | 'swallow' | 'cut';

export interface TcpProxy {
  readonly port: number;
  /** Connections that have lost a reply end with the next change. */
  setMode(mode: ProxyMode): void;
  /** By how many seconds the server's clock seems to be ahead to those who ask for the time. */
  setClock(ahead: number): void;
  /** Ends every connection; later ones lead to the server on that port. */
  leadTo(port: number): void;
  stop(): Promise<void>;
}

/** @param chance whether this reply is cut off, when the mode is `cut` */
export async function startProxy(targetPort: number, chance: () => boolean): Promise<TcpProxy> {
  let port = targetPort;
  let mode: ProxyMode = 'pass';
  let ahead = 0;
  const open = new Set<Socket>();
  const damaged = new Set<Socket>();
  const end = (...sockets: readonly Socket[]) => {
    for (const socket of sockets) socket.destroy();
  };
  const server: Server = createServer({ noDelay: true }, (client) => {
    const upstream = dial({ host: '127.0.0.1', port, noDelay: true });
    for (const [socket, other] of [[client, upstream] as const, [upstream, client] as const]) {
      open.add(socket);
      socket.on('error', () => end(other));
      socket.on('close', () => {
        open.delete(socket);
        damaged.delete(socket);
        end(other);
      });
    }
    client.on('data', (request) => upstream.write(request));
    upstream.on('data', (data) => {
      const reply = ahead === 0 ? data : timeMoved(data, ahead);
      if (mode === 'swallow') damaged.add(client);
      else if (mode === 'cut' && chance()) {
        if (reply.length > 1 && chance()) client.write(reply.subarray(0, reply.length >> 1));
        client.destroySoon();
      } else if (!damaged.has(client)) client.write(reply);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    setMode(next) {
      mode = next;
      end(...damaged);
    },
    setClock(seconds) {
      ahead = seconds;
    },
    leadTo(next) {
      port = next;
      end(...open);
    },
    async stop() {
      end(...open);
      server.close();
      await once(server, 'close');
    },
  };
}

/** Replies to TIME, whose seconds have ten digits. */
function timeMoved(reply: Buffer, ahead: number): Buffer {
  const moved = reply
    .toString('latin1')
    .replace(/(\*2\r\n\$10\r\n)(\d{10})\r\n/g, (_all, before, time) => `${before}${Number(time) + ahead}\r\n`);
  return Buffer.from(moved, 'latin1');
}
