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
  PROVIDER,
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
  /** The issuer of its identity provider; default: it has none. */
  readonly provider?: string;
  /** Whether it has local users. Default: yes. */
  readonly hasUsers?: boolean;
  /** Whether people are asked before its client gets anything. Default: yes. */
  readonly asksPeople?: boolean;
  /** How many clients it has beside that of the load; {@link appUid} has their uids. Default: none. */
  readonly apps?: number;
}

/** The uid of a client beside that of the load. */
export function appUid(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
}

const manifests = ({ idTokens, provider, hasUsers = true, asksPeople = true, apps = 0 }: FolderOptions) => `
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
  allow: { scopes: ['**'], audiences: ['**'], authMethods: ['**'], consentSkip: true }
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
  consent: ${asksPeople ? 'Required' : 'Skip'}
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
${hasUsers ? Array.from({ length: PEOPLE }, (_, number) => person(usernameOf(number))).join('') : '    []'}
${provider === undefined ? '' : identityProvider(provider)}
${Array.from({ length: apps }, (_, number) => app(number)).join('')}`;

function app(number: number): string {
  return `---
apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: { name: app-${number}, namespace: bench, uid: ${appUid(number)} }
spec:
  displayName: Application ${number}
  auth: { method: none }
  grantTypes: [authorization_code]
  redirectUris: ['${REDIRECT_URI}']
  scopes: [${SCOPE}]
  audiences: ['${AUDIENCE}']
`;
}

function identityProvider(issuer: string): string {
  const { name, clientId, clientSecret } = PROVIDER;
  return `---
apiVersion: v1
kind: Secret
type: grantry.dev/identity-provider
metadata: { name: ${name} }
stringData: { client-id: ${clientId}, client-secret: ${clientSecret} }
---
apiVersion: grantry.dev/v1alpha1
kind: IdentityProvider
metadata: { name: ${name} }
spec: { type: OIDC, clientSecretRef: { name: ${name} }, oidc: { issuer: '${issuer}' } }
`;
}

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
