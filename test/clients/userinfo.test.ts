// openid-client 6 and oauth4webapi 3, unmodified: OpenID Connect Discovery, sign-in, and userinfo by Bearer and by DPoP.

import * as strict from 'oauth4webapi';
import * as library from 'openid-client';
import { beforeAll, describe, expect, it } from 'vitest';
import { generateSigningKeyPem, importSigningKey } from '../../src/oauth/registry/keys.ts';
import { type Grantry, type GrantryOptions, startGrantry, TestClock } from '../grantry.ts';
import { aPerson, PERSONAL } from '../http/protocol/openid/userinfo-calls.ts';
import { decideOn } from './person.ts';
import { NATIVE, PORTAL, WEB, WITH_CLIENTS } from './registered-clients.ts';

const REDIRECT_URI = 'http://127.0.0.1:49152/callback';
const ALICE = { username: 'alice', password: 'a password of alice', decision: 'allow' } as const;
const SCOPE = PERSONAL.join(' ');

/** ID tokens need the second one. */
const KEYS = await Promise.all(
  (['ES256', 'RS256'] as const).map(async (algorithm) =>
    importSigningKey(await generateSigningKeyPem(algorithm, 2048), algorithm, 'Active'),
  ),
);

/** Each as it is without an API. */
const CLIENTS = WITH_CLIENTS.clients.map(({ audiences: _, ...client }) => ({ ...client, scopes: PERSONAL }));

const { owners, subject } = await aPerson();

async function start(options: Partial<GrantryOptions>): Promise<Grantry> {
  const clock = new TestClock();
  clock.advance(Date.now() - clock.now());
  return await startGrantry({ clients: CLIENTS, owners, clock, keys: KEYS, ...options });
}

for (const issuerPath of ['', '/tenants/one']) {
  describe(`at an issuer with the path "${issuerPath}"`, () => {
    let grantry: Grantry;
    beforeAll(async () => {
      grantry = await start({ issuerPath });
    });

    /** By its own default: OpenID Connect Discovery. */
    function discover(clientId: string, authentication: library.ClientAuth): Promise<library.Configuration> {
      const execute = [library.allowInsecureRequests];
      return library.discovery(new URL(grantry.issuer), clientId, undefined, authentication, { execute });
    }

    async function signIn(config: library.Configuration, redirect_uri: string, DPoP?: library.DPoPHandle) {
      const pkceCodeVerifier = library.randomPKCECodeVerifier();
      const url = library.buildAuthorizationUrl(config, {
        redirect_uri,
        scope: SCOPE,
        code_challenge: await library.calculatePKCECodeChallenge(pkceCodeVerifier),
        code_challenge_method: 'S256',
      });
      const callback = await decideOn(grantry, url, ALICE);
      const options = DPoP === undefined ? {} : { DPoP };
      return await library.authorizationCodeGrant(config, callback, { pkceCodeVerifier }, undefined, options);
    }

    it.each([
      ['a JWT', WEB.clientId, library.ClientSecretBasic(WEB.secret), 'https://web.example/cb'],
      ['an opaque token', PORTAL.clientId, library.ClientSecretPost(PORTAL.secret), 'https://portal.example/cb'],
    ])('openid-client discovers, signs in and asks with %s', async (_, clientId, authentication, redirectUri) => {
      const config = await discover(clientId, authentication);
      const tokens = await signIn(config, redirectUri);
      const { access_token } = tokens;
      expect(tokens.claims()).toMatchObject({ sub: subject, name: 'Alice Example' });
      const claims = await library.fetchUserInfo(config, access_token, subject);
      expect(claims).toEqual({
        sub: subject,
        name: 'Alice Example',
        preferred_username: 'alice',
        email: 'alice@example.com',
        email_verified: true,
        groups: ['team-a', 'admins'],
      });
      await expect(library.fetchUserInfo(config, access_token, 'usr_another')).rejects.toThrow();
      await library.tokenRevocation(config, access_token);
      await expect(library.fetchUserInfo(config, access_token, subject)).rejects.toMatchObject({
        code: 'OAUTH_WWW_AUTHENTICATE_CHALLENGE',
        status: 401,
        cause: [
          { scheme: 'bearer', parameters: { realm: grantry.issuer, error: 'invalid_token' } },
          { scheme: 'dpop' },
        ],
      });
    });

    it('openid-client asks with a token that is bound to its DPoP key, and with no other key', async () => {
      const config = await discover(NATIVE.clientId, library.None());
      const DPoP = library.getDPoPHandle(config, await library.randomDPoPKeyPair());
      const { access_token } = await signIn(config, REDIRECT_URI, DPoP);
      expect(await library.fetchUserInfo(config, access_token, subject, { DPoP })).toMatchObject({ sub: subject });
      const other = library.getDPoPHandle(config, await library.randomDPoPKeyPair());
      await expect(library.fetchUserInfo(config, access_token, subject, { DPoP: other })).rejects.toMatchObject({
        status: 401,
      });
      await expect(library.fetchUserInfo(config, access_token, subject)).rejects.toMatchObject({ status: 401 });
    });
  });
}

