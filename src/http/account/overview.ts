// GET and POST /account: the signed-in person, and the two ways to sign out. "Everywhere" asks, and ends all that the person holds: the
// watermark comes first, so that nothing is issued between the two steps.

import {
  ACCOUNT_PAGE,
  type AccountFlow,
  type AccountPage,
  formFields,
  leadTo,
  providerName,
  type Visit,
} from './account-flow.ts';
import { everywherePage, overviewPage } from './overview-page.ts';

const PATH = '/account';
/** It says that the person is signed out. */
const SIGNED_OUT = '/logout';

/** The page. */
export function overview(flow: AccountFlow): AccountPage {
  return {
    route: 'account',
    path: PATH,
    show: (visit) => show(flow, visit),
    actions: {
      other_account: { act: (visit) => useOtherAccount(flow, visit) },
      sign_out: { act: (visit) => signOut(flow, visit) },
      sign_out_everywhere: {
        ask: async (visit) => askEverywhere(flow, visit),
        act: (visit) => signOutEverywhere(flow, visit),
      },
    },
  };
}

async function show(flow: AccountFlow, { signedIn, frame }: Visit): Promise<string> {
  const { session } = signedIn;
  const person = await flow.owners.find(session.subject);
  return overviewPage({
    frame,
    path: PATH,
    person: session,
    email: person?.email,
    provider: providerName(flow, session),
    otherAccount: formFields(flow, signedIn, { action: 'other_account' }),
    signOut: formFields(flow, signedIn, { action: 'sign_out' }),
  });
}

function askEverywhere(flow: AccountFlow, { signedIn, frame }: Visit): string {
  const fields = formFields(flow, signedIn, { action: 'sign_out_everywhere' });
  return everywherePage({ frame, path: PATH, person: signedIn.session, fields });
}

/** Signs out, and asks who signs in: a provider would sign in the same person again. */
async function useOtherAccount(flow: AccountFlow, { exchange, signedIn }: Visit): Promise<void> {
  await flow.sessions.end(exchange.reply, signedIn, ACCOUNT_PAGE);
  leadTo(flow, exchange, `${PATH}?prompt=select_account`, 'signed_out');
}

async function signOut(flow: AccountFlow, { exchange, signedIn }: Visit): Promise<void> {
  await flow.sessions.end(exchange.reply, signedIn, ACCOUNT_PAGE);
  leadTo(flow, exchange, SIGNED_OUT, 'signed_out');
}

async function signOutEverywhere(flow: AccountFlow, { exchange, signedIn }: Visit): Promise<void> {
  const { subject } = signedIn.session;
  await flow.watermarks.raise({ kind: 'user', subject });
  await flow.sessions.endAll(exchange.reply, signedIn, ACCOUNT_PAGE);
  leadTo(flow, exchange, SIGNED_OUT, 'signed_out_everywhere');
}
