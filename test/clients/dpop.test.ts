// openid-client 6 and oauth4webapi 3, unmodified, with DPoP: under both settings of the nonce, and with a clock that is off.

import { decodeJwt } from 'jose';
import * as strict from 'oauth4webapi';
import * as library from 'openid-client';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Grantry, startGrantry, TestClock } from '../grantry.ts';
import { decideOn } from './person.ts';
import { ALICE, API, NATIVE, PORTAL, RESOURCE_SERVER, WEB, WITH_CLIENTS } from './registered-clients.ts';

const REDIRECT_URI = 'http://127.0.0.1:49152/callback';

const SETTINGS = [
  { name: 'a nonce on demand', dpopNonce: 'on-demand', secondsAhead: 0 },
  { name: 'a nonce that is required', dpopNonce: 'required', secondsAhead: 0 },
  { name: 'a nonce on demand, by a clock that is 200 s late', dpopNonce: 'on-demand', secondsAhead: 200 },
  { name: 'a nonce on demand, by a clock that is 200 s early', dpopNonce: 'on-demand', secondsAhead: -200 },
] as const;

/** A clock that stands at the time of the libraries, or ahead of it. */
function clockAhead(seconds: number): TestClock {
  const clock = new TestClock();
  clock.advance(Date.now() + 1000 * seconds - clock.now());
  return clock;
}

const CLIENTS = WITH_CLIENTS.clients.map((client) =>
  client.clientId === RESOURCE_SERVER.clientId ? client : { ...client, senderConstraint: 'DPoP' as const },
);

