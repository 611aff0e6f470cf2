// Runs in a Job of a tenant: gets a token with what is mounted and prints, as JSON, what it says. Its input: ../jobs.ts.

import { readFileSync } from 'node:fs';

const { TOKEN_URL = '', ID_KEY = '', SECRET_KEY = '' } = process.env;
const read = (key: string) => readFileSync(`/client/${key}`, 'utf8');
const credentials = Buffer.from(`${read(ID_KEY)}:${read(SECRET_KEY)}`).toString('base64');

const response = await fetch(TOKEN_URL, {
  method: 'POST',
  headers: { authorization: `Basic ${credentials}` },
  body: new URLSearchParams({ grant_type: 'client_credentials' }),
});
const body = (await response.json()) as { access_token?: string };
const [, claims = ''] = body.access_token?.split('.') ?? [];
console.log(
  JSON.stringify({
    status: response.status,
    claims: claims === '' ? body : JSON.parse(Buffer.from(claims, 'base64url').toString()),
  }),
);
