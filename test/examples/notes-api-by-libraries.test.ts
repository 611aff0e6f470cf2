// oauth4webapi 3 and openid-client 6, unmodified, call the notes API with DPoP: with a nonce that it requires, and without.

import * as strict from 'oauth4webapi';
import * as library from 'openid-client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answerIn } from '../clients/person.ts';
import { TestBrowser } from '../http/sign-in/sign-in-browser.ts';
import { endAll, Issuer } from './notes-servers.ts';

const REDIRECT_URI = 'http://127.0.0.1:49152/callback';
const DEMO = { username: 'demo', password: 'demo', decision: 'allow' } as const;

let issuer: Issuer;
beforeAll(async () => {
  issuer = await Issuer.start();
});
afterAll(endAll);

/** Where the browser comes back to after the sign-in of `demo`. */
function comeBack(address: URL): Promise<URL> {
  return answerIn(new TestBrowser(address.origin, address.origin), address, DEMO);
}

describe.each([
  ['on demand', []],
  ['that it requires', ['--require-nonce']],
  ['that it requires, tokens by introspection', ['--require-nonce', '--introspect']],
] as const)('the notes API, a nonce %s', (name, args) => {
  let notes: URL;
  beforeAll(async () => {
    notes = new URL('/notes', await issuer.startApi(...args));
  });

  it('openid-client signs a person in, reads, writes, and is refused a scope that was not asked for', async () => {
    const config = await library.discovery(new URL(issuer.issuer), 'default.notes-cli', undefined, library.None(), {
      algorithm: 'oauth2',
      execute: [library.allowInsecureRequests],
    });
    const DPoP = library.getDPoPHandle(config, await library.randomDPoPKeyPair());
    const pkceCodeVerifier = library.randomPKCECodeVerifier();
    const address = library.buildAuthorizationUrl(config, {
      redirect_uri: REDIRECT_URI,
      scope: 'default/notes.read',
      code_challenge: await library.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    });
    const back = await comeBack(address);
    const tokens = await library.authorizationCodeGrant(config, back, { pkceCodeVerifier }, undefined, { DPoP });
    const call = (method: string, body?: string) =>
      library.fetchProtectedResource(
        config,
        tokens.access_token,
        notes,
        method,
        body,
        new Headers({ 'content-type': 'application/json' }),
        { DPoP },
      );
    const answer = await call('GET');
    expect([answer.status, await answer.json()]).toEqual([200, { notes: [] }]);
    const refusal = await call('POST', '{"text":"x"}').catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(library.WWWAuthenticateChallengeError);
    const { status, cause } = refusal as library.WWWAuthenticateChallengeError;
    const dpop = cause.find(({ scheme }) => scheme === 'dpop');
    expect([status, dpop?.parameters.error, dpop?.parameters.scope]).toEqual([
      403,
      'insufficient_scope',
      'default/notes.write',
    ]);
  });

  it('oauth4webapi signs a person in, writes and reads', async () => {
    const insecure = { [strict.allowInsecureRequests]: true };
    const at = new URL(issuer.issuer);
    const server = await strict.processDiscoveryResponse(
      at,
      await strict.discoveryRequest(at, { algorithm: 'oauth2', ...insecure }),
    );
    const client: strict.Client = { client_id: 'default.notes-cli' };
    const DPoP = strict.DPoP(client, await strict.generateKeyPair('ES256'));
    const verifier = strict.generateRandomCodeVerifier();
    const address = new URL(server.authorization_endpoint ?? '');
    address.search = new URLSearchParams({
      response_type: 'code',
      client_id: client.client_id,
      redirect_uri: REDIRECT_URI,
      scope: 'default/notes.read default/notes.write',
      code_challenge: await strict.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).toString();
    const parameters = strict.validateAuthResponse(server, client, await comeBack(address), strict.expectNoState);
    const request = () =>
      strict.authorizationCodeGrantRequest(server, client, strict.None(), parameters, REDIRECT_URI, verifier, {
        DPoP,
        ...insecure,
      });
    const { access_token: token } = await strict.processAuthorizationCodeResponse(server, client, await request());

    /** As the documentation of the library has it: once more where the API asks for its nonce. */
    async function call(method: string, body?: string): Promise<{ answer: Response; hasRetried: boolean }> {
      const headers = new Headers({ 'content-type': 'application/json' });
      const send = () => strict.protectedResourceRequest(token, method, notes, headers, body, { DPoP, ...insecure });
      try {
        return { answer: await send(), hasRetried: false };
      } catch (error) {
        if (!strict.isDPoPNonceError(error)) throw error;
        return { answer: await send(), hasRetried: true };
      }
    }

    const added = await call('POST', JSON.stringify({ text: `by oauth4webapi, ${name}` }));
    expect([added.answer.status, added.hasRetried]).toEqual([201, args.length > 0]);
    const listed = await call('GET');
    expect([listed.answer.status, listed.hasRetried]).toEqual([200, false]);
    expect(await listed.answer.json()).toMatchObject({ notes: [{ text: `by oauth4webapi, ${name}` }] });
  });
});
