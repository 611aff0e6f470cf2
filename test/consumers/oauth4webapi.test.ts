// oauth4webapi 3 as a relying party: each answer of discovery, of the token endpoint and of userinfo by the strictest of judges.

import * as library from 'oauth4webapi';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { Visitor } from './setup/visitor.ts';

const CLIENT_IDS = { RS256: 'shop.web', ES256: 'shop.es256' };
const CLIENT = { secret: 'a-secret-of-more-than-thirty-two-bytes' };
const redirectUri = 'http://127.0.0.1:1/callback';
const INSECURE = { [library.allowInsecureRequests]: true } as const;

let provider: Provider;
beforeAll(async () => {
  provider = await startGrantryProvider({
    consumers: ALGORITHMS.map((algorithm) => ({ ...CLIENT, clientId: CLIENT_IDS[algorithm], algorithm, redirectUri })),
  });
});
afterAll(() => provider?.stop());

it.each(ALGORITHMS)(
  'given a sign-in, and %s → name, address and groups in an ID token whose signature holds, and at userinfo',
  async (algorithm) => {
    const client = { client_id: CLIENT_IDS[algorithm], id_token_signed_response_alg: algorithm };
    const issuer = new URL(provider.issuer);
    const discovered = await library.discoveryRequest(issuer, { algorithm: 'oidc', ...INSECURE });
    const server = await library.processDiscoveryResponse(issuer, discovered);
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
    const authentication = library.ClientSecretBasic(CLIENT.secret);
    const response = await library.authorizationCodeGrantRequest(
      ...([server, client, authentication, parameters, redirectUri, verifier, INSECURE] as const),
    );
    const rules = { expectedNonce: nonce, maxAge: 600, requireIdToken: true };
    const tokens = await library.processAuthorizationCodeResponse(server, client, response, rules);
    await library.validateApplicationLevelSignature(server, response, INSECURE);
    const { name, email, groups } = PERSON;
    const claims = library.getValidatedIdTokenClaims(tokens);
    expect(claims).toMatchObject({ name, email, groups });

    const answered = await library.userInfoRequest(server, client, tokens.access_token, INSECURE);
    const userinfo = await library.processUserInfoResponse(server, client, claims?.sub ?? '', answered);
    expect(userinfo).toMatchObject({ name, email, groups });
  },
);
