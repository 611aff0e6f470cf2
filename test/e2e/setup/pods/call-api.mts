// Runs in a pod of a tenant: gets a token of grantry by the token of its ServiceAccount, calls an API with it and with
// another, and prints the answers as JSON. Its input: ../../service-account.test.ts.

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const { TOKEN_URL = '', API_URL = '', CLIENT_ID = '', TOKEN_FILE = '' } = process.env;
const API_STARTS_SECONDS = 60;

async function call(token: string): Promise<{ readonly status: number; readonly text: string }> {
  for (let second = 1; ; second++) {
    try {
      const response = await fetch(API_URL, { headers: { authorization: `Bearer ${token}` } });
      return { status: response.status, text: await response.text() };
    } catch (error) {
      // The API may be starting.
      if (second === API_STARTS_SECONDS) throw error;
      await sleep(1000);
    }
  }
}

const response = await fetch(TOKEN_URL, {
  method: 'POST',
  body: new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: CLIENT_ID,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: readFileSync(TOKEN_FILE, 'utf8'),
  }),
});
const { access_token: token = '', ...refusal } = (await response.json()) as { access_token?: string };
console.log(
  JSON.stringify({
    status: response.status,
    ...(token === '' ? { refusal } : { called: await call(token), calledWithAnother: await call(`${token}x`) }),
  }),
);
