// The sign-in by Auth.js, which has routes, cookies and session of its own. Its session is an encrypted cookie that holds the id of
// the sign-in alone. Auth.js neither renews tokens nor signs out at the issuer: the application does.

import { skipCSRFCheck } from '@auth/core';
import { ExpressAuth, type ExpressAuthConfig, getSession } from '@auth/express';
import { Router } from 'express';
import { Problem, SCOPE, type SignInWay, type SignInWayOptions } from './sign-in-way.ts';
import { LASTS_SECONDS } from './sign-ins.ts';

declare module '@auth/core/types' {
  interface Session {
    signIn?: string;
  }
}

declare module '@auth/core/jwt' {
  interface JWT {
    signIn?: string;
  }
}

export function authJsSignIn({ config, clientSecret, secret, signIns }: SignInWayOptions): SignInWay {
  const auth: ExpressAuthConfig = {
    basePath: '/auth',
    secret,
    providers: [
      {
        id: 'grantry',
        name: 'grantry',
        type: 'oidc',
        issuer: config.serverMetadata().issuer,
        clientId: config.clientMetadata().client_id,
        clientSecret,
        client: { token_endpoint_auth_method: 'client_secret_basic' },
        // Auth.js does PKCE alone unless it is asked for the others.
        checks: ['pkce', 'state', 'nonce'],
        authorization: { params: { scope: SCOPE } },
      },
    ],
    session: { strategy: 'jwt', maxAge: LASTS_SECONDS },
    callbacks: {
      // `account` is there at the sign-in alone. Without a token the session is over.
      jwt: ({ token, account, profile }) => {
        if (account) return { signIn: signIns.begin(profile ?? {}, account) };
        return signIns.find(token.signIn ?? '') === undefined ? null : token;
      },
      session: ({ session, token: { signIn } }) => ({
        expires: session.expires,
        ...(signIn !== undefined && { signIn }),
      }),
    },
    // Its own way out, `/auth/signout`, ends the sign-in here alone.
    events: {
      signOut: (message) => {
        if ('token' in message) signIns.end(message.token?.signIn ?? '');
      },
    },
    // Both are sent `?error=`, with one word that says little: the log of Auth.js has the cause.
    pages: { signIn: '/problem', error: '/problem' },
    // The redirect URI is made of the header Host; the issuer compares it.
    trustHost: true,
    // The application refuses forms of other sites itself.
    skipCSRFCheck,
  };

  const routes = Router();
  routes.use('/auth', ExpressAuth(auth));
  routes.get('/problem', ({ query: { error } }) => {
    throw new Problem(error === 'OAuthCallbackError' ? 'The access was not allowed.' : 'The sign-in failed.');
  });

  return {
    routes,
    action: '/auth/signin/grantry',
    signInOf: async (request) => (await getSession(request, auth))?.signIn,
  };
}
