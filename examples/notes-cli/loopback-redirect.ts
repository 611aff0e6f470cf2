// Where the browser comes back to: a free port of this machine, open until one answer has come (RFC 8252 §7.3).

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const PATH = '/callback';

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
  'cache-control': 'no-store',
  // The address has the code.
  'referrer-policy': 'no-referrer',
};

/** A port that waits for the answer to one authorization request. */
export class LoopbackRedirect {
  readonly redirectUri: string;
  /** The address that the browser came back to. */
  readonly answer: Promise<URL>;
  readonly #server: Server;

  private constructor(server: Server, state: string) {
    this.#server = server;
    const { port } = server.address() as AddressInfo;
    this.redirectUri = `http://127.0.0.1:${port}${PATH}`;
    this.answer = new Promise((resolve) => {
      server.on('request', (request, response) => this.#receive(request, response, { state, resolve }));
    });
  }

  /** @param state that of the authorization request; requests with another one are no answer to it */
  static async listen(state: string): Promise<LoopbackRedirect> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new LoopbackRedirect(server, state);
  }

  /** Gives the port up. */
  close(): void {
    this.#server.close();
    this.#server.closeIdleConnections();
  }

  #receive(
    request: IncomingMessage,
    response: ServerResponse,
    { state, resolve }: { readonly state: string; readonly resolve: (answer: URL) => void },
  ): void {
    const url = URL.parse(request.url ?? '', this.redirectUri);
    if (url?.pathname !== PATH) {
      response.writeHead(404).end();
      return;
    }
    if (url.searchParams.get('state') !== state) {
      response
        .writeHead(400, PAGE_HEADERS)
        .end(page('This is no answer to the sign-in that the command line waits for.'));
      return;
    }
    const isAllowed = url.searchParams.has('code');
    const said = isAllowed ? 'You are signed in.' : 'No access was given.';
    response.writeHead(200, { ...PAGE_HEADERS, connection: 'close' });
    response.end(page(`${said} You can close this window and go back to the command line.`));
    resolve(url);
  }
}

function page(sentence: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Notes on the command line</title>
<style>
:root { color-scheme: light dark; background: light-dark(#fff, #16181d); color: light-dark(#16181d, #eceef2) }
body { font: 1.1rem/1.5 system-ui, sans-serif; margin: 4rem auto; max-width: 32rem; padding: 0 1rem }
</style>
</head>
<body><main><h1>Notes</h1><p>${sentence}</p></main></body>
</html>
`;
}
