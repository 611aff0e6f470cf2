// Another OpenID provider in place of grantry, until grantry is one: oidc-provider with its own pages for development, in
// memory, with a key for each algorithm.

import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import OidcProvider from 'oidc-provider';
import type { MadeCertificate } from '../../client-certificates.ts';
import { freePort } from '../../free-port.ts';
import type { Page } from '../../http/sign-in/sign-in-browser.ts';
import { type Consumer, type FilledForm, PERSON, type Provider } from './provider.ts';

export interface ProviderWishes {
  readonly consumers: readonly Consumer[];
  /** Of `localhost`, for an https issuer. Default: http on 127.0.0.1. */
  readonly tls?: { readonly certificate: MadeCertificate; readonly authority: MadeCertificate };
}

/** Starts it on a free port. */
export async function startProvider({ consumers, tls }: ProviderWishes): Promise<Provider> {
  const port = await freePort();
  const issuer = tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`;
  let groups: readonly string[] = PERSON.groups;
  const provider = new OidcProvider(issuer, {
    clients: consumers.map(clientOf),
    jwks: { keys: [rsaKey(), ecKey()] },
    scopes: ['openid', 'offline_access'],
    claims: {
      profile: ['name', 'preferred_username'],
      email: ['email', 'email_verified'],
      groups: ['groups'],
    },
    conformIdTokenClaims: false,
    findAccount: (_context, accountId) => ({
      accountId,
      claims: () => {
        const { name, email } = PERSON;
        return {
          sub: accountId,
          name,
          preferred_username: accountId,
          email,
          email_verified: true,
          groups: [...groups],
        };
      },
    }),
    pkce: { required: () => true },
    issueRefreshToken: () => true,
    ttl: {
      AccessToken: (_context, _token, client) =>
        consumers.find(({ clientId }) => clientId === client?.clientId)?.accessTokenLifetime ?? 3600,
    },
    features: { backchannelLogout: { enabled: true }, devInteractions: { enabled: true } },
    cookies: { keys: ['a key of a test'] },
    // Its own refuses addresses of this machine.
    fetch: (url, init = {}) => {
      const { dispatcher: _guard, ...plain } = init;
      return fetch(url, plain);
    },
  });
  provider.on('backchannel.error', (_context, error) => console.error(error));
  const server =
    tls === undefined
      ? createHttpServer(provider.callback())
      : createHttpsServer({ cert: tls.certificate.certificate, key: tls.certificate.key }, provider.callback());
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    issuer,
    authority: tls?.authority.certificate,
    endpoints: {
      authorization: `${issuer}/auth`,
      token: `${issuer}/token`,
      userinfo: `${issuer}/me`,
      endSession: `${issuer}/session/end`,
    },
    answerTo,
    setGroups: (now) => {
      groups = now;
    },
    stop: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function clientOf(consumer: Consumer) {
  const { clientId, secret, redirectUri, algorithm = 'RS256', postLogoutRedirectUri, backchannelLogoutUri } = consumer;
  return {
    client_id: clientId,
    ...(secret !== undefined && { client_secret: secret }),
    token_endpoint_auth_method: secret === undefined ? ('none' as const) : ('client_secret_basic' as const),
    // A native one may go back to http on a loopback address.
    application_type: 'native' as const,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code' as const],
    redirect_uris: [redirectUri],
    id_token_signed_response_alg: algorithm,
    ...(postLogoutRedirectUri !== undefined && { post_logout_redirect_uris: [postLogoutRedirectUri] }),
    ...(backchannelLogoutUri !== undefined && {
      backchannel_logout_uri: backchannelLogoutUri,
      backchannel_logout_session_required: true,
    }),
  };
}

function rsaKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kty: 'RSA' as const, alg: 'RS256', use: 'sig' as const };
}

function ecKey() {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  return { ...privateKey.export({ format: 'jwk' }), kty: 'EC' as const, alg: 'ES256', use: 'sig' as const };
}

/** Its pages have one form each: of sign-in, of consent, of sign-out. */
function answerTo({ body }: Page): FilledForm | undefined {
  const action = /<form\b[^>]*\baction="([^"]*)"/.exec(body)?.[1];
  if (action === undefined) return undefined;
  const hidden = [...body.matchAll(/type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(([, name, value]) => [
    name,
    value,
  ]);
  const typed = body.includes('name="password"') ? { login: PERSON.username, password: 'any' } : {};
  return { action, fields: { ...Object.fromEntries(hidden), ...typed, logout: 'yes' } };
}
