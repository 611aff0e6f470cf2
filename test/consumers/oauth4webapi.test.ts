// oauth4webapi 3 as a relying party: each answer of discovery, of the token endpoint and of userinfo validated by the strictest library.

import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import * as library from 'oauth4webapi';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { Visitor } from './setup/visitor.ts';

const CLIENT_IDS = { RS256: 'shop.web', ES256: 'shop.es256' };
const SECRET = 'a-secret-of-more-than-thirty-two-bytes';
const redirectUri = 'http://127.0.0.1:1/callback';
const INSECURE = { [library.allowInsecureRequests]: true } as const;
const authentication = library.ClientSecretBasic(SECRET);

let provider: Provider;
beforeAll(async () => {
  provider = await startGrantryProvider({
    consumers: ALGORITHMS.map((algorithm) => ({
      clientId: CLIENT_IDS[algorithm],
      secret: SECRET,
      algorithm,
      redirectUri,
    })),
  });
});
beforeEach(() => provider.setGroups(PERSON.groups));
afterAll(() => provider?.stop());

describe.each(ALGORITHMS)('with ID tokens by %s', (algorithm) => {
  const client = { client_id: CLIENT_IDS[algorithm], id_token_signed_response_alg: algorithm };

  /** What is known of the keys is forgotten with each. */
  async function discover(): Promise<library.AuthorizationServer> {
    const issuer = new URL(provider.issuer);
    const discovered = await library.discoveryRequest(issuer, { algorithm: 'oidc', ...INSECURE });
    return await library.processDiscoveryResponse(issuer, discovered);
  }

  async function signIn(server: library.AuthorizationServer) {
    const [verifier, nonce, state] = [
      library.generateRandomCodeVerifier(),
      library.generateRandomNonce(),
      library.generateRandomState(),
    ];
    const url = new URL(server.authorization_endpoint ?? '');
    url.search = new URLSearchParams({
      client_id: client.client_id,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: 'openid profile email groups',
      nonce,
      max_age: '600',
      state,
      code_challenge: await library.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).toString();
    const callback = await new Visitor(provider).answerTo(url.href, redirectUri);
    const parameters = library.validateAuthResponse(server, client, callback, state);
    const response = await library.authorizationCodeGrantRequest(
      ...([server, client, authentication, parameters, redirectUri, verifier, INSECURE] as const),
    );
    const rules = { expectedNonce: nonce, maxAge: 600, requireIdToken: true };
    const tokens = await library.processAuthorizationCodeResponse(server, client, response, rules);
    await library.validateApplicationLevelSignature(server, response, INSECURE);
    const claims = library.getValidatedIdTokenClaims(tokens);
    if (claims === undefined) throw new Error('no ID token');
    return { tokens, claims };
  }

  async function refresh(server: library.AuthorizationServer, token: string | undefined) {
    const response = await library.refreshTokenGrantRequest(
      ...([server, client, authentication, token ?? '', INSECURE] as const),
    );
    const tokens = await library.processRefreshTokenResponse(server, client, response);
    await library.validateApplicationLevelSignature(server, response, INSECURE);
    return { tokens, claims: library.getValidatedIdTokenClaims(tokens) };
  }

  async function userinfo(server: library.AuthorizationServer, accessToken: string, subject: string) {
    const answered = await library.userInfoRequest(server, client, accessToken, INSECURE);
    return await library.processUserInfoResponse(server, client, subject, answered);
  }

  it('given a sign-in → name, address and groups in the ID token, and at userinfo; a changed group after a refresh', async () => {
    const server = await discover();
    const { tokens, claims } = await signIn(server);
    const { name, email, groups } = PERSON;
    expect(claims).toMatchObject({ name, email, groups });
    expect(await userinfo(server, tokens.access_token, claims.sub)).toMatchObject({ name, email, groups });

    provider.setGroups(['auditors']);
    const refreshed = await refresh(server, tokens.refresh_token);
    expect(refreshed.claims).toMatchObject({ sub: claims.sub, auth_time: claims.auth_time, groups: ['auditors'] });
    const now = await userinfo(server, refreshed.tokens.access_token, claims.sub);
    expect(now).toMatchObject({ groups: ['auditors'] });
  });

  it('given new signing keys → a refresh and a sign-in by them, and old tokens still count', async () => {
    const { tokens, claims } = await signIn(await discover());
    await provider.rotateSigningKey();
    const server = await discover();
    const published = createRemoteJWKSet(new URL(server.jwks_uri ?? ''));
    expect((await jwtVerify(tokens.id_token ?? '', published)).payload).toMatchObject({ jti: claims.jti });
    expect(await userinfo(server, tokens.access_token, claims.sub)).toMatchObject({ name: PERSON.name });
    const refreshed = await refresh(server, tokens.refresh_token);
    const again = await signIn(server);
    const [old, ...others] = [tokens, refreshed.tokens, again.tokens].map(
      ({ id_token }) => decodeProtectedHeader(id_token ?? '').kid,
    );
    expect(others).toEqual([others[0], others[0]]);
    expect(others[0]).not.toBe(old);
  });
});
