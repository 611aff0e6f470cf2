// TLS in front of a server of this process that speaks http, as an ingress is.

import { once } from 'node:events';
import { request } from 'node:http';
import { createServer } from 'node:https';
import type { MadeCertificate } from '../../client-certificates.ts';

interface Front {
  readonly certificate: MadeCertificate;
  readonly port: number;
  /** Where requests go, with the headers that they came with. */
  readonly upstream: number;
}

/** Listens on 127.0.0.1. @returns what ends it */
export async function startTlsFront({ certificate, port, upstream }: Front): Promise<() => void> {
  const server = createServer({ cert: certificate.certificate, key: certificate.key }, (asked, answered) => {
    const { method, url, headers } = asked;
    const handedOn = request({ host: '127.0.0.1', port: upstream, method, path: url, headers }, (response) => {
      answered.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answered);
    });
    handedOn.on('error', () => answered.destroy());
    asked.pipe(handedOn);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return () => {
    server.closeAllConnections();
    server.close();
  };
}