for (const { name, dpopNonce, secondsAhead } of SETTINGS) {
  const start = () => startGrantry({ ...WITH_CLIENTS, clients: CLIENTS, dpopNonce, clock: clockAhead(secondsAhead) });

  describe(`openid-client with ${name}`, () => {
    let grantry: Grantry;
    beforeAll(async () => {
      grantry = await start();
    });

    function discover(clientId: string, authentication: library.ClientAuth): Promise<library.Configuration> {
      return library.discovery(new URL(grantry.issuer), clientId, undefined, authentication, {
        algorithm: 'oauth2',
        execute: [library.allowInsecureRequests],
      });
    }

    /** @param boundTo the key that the code is to be bound to */
    async function signIn(config: library.Configuration, DPoP: library.DPoPHandle, boundTo?: library.DPoPHandle) {
      const pkceCodeVerifier = library.randomPKCECodeVerifier();
      const url = library.buildAuthorizationUrl(config, {
        redirect_uri: REDIRECT_URI,
        scope: 'read write',
        resource: API,
        code_challenge: await library.calculatePKCECodeChallenge(pkceCodeVerifier),
        code_challenge_method: 'S256',
        ...(boundTo && { dpop_jkt: await boundTo.calculateThumbprint() }),
      });
      const callback = await decideOn(grantry, url, ALICE);
      return await library.authorizationCodeGrant(config, callback, { pkceCodeVerifier }, undefined, { DPoP });
    }

    it.each(['ES256', 'PS256', 'Ed25519'])('gets a token of its own, bound to a key for %s', async (algorithm) => {
      for (const [{ clientId }, authentication] of [
        [WEB, library.ClientSecretBasic(WEB.secret)],
        [PORTAL, library.ClientSecretPost(PORTAL.secret)],
      ] as const) {
        const config = await discover(clientId, authentication);
        const DPoP = library.getDPoPHandle(config, await library.randomDPoPKeyPair(algorithm));
        for (let time = 0; time < 2; time++) {
          const tokens = await library.clientCredentialsGrant(config, { scope: 'read' }, { DPoP });
          expect(tokens.token_type).toBe('dpop');
          const told = await library.tokenIntrospection(config, tokens.access_token);
          const cnf = { jkt: await DPoP.calculateThumbprint() };
          expect(told).toMatchObject({ active: true, token_type: 'DPoP', cnf });
        }
      }
    });

    it('signs a person in, by a code that is bound to the key, and refreshes with that key alone', async () => {
      const config = await discover(NATIVE.clientId, library.None());
      const DPoP = library.getDPoPHandle(config, await library.randomDPoPKeyPair());
      const tokens = await signIn(config, DPoP, DPoP);
      expect(tokens).toMatchObject({ token_type: 'dpop', scope: 'read write' });
      expect(decodeJwt(tokens.access_token).cnf).toEqual({ jkt: await DPoP.calculateThumbprint() });

      const first = tokens.refresh_token as string;
      const other = library.getDPoPHandle(config, await library.randomDPoPKeyPair());
      await expect(library.refreshTokenGrant(config, first, {}, { DPoP: other })).rejects.toMatchObject({
        error: 'invalid_grant',
      });
      await expect(library.refreshTokenGrant(config, first)).rejects.toMatchObject({ error: 'invalid_dpop_proof' });
      const renewed = await library.refreshTokenGrant(config, first, {}, { DPoP });
      expect(renewed.token_type).toBe('dpop');
      await library.tokenRevocation(config, renewed.refresh_token as string);
      await expect(
        library.refreshTokenGrant(config, renewed.refresh_token as string, {}, { DPoP }),
      ).rejects.toMatchObject({ error: 'invalid_grant' });
    });

    it('gets no token for a code that is bound to another key', async () => {
      const config = await discover(NATIVE.clientId, library.None());
      const [one, other] = [
        library.getDPoPHandle(config, await library.randomDPoPKeyPair()),
        library.getDPoPHandle(config, await library.randomDPoPKeyPair()),
      ];
      await expect(signIn(config, one, other)).rejects.toMatchObject({ error: 'invalid_grant', status: 400 });
    });

    it('gets an error by name without a proof', async () => {
      const config = await discover(WEB.clientId, library.ClientSecretBasic(WEB.secret));
      await expect(library.clientCredentialsGrant(config)).rejects.toMatchObject({ error: 'invalid_dpop_proof' });
    });
  });

  describe(`oauth4webapi with ${name}`, () => {
    const INSECURE = { [strict.allowInsecureRequests]: true } as const;
    const client: strict.Client = { client_id: WEB.clientId };
    let grantry: Grantry;
    let server: strict.AuthorizationServer;
    beforeAll(async () => {
      grantry = await start();
      const issuer = new URL(grantry.issuer);
      const response = await strict.discoveryRequest(issuer, { algorithm: 'oauth2', ...INSECURE });
      server = await strict.processDiscoveryResponse(issuer, response);
    });

    async function ownToken(DPoP: strict.DPoPHandle): Promise<strict.TokenEndpointResponse> {
      const authentication = strict.ClientSecretBasic(WEB.secret);
      const response = await strict.clientCredentialsGrantRequest(
        server,
        client,
        authentication,
        new URLSearchParams(),
        {
          DPoP,
          ...INSECURE,
        },
      );
      return await strict.processClientCredentialsResponse(server, client, response);
    }

    it('gets an error that demands a nonce where it needs one, and goes on with it', async () => {
      const DPoP = strict.DPoP(client, await strict.generateKeyPair('ES256'));
      const needsNonce = dpopNonce === 'required' || secondsAhead !== 0;
      const first = ownToken(DPoP);
      if (needsNonce) await expect(first).rejects.toSatisfy((error: unknown) => strict.isDPoPNonceError(error));
      else expect((await first).token_type).toBe('dpop');
      for (let time = 0; time < 2; time++) expect((await ownToken(DPoP)).token_type).toBe('dpop');
    });

    if (dpopNonce !== 'required') return;
    it('goes on from one nonce to the next', async () => {
      const DPoP = strict.DPoP(client, await strict.generateKeyPair('Ed25519'));
      await expect(ownToken(DPoP)).rejects.toSatisfy((error: unknown) => strict.isDPoPNonceError(error));
      // No nonce lives for four minutes, but each answer has the next one.
      for (let minute = 0; minute <= 4; minute++) {
        expect((await ownToken(DPoP)).token_type).toBe('dpop');
        grantry.clock.advance(60_000);
      }
    });
  });
}
