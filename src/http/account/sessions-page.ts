// The page of a person's sessions: browser, address and time of each, to recognize it by, and the button that ends it.

import { type Html, html } from '../pages/html.ts';
import type { Texts } from '../pages/texts.ts';
import type { FormFields } from './account-flow.ts';
import { type AccountPageContent, accountLayout, buttonForm } from './account-layout.ts';
import { minuteIn } from './point-in-time.ts';

/** One session. */
export interface ShownSession {
  /** The family; undefined where it is not known. */
  readonly browser: string | undefined;
  /** Undefined where it was not noted. */
  readonly address: string | undefined;
  /** Epoch milliseconds of the sign-in. */
  readonly authTime: number;
  /** What people know the identity provider by; undefined for a local user. */
  readonly provider: string | undefined;
  /** Whether it is that of the browser that the page is for. */
  readonly isHere: boolean;
  readonly signOut: FormFields;
}

/** The input of the page. */
export interface SessionsFacts extends Omit<AccountPageContent, 'body'> {
  readonly sessions: readonly ShownSession[];
  /** Whether there are sessions that are not shown. */
  readonly areMore: boolean;
}

/** The whole document. */
export function sessionsPage({ sessions, areMore, ...page }: SessionsFacts): string {
  const { texts } = page.language;
  const target = `${page.basePath}${page.path}`;
  const items = sessions.map((session, index) => sessionItem(texts, session, { target, id: `session-${index}` }));
  const body = html`
      ${areMore && html`<p>${texts.account.newestSessions(sessions.length)}</p>`}
      <ul class="entries">${items}
      </ul>`;
  return accountLayout({ ...page, body });
}

function sessionItem(
  texts: Texts,
  { browser, address, authTime, provider, isHere, signOut }: ShownSession,
  { target, id }: { readonly target: string; readonly id: string },
): Html {
  const { account } = texts;
  return html`
        <li class="entry">
          <div id="${id}">
            <h2>${browser ?? account.otherBrowser}${isHere && html` <span class="badge">${account.thisBrowser}</span>`}</h2>
            ${address !== undefined && html`<p class="detail">${account.address}: ${address}</p>`}
            <p class="detail">${account.signedInAt}: ${minuteIn(texts, authTime)}</p>
            ${provider !== undefined && html`<p class="detail">${account.signedInBy}: <bdi>${provider}</bdi></p>`}
          </div>
          ${buttonForm({ target, fields: signOut, label: account.signOut, describedBy: id })}
        </li>`;
}
