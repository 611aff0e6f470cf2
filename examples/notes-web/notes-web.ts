// The application: the notes of the person who is signed in, which the API keeps. The same for either way to sign in.

import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import * as client from 'openid-client';
import type { Note } from '../notes-api/notes.ts';
import { failurePage, notesPage, problemPage, welcomePage } from './pages.ts';
import { Problem, type SignInWay, type SignInWayOptions } from './sign-in-way.ts';
import { SignInEnded } from './sign-ins.ts';

export interface NotesWebOptions extends SignInWayOptions {
  /** The address of the notes API, without a path. */
  readonly api: string;
  readonly way: (options: SignInWayOptions) => SignInWay;
}

/** The application, which listens nowhere yet. */
export function notesWeb({ api, way, ...options }: NotesWebOptions): Express {
  const { config, origin, signIns } = options;
  const { routes, action, signInOf } = way(options);
  const notes = new URL('/notes', api);

  const app = express();
  app.disable('x-powered-by');
  app.use(headers, ownFormsAlone(origin), routes, express.urlencoded({ extended: false, limit: '16kb' }));

  app.get('/', async (request, response) => {
    const id = await signInOf(request);
    const signIn = id === undefined ? undefined : signIns.find(id);
    if (id === undefined || signIn === undefined) {
      response.send(welcomePage(action));
      return;
    }
    const answer = await signIns.call(id, notes);
    const { notes: list } = (await answer.json()) as { readonly notes: readonly Note[] };
    response.send(notesPage(signIn.name, list));
  });

  app.post('/notes', async (request, response) => {
    await signIns.call((await signInOf(request)) ?? '', notes, { text: String(request.body?.text) });
    response.redirect(303, '/');
  });

  app.post('/sign-out', async (request, response) => {
    const signIn = signIns.end((await signInOf(request)) ?? '');
    const idToken = signIn?.tokens.id_token;
    // The issuer ends its own session, and with it all tokens; then it sends the browser back.
    const url = client.buildEndSessionUrl(config, {
      post_logout_redirect_uri: `${origin}/`,
      ...(idToken !== undefined && { id_token_hint: idToken }),
    });
    response.redirect(303, url.href);
  });

  app.use(failures(action));
  return app;
}

const headers: RequestHandler = (_, response, next) => {
  response.set({
    'cache-control': 'no-store',
    // No `form-action`: it would hold for the redirects after a form too, and those of a sign-in lead to the issuer.
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    'x-content-type-options': 'nosniff',
  });
  next();
};

/** Refuses a form of a page that is not ours: the cookies of the person come with it all the same, from a site beside this one. */
function ownFormsAlone(origin: string): RequestHandler {
  return (request, response, next) => {
    if (['GET', 'HEAD'].includes(request.method) || request.headers.origin === origin) next();
    else response.status(403).send(failurePage('The form is not one of this application.'));
  };
}

/** What went wrong, as a page: a sign-in that is over or came to nothing, or a server that does not answer. */
function failures(action: string): ErrorRequestHandler {
  return (error: unknown, _request, response, next) => {
    if (response.headersSent) next(error);
    else if (error instanceof SignInEnded) response.status(401).send(problemPage('Your sign-in is over.', action));
    else if (error instanceof Problem) {
      logLine(error);
      response.status(400).send(problemPage(error.message, action));
    } else {
      logLine(error);
      const remedy = 'Do grantry (npm start) and the notes API (npm run notes-api) run?';
      response.status(502).send(failurePage(`A server that this page needs gave no answer of use. ${remedy}`));
    }
  };
}

/** The messages of an error and of its cause alone: their other members may hold tokens. */
function logLine(error: unknown): void {
  const cause = error instanceof Error ? error.cause : undefined;
  console.error(cause === undefined ? `${error}` : `${error}: ${cause}`);
}