describe.each(['on-demand', 'required'] as const)('oauth4webapi with a nonce %s', (dpopNonce) => {
  const INSECURE = { [strict.allowInsecureRequests]: true } as const;
  const client: strict.Client = { client_id: NATIVE.clientId };
  let grantry: Grantry;
  let server: strict.AuthorizationServer;
  beforeAll(async () => {
    grantry = await start({ dpopNonce });
    const issuer = new URL(grantry.issuer);
    const response = await strict.discoveryRequest(issuer, { algorithm: 'oidc', ...INSECURE });
    server = await strict.processDiscoveryResponse(issuer, response);
  });

  /** The first try without a nonce, the next one with that of the refusal. */
  async function insisting<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      if (!strict.isDPoPNonceError(error)) throw error;
      return await act();
    }
  }

  async function tokenOf(DPoP: strict.DPoPHandle): Promise<string> {
    const verifier = strict.generateRandomCodeVerifier();
    const url = new URL(server.authorization_endpoint ?? '');
    url.search = new URLSearchParams({
      client_id: NATIVE.clientId,
      redirect_uri: REDIRECT_URI,
      response_type: 'code',
      scope: SCOPE,
      code_challenge: await strict.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).toString();
    const callback = strict.validateAuthResponse(
      server,
      client,
      await decideOn(grantry, url, ALICE),
      strict.expectNoState,
    );
    return await insisting(async () => {
      const response = await strict.authorizationCodeGrantRequest(
        server,
        client,
        strict.None(),
        callback,
        REDIRECT_URI,
        verifier,
        { DPoP, ...INSECURE },
      );
      return (await strict.processAuthorizationCodeResponse(server, client, response)).access_token;
    });
  }

  it('asks by DPoP → the claims of the person it signed in', async () => {
    const DPoP = strict.DPoP(client, await strict.generateKeyPair('ES256'));
    const token = await tokenOf(DPoP);
    const claims = await insisting(async () => {
      const response = await strict.userInfoRequest(server, client, token, { DPoP, ...INSECURE });
      return await strict.processUserInfoResponse(server, client, subject, response);
    });
    expect(claims).toMatchObject({ sub: subject, email: 'alice@example.com', groups: ['team-a', 'admins'] });
  });

  it('asks by Bearer with that token → 401 with a challenge that it reads', async () => {
    const token = await tokenOf(strict.DPoP(client, await strict.generateKeyPair('ES256')));
    const response = await strict.userInfoRequest(server, client, token, INSECURE);
    await expect(strict.processUserInfoResponse(server, client, subject, response)).rejects.toMatchObject({
      status: 401,
      cause: [{ scheme: 'bearer', parameters: { error: 'invalid_token' } }, { scheme: 'dpop' }],
    });
  });
});
