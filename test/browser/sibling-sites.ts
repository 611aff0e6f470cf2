// Two https sites under one parent domain, which Chromium finds at loopback by itself: that of grantry, behind a proxy that ends
// TLS, and a hostile one, which answers with any cookies.

import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { CertificateMaker } from '../client-certificates.ts';
import { freePort } from '../free-port.ts';

/** The domain of both. */
export const PARENT = 'shop.localhost';

export class SiblingSites {
  /** Where grantry is to be, by its issuer. */
  readonly issuer: string;
  readonly hostile: string;
  /** The Set-Cookie headers of the hostile site. */
  planted: readonly string[] = [];
  /** The last Cookie header that was sent to the issuer. */
  sent = '';
  /** Of grantry, which speaks plain HTTP there. */
  grantryPort = 0;
  readonly #server: Server;

  private constructor(port: number, server: Server) {
    this.issuer = `https://login.${PARENT}:${port}`;
    this.hostile = `https://evil.${PARENT}:${port}`;
    this.#server = server;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      if (request.headers.host === new URL(this.issuer).host) this.#pass(request, response);
      else response.writeHead(200, { 'content-type': 'text/html', 'set-cookie': [...this.planted] }).end('<h1>Hi</h1>');
    });
  }

  /** Its certificate is known to no browser. */
  static async start(): Promise<SiblingSites> {
    const port = await freePort();
    const maker = new CertificateMaker();
    const { certificate, key } = maker.make({ extensions: [`subjectAltName=DNS:*.${PARENT}`] });
    maker.remove();
    const server = createServer({ cert: certificate, key });
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return new SiblingSites(port, server);
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #pass(request: IncomingMessage, response: ServerResponse): void {
    const { method, url: path, headers } = request;
    this.sent = headers.cookie ?? '';
    const passed = httpRequest({ host: '127.0.0.1', port: this.grantryPort, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    passed.once('error', (error) => response.destroy(error));
    request.pipe(passed);
  }
}
