// openid-client 6, unmodified: everything an application does with grantry, from discovery to revocation.

import * as library from 'openid-client';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Grantry, startGrantry } from '../grantry.ts';
import { decideOn } from './person.ts';
import {
  ALICE,
  API,
  NATIVE,
  PORTAL,
  RESOURCE_SERVER,
  SIGNER,
  signerKey,
  skewTo,
  WEB,
  WITH_CLIENTS,
} from './registered-clients.ts';

const INSECURE: library.DiscoveryRequestOptions = { algorithm: 'oauth2', execute: [library.allowInsecureRequests] };

interface Application {
  readonly clientId: string;
  readonly redirectUri: string;
  readonly authentication: () => library.ClientAuth | Promise<library.ClientAuth>;
  readonly rotates: boolean;
}

const WEB_APP: Application = {
  clientId: WEB.clientId,
  redirectUri: 'https://web.example/cb',
  authentication: () => library.ClientSecretBasic(WEB.secret),
  rotates: true,
};
const PORTAL_APP: Application = {
  clientId: PORTAL.clientId,
  redirectUri: 'https://portal.example/cb',
  authentication: () => library.ClientSecretPost(PORTAL.secret),
  rotates: false,
};
const SIGNER_APP: Application = {
  ...SIGNER,
  authentication: async () => library.PrivateKeyJwt(await signerKey()),
  rotates: true,
};
const NATIVE_APP: Application = {
  clientId: NATIVE.clientId,
  redirectUri: 'http://127.0.0.1:49152/callback',
  authentication: () => library.None(),
  rotates: true,
};

