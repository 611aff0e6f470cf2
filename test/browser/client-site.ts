// A web site that is not ours, on the names a test needs: it takes callbacks, sends them on, and serves hostile pages.

import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';

export interface ClientSite {
  readonly port: number;
  /** What a GET of this path answers from now on. */
  serve(path: string, html: string): void;
  /** A GET of this path is redirected there, its query with it. */
  sendOn(path: string, target: string): void;
  /** The targets of all requests so far. */
  readonly seen: readonly string[];
  close(): Promise<void>;
}

/**
 * Listens on IPv4 and IPv6 loopback.
 * @param tls for a site over https
 */
export async function startClientSite(tls?: { readonly cert: string; readonly key: string }): Promise<ClientSite> {
  const newServer = () => (tls === undefined ? createServer(listener) : createSecureServer(tls, listener));
  const pages = new Map<string, string>();
  const hops = new Map<string, string>();
  const seen: string[] = [];
  const listener: RequestListener = (request, response) => {
    const { pathname, search } = new URL(`http://site${request.url ?? '/'}`);
    seen.push(`${request.method} http://${request.headers.host}${request.url}`);
    const hop = hops.get(pathname);
    if (hop !== undefined) response.writeHead(302, { location: `${hop}${search}` }).end();
    else
      response.writeHead(200, { 'content-type': 'text/html' }).end(pages.get(pathname) ?? '<h1>The application</h1>');
  };
  const ipv4 = await listen(newServer(), '127.0.0.1', 0);
  const { port } = ipv4.address() as AddressInfo;
  const ipv6 = await listen(newServer(), '::1', port);
  return {
    port,
    serve: (path, html) => void pages.set(path, html),
    sendOn: (path, target) => void hops.set(path, target),
    seen,
    close: async () => {
      for (const server of [ipv4, ipv6]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

function listen(server: Server, host: string, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}
