// oauth4webapi 3, unmodified: the same ways, with every answer validated by the strictest of the public client libraries, and
// the JWT access token verified by it as an API would.

import * as library from 'oauth4webapi';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Grantry, startGrantry } from '../grantry.ts';
import { decideOn } from './person.ts';
import { ALICE, API, NATIVE, PORTAL, SIGNER, signerKey, skewTo, WEB, WITH_CLIENTS } from './registered-clients.ts';

const INSECURE = { [library.allowInsecureRequests]: true } as const;

interface Application {
  readonly client: library.Client;
  readonly authentication: library.ClientAuth;
  readonly redirectUri: string;
}

const WEB_APP: Application = {
  client: { client_id: WEB.clientId },
  authentication: library.ClientSecretBasic(WEB.secret),
  redirectUri: 'https://web.example/cb?from=grantry',
};
const PORTAL_APP: Application = {
  client: { client_id: PORTAL.clientId },
  authentication: library.ClientSecretPost(PORTAL.secret),
  redirectUri: 'https://portal.example/cb',
};
/** @param grantry has the clock that the assertions must go by */
async function signerApp(grantry: Grantry): Promise<Application> {
  return {
    client: { client_id: SIGNER.clientId, [library.clockSkew]: skewTo(grantry) },
    authentication: library.PrivateKeyJwt(await signerKey()),
    redirectUri: SIGNER.redirectUri,
  };
}
const NATIVE_APP: Application = {
  client: { client_id: NATIVE.clientId },
  authentication: library.None(),
  redirectUri: 'http://127.0.0.1:50123/callback',
};

