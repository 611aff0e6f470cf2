// openid-client 6 as a relying party that verifies signatures itself: nonce, userinfo, refresh, sign-out.

import * as library from 'openid-client';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { Visitor } from './setup/visitor.ts';

const CLIENT_IDS = { RS256: 'shop.web', ES256: 'shop.es256' };
const SECRET = 'a-secret-of-more-than-thirty-two-bytes';
const redirectUri = 'http://127.0.0.1:1/callback';
const postLogoutRedirectUri = 'http://127.0.0.1:1/goodbye';
/** In seconds: for an unknown key it fetches the others no earlier than so long after it fetched them. */
const COOL_DOWN = 60;

let provider: Provider;
beforeAll(async () => {
  provider = await startGrantryProvider({
    consumers: ALGORITHMS.map((algorithm) => ({
      clientId: CLIENT_IDS[algorithm],
      secret: SECRET,
      algorithm,
      redirectUri,
      postLogoutRedirectUri,
    })),
  });
});
beforeEach(() => provider.setGroups(PERSON.groups));
afterAll(() => provider?.stop());

describe.each(ALGORITHMS)('with ID tokens by %s', (algorithm) => {
  let config: library.Configuration;
  let visitor: Visitor;
  beforeEach(async () => {
    visitor = new Visitor(provider);
    config = await discover();
  });

  /** As a program does that starts. */
  async function discover(): Promise<library.Configuration> {
    return await library.discovery(
      new URL(provider.issuer),
      CLIENT_IDS[algorithm],
      { id_token_signed_response_alg: algorithm },
      library.ClientSecretBasic(SECRET),
      { execute: [library.allowInsecureRequests, library.enableNonRepudiationChecks] },
    );
  }

  async function signIn() {
    const [pkceCodeVerifier, expectedNonce, expectedState] = [
      library.randomPKCECodeVerifier(),
      library.randomNonce(),
      library.randomState(),
    ];
    const url = library.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      scope: 'openid profile email groups',
      nonce: expectedNonce,
      state: expectedState,
      code_challenge: await library.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    });
    const callback = await visitor.answerTo(url.href, redirectUri);
    const checks = { pkceCodeVerifier, expectedNonce, expectedState, idTokenExpected: true };
    return await library.authorizationCodeGrant(config, callback, checks);
  }

  async function signOut(idToken: string | undefined): Promise<void> {
    const out = library.buildEndSessionUrl(config, {
      id_token_hint: idToken ?? '',
      post_logout_redirect_uri: postLogoutRedirectUri,
      state: 'out',
    });
    const goodbye = await visitor.answerTo(out.href, postLogoutRedirectUri);
    expect(goodbye.href).toBe(`${postLogoutRedirectUri}?state=out`);
  }

  it('given a sign-in → name, address and groups, a changed group after a refresh, and a way out', async () => {
    const tokens = await signIn();
    const { name, email, groups } = PERSON;
    const claims = tokens.claims();
    expect(claims).toMatchObject({ aud: CLIENT_IDS[algorithm], name, email, groups });
    const subject = claims?.sub ?? '';
    expect(await library.fetchUserInfo(config, tokens.access_token, subject)).toMatchObject({ name, email, groups });

    provider.setGroups(['auditors']);
    const refreshed = await library.refreshTokenGrant(config, tokens.refresh_token ?? '');
    expect(refreshed.claims()).toMatchObject({ sub: subject, groups: ['auditors'] });

    await signOut(refreshed.id_token);
    const refused = library.refreshTokenGrant(config, refreshed.refresh_token ?? '');
    await expect(refused).rejects.toMatchObject({ error: 'invalid_grant' });
    await signIn();
    expect(visitor.signIns).toBe(2);
  });

  it('given new signing keys → a refresh by them, and a way out with an old ID token', async () => {
    const tokens = await signIn();
    await provider.rotateSigningKey();
    const { jwks, uat } = library.getJwksCache(config) ?? { jwks: { keys: [] }, uat: 0 };
    // A minute later, started again with the keys that it kept.
    config = await discover();
    library.setJwksCache(config, { jwks, uat: uat - COOL_DOWN });
    const refreshed = await library.refreshTokenGrant(config, tokens.refresh_token ?? '');
    expect(refreshed.claims()).toMatchObject({ name: PERSON.name });
    expect(library.getJwksCache(config)?.jwks).not.toEqual(jwks);
    await signOut(tokens.id_token);
  });
});
