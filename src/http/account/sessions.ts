// GET and POST /account/sessions: where the person is signed in, and the end of one of these sessions.

import type { Session } from '../../oauth/ports/login-stores.ts';
import {
  ACCOUNT_PAGE,
  type AccountFlow,
  type AccountPage,
  formFields,
  formRefused,
  leadTo,
  type Visit,
} from './account-flow.ts';
import { sessionHandle } from './session-handle.ts';
import { type ShownSession, sessionsPage } from './sessions-page.ts';

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
    actions: { sign_out: (visit, handle) => signOut(flow, visit, handle) },
  };
}

async function show(flow: AccountFlow, { signedIn, language }: Visit): Promise<string> {
  const living = await flow.sessions.list(signedIn, MOST_READ);
  const isHere = ({ sessionId }: Session) => sessionId === signedIn.session.sessionId;
  // This browser first.
  const sorted = [...living.filter(isHere), ...living.filter((session) => !isHere(session))];
  const shown = sorted.slice(0, MOST_SHOWN).map((session): ShownSession => {
    const { browser, address, authTime } = session;
    const provider = session.provider && (flow.sources.provider(session.provider)?.displayName ?? session.provider);
    const signOut = formFields(flow, signedIn, { action: 'sign_out', subject: sessionHandle(session) });
    return { browser, address, authTime, provider, isHere: isHere(session), signOut };
  });
  const { basePath } = flow;
  return sessionsPage({ language, basePath, path: PATH, sessions: shown, areMore: living.length > shown.length });
}

/** The session may have ended since the page was shown: then there is nothing to do. */
async function signOut(flow: AccountFlow, { exchange, signedIn }: Visit, handle: string): Promise<void> {
  if (handle === sessionHandle(signedIn.session)) {
    await flow.sessions.end(exchange.reply, signedIn, ACCOUNT_PAGE);
    leadTo(flow, exchange, '/logout', 'signed_out');
    return;
  }
  const living = await flow.sessions.list(signedIn, MOST_READ);
  const session = living.find((each) => sessionHandle(each) === handle);
  if (session !== undefined) await flow.sessions.endElsewhere(session, ACCOUNT_PAGE);
  // It may be among those that were not read.
  else if (living.length === MOST_READ) throw formRefused('account_session_unknown');
  leadTo(flow, exchange, PATH, 'signed_out_elsewhere');
}
