// Runs in a pod: TLS in front of Services, as an ingress is, on a port for each from FIRST_PORT on. Its input: ../ingress.ts.

import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:https';

const { UPSTREAMS = '', FIRST_PORT = '' } = process.env;
const [cert, key] = ['tls.crt', 'tls.key'].map((name) => readFileSync(`/client/${name}`));

for (const [index, upstream] of UPSTREAMS.split(' ').entries()) {
  const server = createServer({ cert, key }, (asked, answered) => {
    const { method, headers, socket } = asked;
    const forwarded = {
      'x-forwarded-for': socket.remoteAddress,
      'x-forwarded-proto': 'https',
      'x-forwarded-host': headers.host,
    };
    const handedOn = request(
      upstream,
      { method, path: asked.url, headers: { ...headers, ...forwarded } },
      (response) => {
        answered.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(answered);
      },
    );
    // A Service whose endpoints are not known yet may drop the connection: the caller tries again.
    handedOn.setTimeout(5000, () => handedOn.destroy(new Error('no answer')));
    handedOn.on('error', () => answered.destroy());
    asked.pipe(handedOn);
  });
  server.listen(Number(FIRST_PORT) + index);
}
