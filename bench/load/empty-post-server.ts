// The least a server on this runtime can do: reads a POST and answers a few bytes of JSON.

import { createServer } from 'node:http';

const port = Number(process.argv[2]);
const body = '{"active":true}';
const headers = { 'content-type': 'application/json', 'content-length': body.length };

createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(200, headers).end(body));
}).listen(port, '127.0.0.1');
