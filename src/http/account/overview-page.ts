// The first page of an account, with the person and the ways to sign out, and the question before all sessions end.

import { initial, personName } from '../pages/consent-page.ts';
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

/** The input of the page. */
export interface OverviewFacts extends Omit<AccountPageContent, 'body'> {
  readonly person: { readonly displayName: string; readonly username: string };
  readonly email: string | undefined;
  /** What people know the identity provider by; undefined for a password of this server. */
  readonly provider: string | undefined;
  readonly otherAccount: FormFields;
  readonly signOut: FormFields;
}

/** The whole document. */
export function overviewPage({ person, email, provider, otherAccount, signOut, ...page }: OverviewFacts): string {
  const { texts } = page.frame.language;
  const { account, consent } = texts;
  const target = `${page.frame.basePath}${page.path}`;
  const body = html`
      ${personBlock(
        texts,
        person,
        html`${email !== undefined && html`<span class="detail">${account.email}: <bdi>${email}</bdi></span>`}
          ${signedInBy(texts, provider)}`,
      )}
      <section>
        <h2 id="here">${account.thisBrowser}</h2>
        ${buttonForm({ target, fields: signOut, label: account.signOutHere, describedBy: 'here' })}
        ${buttonForm({ target, fields: otherAccount, label: consent.otherAccount, describedBy: 'here' })}
      </section>
      <section>
        <h2>${account.signOutEverywhere}</h2>
        <p id="everywhere">${account.everywhereDetail}</p>
        ${askButton({ target, action: 'sign_out_everywhere', label: account.signOutEverywhere, describedBy: 'everywhere' })}
      </section>`;
  return accountLayout({ ...page, body });
}

/** The input of the question. */
export interface EverywhereFacts extends Omit<AccountPageContent, 'body'>, Pick<OverviewFacts, 'person'> {
  readonly fields: FormFields;
}

/** The whole document. */
export function everywherePage({ person, ...page }: EverywhereFacts): string {
  const { texts } = page.frame.language;
  const { account } = texts;
  const body = html`${personBlock(texts, person)}
      <p>${account.everywhereDetail}</p>`;
  return questionPage({ ...page, title: account.questions.everywhere, body, label: account.signOutEverywhere });
}

function personBlock({ consent }: Texts, person: OverviewFacts['person'], more?: Html): Html {
  return html`<div class="account">
        <span class="avatar" aria-hidden="true">${initial(person.displayName)}</span>
        <span class="who">${consent.signedInAs} <strong><bdi>${personName(person)}</bdi></strong>
          ${more}</span>
      </div>`;
}
