// The sign-in of a person by the browser: authorization code, PKCE, and a code that is bound to the key of this program.

import { setTimeout as after } from 'node:timers/promises';
import * as client from 'openid-client';
import { LoopbackRedirect } from './loopback-redirect.ts';
import { Problem } from './problem.ts';

const PATIENCE_MINUTES = 5;

export interface SignIn {
  readonly config: client.Configuration;
  readonly DPoP: client.DPoPHandle;
  readonly scope: string;
  /** Shows a person the address to open. */
  readonly announce: (address: string) => void;
}

/**
 * Waits until a person has signed in and allowed the access.
 * @returns tokens that work beside proofs of the key alone
 * @throws Problem where nothing comes back from the browser within five minutes
 */
export async function signIn({ config, DPoP, scope, announce }: SignIn): Promise<client.TokenEndpointResponse> {
  const state = client.randomState();
  const pkceCodeVerifier = client.randomPKCECodeVerifier();
  const redirect = await LoopbackRedirect.listen(state);
  try {
    const address = client.buildAuthorizationUrl(config, {
      redirect_uri: redirect.redirectUri,
      scope,
      state,
      code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
      dpop_jkt: await DPoP.calculateThumbprint(),
    });
    announce(address.href);
    const answer = await Promise.race([redirect.answer, tooLate()]);
    const checks = { pkceCodeVerifier, expectedState: state };
    return await client.authorizationCodeGrant(config, answer, checks, undefined, { DPoP });
  } finally {
    redirect.close();
  }
}

async function tooLate(): Promise<never> {
  await after(PATIENCE_MINUTES * 60_000, undefined, { ref: false });
  throw new Problem(`nothing came back from the browser in ${PATIENCE_MINUTES} minutes: run the command again`);
}
