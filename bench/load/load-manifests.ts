// The manifests of the grantry under test: the client that the load comes from, its users, and what else a folder is for.

import {
  AUDIENCE,
  CLIENT_ID,
  CLIENT_SECRET,
  CLIENT_UID,
  OPENID_SCOPES,
  PEOPLE,
  PERSON,
  PROVIDER,
  REDIRECT_URI,
  SCOPE,
  SIGNER_JWK,
  usernameOf,
} from './load-client.ts';

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
  /** How many clients with the secret of the load it has, that of the load included ({@link clientNumber}). Default: 1. */
  readonly clients?: number;
  /** How long refresh tokens of its client live, such as `1m`. Default: as by default. */
  readonly refreshTokenLifetime?: string;
  /** How many clients it has beside that of the load; {@link appUid} has their uids. Default: none. */
  readonly apps?: number;
}

/** The client id of one that has the secret of the load, from 0; the first is that of the load. */
export function clientNumber(number: number): string {
  return number === 0 ? CLIENT_ID : `bench.client-${number}`;
}

/** The uid of a client beside that of the load. */
export function appUid(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
}

/** The documents of the folder, without the further clients with the secret of the load. */
export const manifests = ({
  idTokens,
  provider,
  hasUsers = true,
  asksPeople = true,
  refreshTokenLifetime,
  apps = 0,
}: FolderOptions) => `
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
  limits: { maxState: 1Gi, maxClientsPerNamespace: 100000 }
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
  tokens: ${JSON.stringify({
    ...(idTokens && { idTokenSigningAlgorithm: idTokens }),
    ...(refreshTokenLifetime && { refreshTokenLifetime, refreshTokenIdleLifetime: refreshTokenLifetime }),
  })}
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

/** One of them, from 1. */
export function furtherClient(number: number): string {
  return `---
apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: { name: client-${number}, namespace: bench }
spec:
  displayName: Client ${number}
  auth: { method: client_secret_basic, clientSecret: { source: Existing, secretName: load } }
  grantTypes: [client_credentials]
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
