// Runs in a pod: a page that knows no sign-in, and answers with the headers of each request. Its input:
// ../../sign-in-to-programs.test.ts.

import { createServer } from 'node:http';

createServer(({ headers }, response) => {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(headers));
}).listen(Number(process.env.PORT));
