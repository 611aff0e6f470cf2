// The first page of an account: the person, and the ways to sign out.

import { initial, personName } from '../pages/consent-page.ts';
import { html } from '../pages/html.ts';
import type { FormFields } from './account-flow.ts';
import { type AccountPageContent, accountLayout, buttonForm } from './account-layout.ts';

/** The input of the page. */
export interface OverviewFacts extends Omit<AccountPageContent, 'body'> {
  readonly person: { readonly displayName: string; readonly username: string };
  readonly email: string | undefined;
  readonly otherAccount: FormFields;
  readonly signOut: FormFields;
  readonly signOutEverywhere: FormFields;
}

/** The whole document. */
export function overviewPage({
  person,
  email,
  otherAccount,
  signOut,
  signOutEverywhere,
  ...page
}: OverviewFacts): string {
  const { account, consent } = page.language.texts;
  const target = `${page.basePath}${page.path}`;
  const body = html`
      <div class="account">
        <span class="avatar" aria-hidden="true">${initial(person.displayName)}</span>
        <span class="who">${consent.signedInAs} <strong><bdi>${personName(person)}</bdi></strong>
          ${email !== undefined && html`<span class="detail">${account.email}: <bdi>${email}</bdi></span>`}</span>
      </div>
      <section>
        <h2 id="here">${account.thisBrowser}</h2>
        ${buttonForm({ target, fields: signOut, label: account.signOutHere, describedBy: 'here' })}
        ${buttonForm({ target, fields: otherAccount, label: consent.otherAccount, describedBy: 'here' })}
      </section>
      <section>
        <h2>${account.signOutEverywhere}</h2>
        <p id="everywhere">${account.everywhereDetail}</p>
        ${buttonForm({ target, fields: signOutEverywhere, label: account.signOutEverywhere, describedBy: 'everywhere' })}
      </section>`;
  return accountLayout({ ...page, body });
}
