// The grantry under test: `grantry dev` as it is shipped, with the client that the load comes from.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  AUDIENCE,
  CLIENT_SECRET,
  CLIENT_UID,
  ISSUER,
  PEOPLE,
  PEPPER,
  REDIRECT_URI,
  SCOPE,
  SIGNER_JWK,
  usernameOf,
} from './load/load-client.ts';
import { freePort, type PinnedServer, startServer } from './load/pinned-process.ts';

/** Of a password that is never used to sign in. */
const HASH = '$argon2id$v=19$m=19456,t=2,p=1$Z3JhbnRyeS1ub2JvZHktMQ$VVYLuSTgGzfULLjdglR/WQtPZDjO9Wlf3DPJHqetDk4';

const MANIFESTS = `
apiVersion: v1
kind: Secret
metadata: { name: load, namespace: bench }
stringData: { client-secret: ${CLIENT_SECRET} }
---
apiVersion: grantry.dev/v1alpha1
kind: ClientPolicy
metadata: { name: bench }
spec:
  namespaceSelector: {}
  allow: { scopes: ['**'], audiences: ['**'], authMethods: ['**'] }
  limits: { maxState: 1Gi }
---
apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: { name: load, namespace: bench, uid: ${CLIENT_UID} }
spec:
  auth:
    method: client_secret_basic
    clientSecret: { source: Existing, secretName: load }
  grantTypes: [client_credentials, authorization_code, refresh_token]
  redirectUris: ['${REDIRECT_URI}']
  scopes: [${SCOPE}]
  audiences: ['${AUDIENCE}']
---
apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: { name: signer, namespace: bench }
spec:
  auth:
    method: private_key_jwt
    privateKeyJwt: { jwks: { keys: [${JSON.stringify(SIGNER_JWK)}] } }
  grantTypes: [client_credentials]
  scopes: [${SCOPE}]
  audiences: ['${AUDIENCE}']
---
apiVersion: v1
kind: Secret
type: grantry.dev/users
metadata: { name: people, namespace: bench }
stringData:
  users.yaml: |
${Array.from({ length: PEOPLE }, (_, number) => `    - { username: ${usernameOf(number)}, passwordHash: '${HASH}' }\n`).join('')}`;

const PEPPER_FILE = 'pepper';

/** A folder with the manifests and the pepper, gone after the run; the processes that share it are replicas of one server. */
export function manifestFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-bench-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'load.yaml'), MANIFESTS);
  writeFileSync(join(folder, PEPPER_FILE), PEPPER);
  return folder;
}

/** Starts one process. @param options.redisUrl where its state is; without it, in memory */
export async function startGrantry({
  folder,
  redisUrl,
  cores,
}: {
  readonly folder: string;
  readonly redisUrl?: string;
  readonly cores?: string;
}): Promise<PinnedServer> {
  const adminPort = String(await freePort());
  const redis = redisUrl === undefined ? [] : ['--redis', redisUrl];
  const dev = ['src/main.ts', 'dev', folder, '--issuer', ISSUER, '--admin-port', adminPort, ...redis, '--port'];
  return await startServer({
    args: (port) => [...dev, String(port)],
    environment: { GRANTRY_PEPPER_FILE: join(folder, PEPPER_FILE) },
    probe: '/.well-known/jwks.json',
    ...(cores !== undefined && { cores }),
  });
}
