// Runs in a pod of a tenant: an API that asks grantry about the token of each request, as a client by the token of its own
// ServiceAccount. Its input: ../../service-account.test.ts.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const { INTROSPECT_URL = '', CLIENT_ID = '', TOKEN_FILE = '', PORT = '' } = process.env;

async function callerOf(authorization = ''): Promise<string | undefined> {
  const [, token = ''] = /^Bearer (.+)$/.exec(authorization) ?? [];
  const body = new URLSearchParams({
    token,
    client_id: CLIENT_ID,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: readFileSync(TOKEN_FILE, 'utf8'),
  });
  const answer = await fetch(INTROSPECT_URL, { method: 'POST', body });
  if (!answer.ok) throw new Error(`introspection: ${answer.status}`);
  const { active, client_id: caller } = (await answer.json()) as { active: boolean; client_id?: string };
  return active ? caller : undefined;
}

createServer(async (request, response) => {
  try {
    const caller = await callerOf(request.headers.authorization);
    response.writeHead(caller === undefined ? 401 : 200).end(caller);
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
}).listen(Number(PORT));
