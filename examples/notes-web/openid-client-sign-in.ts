// The sign-in by openid-client: authorization code with PKCE, state and nonce. The session of the browser, by express-session,
// keeps what the answer is checked against, and after that the id of the sign-in.

import { promisify } from 'node:util';
import { type Request, Router } from 'express';
import session from 'express-session';
import * as client from 'openid-client';
import { Problem, SCOPE, type SignInWay, type SignInWayOptions } from './sign-in-way.ts';
import { LASTS_SECONDS } from './sign-ins.ts';

/** What a request of ours is checked by when its answer comes. */
interface Attempt {
  readonly state: string;
  readonly nonce: string;
  readonly pkceCodeVerifier: string;
}

declare module 'express-session' {
  interface SessionData {
    attempts?: readonly Attempt[];
    signIn?: string;
  }
}

/** Tabs in which a browser can sign in at the same time. */
const ATTEMPTS_MOST = 5;

export function openidClientSignIn({ config, origin, secret, signIns }: SignInWayOptions): SignInWay {
  const redirectUri = `${origin}/callback`;
  const routes = Router();

  routes.use(
    session({
      name: 'notes-session',
      secret,
      resave: false,
      saveUninitialized: false,
      // `lax`, because the browser comes back from another site.
      cookie: { httpOnly: true, sameSite: 'lax', secure: origin.startsWith('https:'), maxAge: LASTS_SECONDS * 1000 },
    }),
  );

  routes.post('/sign-in', async (request, response) => {
    const attempt = {
      state: client.randomState(),
      nonce: client.randomNonce(),
      pkceCodeVerifier: client.randomPKCECodeVerifier(),
    };
    const url = client.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      scope: SCOPE,
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(attempt.pkceCodeVerifier),
      code_challenge_method: 'S256',
    });
    request.session.attempts = [...(request.session.attempts ?? []), attempt].slice(-ATTEMPTS_MOST);
    response.redirect(303, url.href);
  });

  routes.get('/callback', async (request, response) => {
    const attempt = request.session.attempts?.find(({ state }) => state === request.query.state);
    if (attempt === undefined) throw new Problem('This sign-in did not begin in this browser, or it is over.');
    const tokens = await client
      .authorizationCodeGrant(config, new URL(request.originalUrl, origin), {
        expectedState: attempt.state,
        expectedNonce: attempt.nonce,
        pkceCodeVerifier: attempt.pkceCodeVerifier,
        idTokenExpected: true,
      })
      .catch((error: unknown) => {
        const isDenied = error instanceof client.AuthorizationResponseError && error.error === 'access_denied';
        throw new Problem(isDenied ? 'The access was not allowed.' : 'The sign-in failed.', { cause: error });
      });
    // Another person may have put the id of the old session into this browser.
    await renewSession(request);
    request.session.signIn = signIns.begin(tokens.claims() ?? {}, tokens);
    response.redirect(303, '/');
  });

  return { routes, action: '/sign-in', signInOf: async ({ session: { signIn } }) => signIn };
}

function renewSession(request: Request): Promise<void> {
  return promisify((done: (error?: Error) => void) => request.session.regenerate(done))();
}
