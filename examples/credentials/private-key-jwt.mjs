// Gets a token by an assertion that it signs with .keys/private-key-jwt.jwk, and prints the answer.

import { readFile } from 'node:fs/promises';
import * as client from 'openid-client';

const file = new URL('.keys/private-key-jwt.jwk', import.meta.url);
const { kid, ...jwk } = JSON.parse(await readFile(file, 'utf8'));
const key = await crypto.subtle.importKey('jwk', jwk, { name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign']);

const config = await client.discovery(
  new URL(process.env.ISSUER ?? 'http://localhost:9400'),
  'default.private-key-jwt',
  undefined,
  client.PrivateKeyJwt({ key, kid }),
  { algorithm: 'oauth2', execute: [client.allowInsecureRequests] },
);
console.log(JSON.stringify(await client.clientCredentialsGrant(config)));
