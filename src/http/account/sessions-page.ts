// The page of a person's sessions: browser, address and time of each, to recognize it by, and the question before one ends.

import { type Html, html } from '../pages/html.ts';
import type { Texts } from '../pages/texts.ts';
import type { FormFields } from './account-flow.ts';
import {
  type AccountPageContent,
  accountLayout,
  askButton,
  buttonForm,
  questionPage,
  signedInBy,
} from './account-layout.ts';
import { minuteIn } from './point-in-time.ts';

/** One session. */
export interface ShownSession {
  /** The family; undefined where it is not known. */
  readonly browser: string | undefined;
  /** Undefined where it was not recorded. */
  readonly address: string | undefined;
  /** Epoch milliseconds of the sign-in. */
  readonly authTime: number;
  /** What people know the identity provider by; undefined for a password of this server. */
  readonly provider: string | undefined;
  /** Whether it is that of the browser that the page is for. */
  readonly isHere: boolean;
  /** What the page calls it by. */
  readonly handle: string;
}

/** The input of the page. */
export interface SessionsFacts extends Omit<AccountPageContent, 'body'> {
  readonly sessions: readonly ShownSession[];
  /** Of the session of this browser, which ends at once. */
  readonly signOutHere: FormFields;
  /** Whether there are sessions that are not shown. */
  readonly areMore: boolean;
}

/** The whole document. */
export function sessionsPage({ sessions, signOutHere, areMore, ...page }: SessionsFacts): string {
  const { texts } = page.frame.language;
  const target = `${page.frame.basePath}${page.path}`;
  const items = sessions.map((session, index) =>
    sessionItem(texts, session, { target, signOutHere, describedBy: `session-${index}` }),
  );
  const body = html`
      ${areMore && html`<p>${texts.account.newestSessions(sessions.length)}</p>`}
      <ul class="entries">${items}
      </ul>`;
  return accountLayout({ ...page, body });
}

/** The input of the question. */
export interface SessionQuestion extends Omit<AccountPageContent, 'body'> {
  readonly session: ShownSession;
  readonly fields: FormFields;
}

/** The whole document. */
export function endSessionPage({ session, ...page }: SessionQuestion): string {
  const { texts } = page.frame.language;
  const { account } = texts;
  const body = html`<div class="entry facts">${sessionFacts(texts, session)}</div>
      <p>${account.signOutDetail}</p>`;
  return questionPage({ ...page, title: account.questions.session, body, label: account.signOut });
}

function sessionItem(
  texts: Texts,
  session: ShownSession,
  {
    signOutHere,
    ...button
  }: { readonly target: string; readonly signOutHere: FormFields; readonly describedBy: string },
): Html {
  const { signOut, signOutHere: label } = texts.account;
  return html`
        <li class="entry">
          <div id="${button.describedBy}">${sessionFacts(texts, session)}
          </div>
          ${
            session.isHere
              ? buttonForm({ ...button, label, fields: signOutHere })
              : askButton({ ...button, label: signOut, action: 'sign_out', subject: session.handle })
          }
        </li>`;
}

function sessionFacts(texts: Texts, { browser, address, authTime, provider, isHere }: ShownSession): Html {
  const { account } = texts;
  return html`
            <h2>${browser ?? account.otherBrowser}${isHere && html` <span class="badge">${account.thisBrowser}</span>`}</h2>
            ${address !== undefined && html`<p class="detail">${account.address}: ${address}</p>`}
            <p class="detail">${account.signedInAt}: ${minuteIn(texts, authTime)}</p>
            ${signedInBy(texts, provider)}`;
}