for (const issuerPath of ['', '/tenants/one']) {
  describe(`openid-client at an issuer with the path "${issuerPath}"`, () => {
    let grantry: Grantry;
    beforeAll(async () => {
      grantry = await startGrantry({ ...WITH_CLIENTS, issuerPath });
    });

    async function discover({ clientId, authentication }: Application): Promise<library.Configuration> {
      const metadata = { [library.clockSkew]: skewTo(grantry) };
      return library.discovery(new URL(grantry.issuer), clientId, metadata, await authentication(), INSECURE);
    }

    async function begin(config: library.Configuration, { redirectUri }: Application) {
      const pkceCodeVerifier = library.randomPKCECodeVerifier();
      const expectedState = library.randomState();
      const url = library.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: 'read write',
        resource: API,
        state: expectedState,
        code_challenge: await library.calculatePKCECodeChallenge(pkceCodeVerifier),
        code_challenge_method: 'S256',
      });
      return { url, checks: { pkceCodeVerifier, expectedState } };
    }

    async function signIn(config: library.Configuration, application: Application) {
      const { url, checks } = await begin(config, application);
      const callback = await decideOn(grantry, url, ALICE);
      expect(callback.href).toContain(application.redirectUri);
      return { callback, checks, tokens: await library.authorizationCodeGrant(config, callback, checks) };
    }

    it('finds the endpoints by discovery', async () => {
      const config = await discover(WEB_APP);
      expect(config.serverMetadata()).toMatchObject({
        issuer: grantry.issuer,
        token_endpoint: `${grantry.issuer}/token`,
        authorization_response_iss_parameter_supported: true,
      });
      expect(config.serverMetadata().supportsPKCE()).toBe(true);
    });

    for (const application of [WEB_APP, PORTAL_APP, SIGNER_APP, NATIVE_APP]) {
      it(`signs a person in and refreshes for ${application.clientId}`, async () => {
        const config = await discover(application);
        const { tokens } = await signIn(config, application);
        expect(tokens).toMatchObject({ token_type: 'bearer', expires_in: 600, scope: 'read write' });

        const first = tokens.refresh_token as string;
        const narrow = await library.refreshTokenGrant(config, first, { scope: 'read' });
        expect(narrow.scope).toBe('read');
        const second = narrow.refresh_token as string;
        expect(second === first).toBe(!application.rotates);
        const full = await library.refreshTokenGrant(config, second);
        expect(full.scope).toBe('read write');
      });

      it(`revokes a refresh token, and all access with it, for ${application.clientId}`, async () => {
        const config = await discover(application);
        const { tokens } = await signIn(config, application);
        await library.tokenRevocation(config, tokens.refresh_token as string);
        await expect(library.refreshTokenGrant(config, tokens.refresh_token as string)).rejects.toMatchObject({
          error: 'invalid_grant',
          status: 400,
        });
        const api = await apiConfig();
        expect(await library.tokenIntrospection(api, tokens.access_token)).toEqual({ active: false });
      });
    }

    function apiConfig(): Promise<library.Configuration> {
      const authentication = () => library.ClientSecretBasic(RESOURCE_SERVER.secret);
      return discover({ clientId: RESOURCE_SERVER.clientId, redirectUri: '', authentication, rotates: false });
    }

    for (const application of [WEB_APP, PORTAL_APP, SIGNER_APP]) {
      it(`introspects as ${application.clientId} and as the API`, async () => {
        const config = await discover(application);
        const { tokens } = await signIn(config, application);
        const told = { active: true, client_id: application.clientId, aud: API, iss: grantry.issuer };
        const access = { ...told, scope: 'read write', token_type: 'Bearer' };
        expect(await library.tokenIntrospection(config, tokens.access_token)).toMatchObject(access);
        expect(await library.tokenIntrospection(await apiConfig(), tokens.access_token)).toMatchObject(access);
        const refresh = tokens.refresh_token as string;
        expect(await library.tokenIntrospection(config, refresh)).toMatchObject(told);
        expect(await library.tokenIntrospection(await apiConfig(), refresh)).toEqual({ active: false });
      });

      it(`revokes one access token of ${application.clientId} and keeps the refresh token`, async () => {
        const config = await discover(application);
        const { tokens } = await signIn(config, application);
        await library.tokenRevocation(config, tokens.access_token, { token_type_hint: 'access_token' });
        expect(await library.tokenIntrospection(config, tokens.access_token)).toEqual({ active: false });
        const renewed = await library.refreshTokenGrant(config, tokens.refresh_token as string);
        expect(await library.tokenIntrospection(config, renewed.access_token)).toMatchObject({ active: true });
      });

      it(`gets a token for ${application.clientId} itself, without a refresh token`, async () => {
        const config = await discover(application);
        const tokens = await library.clientCredentialsGrant(config, { scope: 'write', resource: API });
        expect(tokens).toMatchObject({ token_type: 'bearer', expires_in: 600, scope: 'write' });
        expect(tokens.refresh_token).toBeUndefined();
        expect(await library.tokenIntrospection(config, tokens.access_token)).toMatchObject({
          active: true,
          sub: application.clientId,
          aud: API,
        });
      });
    }

    it('gets access_denied when the person says no', async () => {
      const config = await discover(NATIVE_APP);
      const { url, checks } = await begin(config, NATIVE_APP);
      const callback = await decideOn(grantry, url, { ...ALICE, decision: 'deny' });
      await expect(library.authorizationCodeGrant(config, callback, checks)).rejects.toMatchObject({
        error: 'access_denied',
      });
    });

    it('gets an error when a code is used twice, and the first use’s tokens are revoked', async () => {
      const config = await discover(WEB_APP);
      const { callback, checks, tokens } = await signIn(config, WEB_APP);
      await expect(library.authorizationCodeGrant(config, callback, checks)).rejects.toMatchObject({
        error: 'invalid_grant',
      });
      expect(await library.tokenIntrospection(config, tokens.access_token)).toEqual({ active: false });
      await expect(library.refreshTokenGrant(config, tokens.refresh_token as string)).rejects.toMatchObject({
        error: 'invalid_grant',
      });
    });

    it('gets an error by name when its secret is wrong', async () => {
      for (const authentication of [library.ClientSecretBasic('wrong'), library.ClientSecretPost('wrong')]) {
        const config = await discover({ ...WEB_APP, authentication: () => authentication });
        await expect(library.clientCredentialsGrant(config)).rejects.toMatchObject({
          status: 401,
          cause: [{ scheme: 'basic', parameters: { error: 'invalid_client' } }],
        });
      }
    });
  });
}
