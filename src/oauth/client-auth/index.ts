// THE TABLE of client authentication methods. A new method is one file and one line here; metadata, admission and the
// token endpoint read it.

import type { Client } from '../registry/client.ts';
import { clientSecretBasic } from './client-secret-basic.ts';
import { clientSecretPost } from './client-secret-post.ts';
import { kubernetesServiceAccount } from './kubernetes-service-account.ts';
import type { ClientAuthMethod } from './method.ts';
import { none } from './none.ts';
import { privateKeyJwt } from './private-key-jwt.ts';
import { selfSignedTlsClientAuth } from './self-signed-tls-client-auth.ts';
import { tlsClientAuth } from './tls-client-auth.ts';

/** By wire name (RFC 7591 §2, `token_endpoint_auth_method`). */
export const CLIENT_AUTH_METHODS: ReadonlyMap<string, ClientAuthMethod> = new Map([
  ['client_secret_basic', clientSecretBasic],
  ['client_secret_post', clientSecretPost],
  ['private_key_jwt', privateKeyJwt],
  ['kubernetes_service_account', kubernetesServiceAccount],
  ['none', none],
  ['tls_client_auth', tlsClientAuth],
  ['self_signed_tls_client_auth', selfSignedTlsClientAuth],
]);

/** The methods of a server, by wire name: those that need mutual TLS only where it is configured. */
export function availableMethods({
  mutualTls,
}: {
  readonly mutualTls: boolean;
}): ReadonlyMap<string, ClientAuthMethod> {
  return new Map([...CLIENT_AUTH_METHODS].filter(([, { usesCertificate }]) => mutualTls || !usesCertificate));
}

/** Whether a client with this method proves nothing about itself (RFC 6749 §2.1). */
export function isPublic({ authMethod }: Pick<Client, 'authMethod'>): boolean {
  return CLIENT_AUTH_METHODS.get(authMethod)?.confidential === false;
}

/** The wire names of the methods that need a client secret. */
export const SECRET_METHODS: readonly string[] = [...CLIENT_AUTH_METHODS]
  .filter(([, { usesSecret }]) => usesSecret)
  .map(([name]) => name);

/** The wire names of the methods that need a client certificate. */
export const CERTIFICATE_METHODS: readonly string[] = [...CLIENT_AUTH_METHODS]
  .filter(([, { usesCertificate }]) => usesCertificate)
  .map(([name]) => name);
