// GET and POST /account/sessions: where the person is signed in, and the end of one of these sessions.

import { createHash } from 'node:crypto';
import type { Session } from '../../oauth/ports/login-stores.ts';
import type { SignedIn } from '../cookies/browser-session.ts';
import {
  ACCOUNT_PAGE,
  type AccountFlow,
  type AccountPage,
  type FormFields,
  formFields,
  formRefused,
  leadTo,
  providerName,
  type Visit,
} from './account-flow.ts';
import { endSessionPage, type ShownSession, sessionsPage } from './sessions-page.ts';

const PATH = '/account/sessions';

/** The newest are shown: a page is no archive, and "everywhere" ends those that it does not show. */
const MOST_SHOWN = 50;
/** The most sessions of a person that are read, also those that have expired unused. */
const MOST_READ = 1000;

/** The page. */
export function sessions(flow: AccountFlow): AccountPage {
  return {
    route: 'account_sessions',
    path: PATH,
    show: (visit) => show(flow, visit),
    actions: {
      sign_out: {
        ask: (visit, handle) => askOne(flow, visit, handle),
        act: (visit, handle) => signOut(flow, visit, handle),
      },
    },
  };
}

async function show(flow: AccountFlow, { signedIn, frame }: Visit): Promise<string> {
  const active = await flow.sessions.list(signedIn, MOST_READ);
  // This browser first.
  const sorted = active.toSorted((one, other) => Number(isHere(signedIn, other)) - Number(isHere(signedIn, one)));
  const shown = sorted.slice(0, MOST_SHOWN).map((session) => shownSession(flow, signedIn, session));
  const signOutHere = signOutFields(flow, signedIn, sessionHandle(signedIn.session));
  return sessionsPage({ frame, path: PATH, sessions: shown, signOutHere, areMore: active.length > shown.length });
}

function isHere({ session: { sessionId } }: SignedIn, session: Session): boolean {
  return session.sessionId === sessionId;
}

function shownSession(flow: AccountFlow, signedIn: SignedIn, session: Session): ShownSession {
  const { browser, address, authTime } = session;
  return {
    browser,
    address,
    authTime,
    provider: providerName(flow, session),
    isHere: isHere(signedIn, session),
    handle: sessionHandle(session),
  };
}

function signOutFields(flow: AccountFlow, signedIn: SignedIn, handle: string): FormFields {
  return formFields(flow, signedIn, { action: 'sign_out', subject: handle });
}

/** There is no question about the session of this browser: its button acts at once, as that of the account does. */
async function askOne(flow: AccountFlow, { signedIn, frame }: Visit, handle: string): Promise<string | undefined> {
  const session = await find(flow, signedIn, handle);
  if (session === undefined || isHere(signedIn, session)) return undefined;
  const fields = signOutFields(flow, signedIn, handle);
  return endSessionPage({ frame, path: PATH, session: shownSession(flow, signedIn, session), fields });
}

/** The session may have ended since the page was shown: then there is nothing to do. */
async function signOut(flow: AccountFlow, { exchange, signedIn }: Visit, handle: string): Promise<void> {
  const session = await find(flow, signedIn, handle);
  if (session !== undefined && isHere(signedIn, session)) {
    await flow.sessions.end(exchange.reply, signedIn, ACCOUNT_PAGE);
    leadTo(flow, exchange, '/logout', 'signed_out');
    return;
  }
  if (session !== undefined) await flow.sessions.endElsewhere(session, ACCOUNT_PAGE);
  leadTo(flow, exchange, PATH, 'signed_out_elsewhere');
}

/** The session; undefined where it has ended. @throws OAuthError where it may be among those that are not read */
async function find(flow: AccountFlow, signedIn: SignedIn, handle: string): Promise<Session | undefined> {
  if (handle === sessionHandle(signedIn.session)) return signedIn.session;
  const active = await flow.sessions.list(signedIn, MOST_READ);
  const session = active.find((each) => sessionHandle(each) === handle);
  if (session === undefined && active.length === MOST_READ) throw formRefused('account_session_unknown');
  return session;
}

/**
 * What a page calls a session by: neither its id, which is a key of the store, nor its `sid`, which clients know. 132 bits in
 * base64url; no id of a session can be found by it.
 */
function sessionHandle({ sessionId }: Pick<Session, 'sessionId'>): string {
  return createHash('sha256').update(`grantry session handle\0${sessionId}`).digest('base64url').slice(0, 22);
}
