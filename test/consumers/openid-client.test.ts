// openid-client 6 as a relying party: nonce, userinfo, refresh, sign-out.

import * as library from 'openid-client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import { ALGORITHMS, PERSON, type Provider } from './setup/provider.ts';
import { Visitor } from './setup/visitor.ts';

const CLIENT_IDS = { RS256: 'shop.web', ES256: 'shop.es256' };
const CLIENT = { secret: 'a-secret-of-more-than-thirty-two-bytes' };
const redirectUri = 'http://127.0.0.1:1/callback';
const postLogoutRedirectUri = 'http://127.0.0.1:1/goodbye';

let provider: Provider;
beforeAll(async () => {
  provider = await startGrantryProvider({
    consumers: ALGORITHMS.map((algorithm) => ({
      ...CLIENT,
      clientId: CLIENT_IDS[algorithm],
      algorithm,
      redirectUri,
      postLogoutRedirectUri,
    })),
  });
});
afterAll(() => provider?.stop());

it.each(ALGORITHMS)(
  'given a sign-in, and %s → name, address and groups, a changed group after a refresh, and a way out',
  async (algorithm) => {
    provider.setGroups(PERSON.groups);
    const visitor = new Visitor(provider);
    const config = await library.discovery(
      new URL(provider.issuer),
      CLIENT_IDS[algorithm],
      { id_token_signed_response_alg: algorithm },
      library.ClientSecretBasic(CLIENT.secret),
      { execute: [library.allowInsecureRequests] },
    );
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
    const tokens = await library.authorizationCodeGrant(config, callback, checks);
    const { name, email, groups } = PERSON;
    const claims = tokens.claims();
    expect(claims).toMatchObject({ aud: CLIENT_IDS[algorithm], name, email, groups });
    const subject = claims?.sub ?? '';
    expect(await library.fetchUserInfo(config, tokens.access_token, subject)).toMatchObject({ name, email, groups });

    provider.setGroups(['auditors']);
    const refreshed = await library.refreshTokenGrant(config, tokens.refresh_token ?? '');
    expect(refreshed.claims()).toMatchObject({ sub: subject, groups: ['auditors'] });

    const out = library.buildEndSessionUrl(config, {
      id_token_hint: refreshed.id_token ?? '',
      post_logout_redirect_uri: postLogoutRedirectUri,
      state: 'out',
    });
    const goodbye = await visitor.answerTo(out.href, postLogoutRedirectUri);
    expect(goodbye.href).toBe(`${postLogoutRedirectUri}?state=out`);
    await visitor.answerTo(url.href, redirectUri);
    expect(visitor.signIns).toBe(2);
  },
);
