// The grantry under test: `grantry dev` as it is shipped, with the client that the load comes from.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  AUDIENCE,
  CLIENT_SECRET,
  CLIENT_UID,
  ISSUER,
  OPENID_SCOPES,
  PEOPLE,
  PEPPER,
  PERSON,
  REDIRECT_URI,
  SCOPE,
  SIGNER_JWK,
  usernameOf,
} from './load/load-client.ts';
import { freePort, type PinnedServer, startServer } from './load/pinned-process.ts';

/** Of a password that is never used to sign in. */
const HASH = '$argon2id$v=19$m=19456,t=2,p=1$Z3JhbnRyeS1ub2JvZHktMQ$VVYLuSTgGzfULLjdglR/WQtPZDjO9Wlf3DPJHqetDk4';

/** What a folder is for. */
export interface FolderOptions {
  /** The algorithm of the ID tokens of its client; without it the client signs no person in. */
  readonly idTokens?: 'ES256' | 'RS256';
}

const manifests = ({ idTokens }: FolderOptions) => `
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
  scopes: [${[SCOPE, ...(idTokens ? OPENID_SCOPES : [])].join(', ')}]
  audiences: ['${AUDIENCE}']
${idTokens ? `  tokens: { idTokenSigningAlgorithm: ${idTokens} }` : ''}
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
${Array.from({ length: PEOPLE }, (_, number) => person(usernameOf(number))).join('')}`;

function person(username: string): string {
  const { displayName: name, email } = PERSON;
  return `    - {username: ${username}, passwordHash: '${HASH}', displayName: ${name}, email: ${email}}\n`;
}

const PEPPER_FILE = 'pepper';

/** A folder with the manifests and the pepper, gone after the run; the processes that share it are replicas of one server. */
export function manifestFolder(options: FolderOptions = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'grantry-bench-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'load.yaml'), manifests(options));
  writeFileSync(join(folder, PEPPER_FILE), PEPPER);
  return folder;
}

/**
 * Starts one process.
 * @param options.redisUrl where its state is; without it, in memory
 * @param options.tree the copy of the sources; default: this one
 */
export async function startGrantry({
  folder,
  redisUrl,
  cores,
  tree = '.',
}: {
  readonly folder: string;
  readonly redisUrl?: string;
  readonly cores?: string;
  readonly tree?: string;
}): Promise<PinnedServer> {
  const adminPort = String(await freePort());
  const redis = redisUrl === undefined ? [] : ['--redis', redisUrl];
  const dev = [
    join(tree, 'src/main.ts'),
    'dev',
    folder,
    '--issuer',
    ISSUER,
    '--admin-port',
    adminPort,
    ...redis,
    '--port',
  ];
  return await startServer({
    args: (port) => [...dev, String(port)],
    environment: { GRANTRY_PEPPER_FILE: join(folder, PEPPER_FILE) },
    probe: '/.well-known/jwks.json',
    ...(cores !== undefined && { cores }),
  });
}