describe('oauth4webapi', () => {
  let grantry: Grantry;
  let server: library.AuthorizationServer;
  beforeAll(async () => {
    grantry = await startGrantry(WITH_CLIENTS);
    const issuer = new URL(grantry.issuer);
    const response = await library.discoveryRequest(issuer, { algorithm: 'oauth2', ...INSECURE });
    server = await library.processDiscoveryResponse(issuer, response);
  });

  async function begin({ client, redirectUri }: Application) {
    const verifier = library.generateRandomCodeVerifier();
    const state = library.generateRandomState();
    const url = new URL(server.authorization_endpoint as string);
    url.search = new URLSearchParams({
      client_id: client.client_id,
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: 'read write',
      state,
      code_challenge: await library.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).toString();
    return { url, verifier, state };
  }

  async function redeem(application: Application, { verifier, callback }: { verifier: string; callback: URL }) {
    const { client, authentication, redirectUri } = application;
    const parameters = library.validateAuthResponse(server, client, callback, library.skipStateCheck);
    const response = await library.authorizationCodeGrantRequest(
      ...([server, client, authentication, parameters, redirectUri, verifier, INSECURE] as const),
    );
    return library.processAuthorizationCodeResponse(server, client, response);
  }

  async function signIn(application: Application) {
    const { url, verifier, state } = await begin(application);
    const callback = await decideOn(grantry, url, ALICE);
    expect(callback.searchParams.get('state')).toBe(state);
    return redeem(application, { verifier, callback });
  }

  async function refresh({ client, authentication }: Application, token: string) {
    const response = await library.refreshTokenGrantRequest(server, client, authentication, token, INSECURE);
    return library.processRefreshTokenResponse(server, client, response);
  }

  async function introspect({ client, authentication }: Application, token: string) {
    const response = await library.introspectionRequest(server, client, authentication, token, INSECURE);
    return library.processIntrospectionResponse(server, client, response);
  }

  const applications: readonly (readonly [string, () => Application | Promise<Application>])[] = [
    [WEB.clientId, () => WEB_APP],
    [PORTAL.clientId, () => PORTAL_APP],
    [SIGNER.clientId, () => signerApp(grantry)],
    [NATIVE.clientId, () => NATIVE_APP],
  ];

  for (const [clientId, applicationOf] of applications) {
    it(`takes ${clientId} through code, PKCE, refresh and revocation`, async () => {
      const application = await applicationOf();
      const { client, authentication } = application;
      const tokens = await signIn(application);
      expect(tokens).toMatchObject({ token_type: 'bearer', expires_in: 600, scope: 'read write' });
      const renewed = await refresh(application, tokens.refresh_token as string);
      expect(renewed).toMatchObject({ token_type: 'bearer', expires_in: 600, scope: 'read write' });

      const token = renewed.refresh_token as string;
      const response = await library.revocationRequest(server, client, authentication, token, INSECURE);
      await library.processRevocationResponse(response);
      await expect(refresh(application, token)).rejects.toMatchObject({ error: 'invalid_grant' });
    });
  }

  for (const [clientId, applicationOf] of applications.filter(([id]) => id !== NATIVE.clientId)) {
    it(`gets and introspects a token for ${clientId} itself`, async () => {
      const application = await applicationOf();
      const { client, authentication } = application;
      const response = await library.clientCredentialsGrantRequest(
        ...([server, client, authentication, { scope: 'read' }, INSECURE] as const),
      );
      const tokens = await library.processClientCredentialsResponse(server, client, response);
      expect(tokens).toMatchObject({ token_type: 'bearer', expires_in: 600, scope: 'read' });
      expect(await introspect(application, tokens.access_token)).toMatchObject({
        active: true,
        sub: client.client_id,
        client_id: client.client_id,
        scope: 'read',
        aud: API,
      });
    });
  }

  it('accepts the JWT access token as an API, and only as the API it is for (RFC 9068 §4)', async () => {
    const { access_token } = await signIn(WEB_APP);
    const request = new Request(API, { headers: { authorization: `Bearer ${access_token}` } });
    // The server's clock stands still; the library has an option for a clock that is off.
    const skew = Math.round((grantry.clock.now() - Date.now()) / 1000);
    const options = { ...INSECURE, [library.clockSkew]: skew };
    const claims = await library.validateJwtAccessToken(server, request, API, options);
    expect(claims).toMatchObject({ iss: grantry.issuer, aud: API, client_id: WEB.clientId, scope: 'read write' });
    expect(claims.sub).toMatch(/^usr_/);

    const other = library.validateJwtAccessToken(server, request, 'https://other.example/', options);
    await expect(other).rejects.toMatchObject({ code: library.JWT_CLAIM_COMPARISON });
  });

  it('gets access_denied when the person says no', async () => {
    const { url, state } = await begin(NATIVE_APP);
    const callback = await decideOn(grantry, url, { ...ALICE, decision: 'deny' });
    expect(() => library.validateAuthResponse(server, NATIVE_APP.client, callback, state)).toThrow(
      expect.objectContaining({ code: library.AUTHORIZATION_RESPONSE_ERROR, error: 'access_denied' }),
    );
  });

  it('finds the issuer in every answer (RFC 9207): another server’s answer is not taken for ours', async () => {
    const { url, state } = await begin(WEB_APP);
    const callback = await decideOn(grantry, url, ALICE);
    expect(callback.searchParams.get('iss')).toBe(grantry.issuer);
    callback.searchParams.set('iss', 'https://mix-up.example');
    expect(() => library.validateAuthResponse(server, WEB_APP.client, callback, state)).toThrow(
      expect.objectContaining({ code: library.INVALID_RESPONSE }),
    );
  });

  it('gets an error by name when its secret is wrong', async () => {
    const authentication = library.ClientSecretBasic('wrong');
    const response = await library.clientCredentialsGrantRequest(
      ...([server, WEB_APP.client, authentication, {}, INSECURE] as const),
    );
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toMatch(/^Basic realm="[^"]+", error="invalid_client"$/);
    const processed = library.processClientCredentialsResponse(server, WEB_APP.client, response);
    await expect(processed).rejects.toMatchObject({
      code: library.WWW_AUTHENTICATE_CHALLENGE,
      cause: [{ scheme: 'basic', parameters: { error: 'invalid_client' } }],
    });
  });
});
