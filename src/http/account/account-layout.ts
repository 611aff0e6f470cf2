// The layout of the pages of an account: their list, and the form with one button that all of them use.

import type { OwnPath } from '../cookies/sealed-request.ts';
import { type Html, html } from '../pages/html.ts';
import { layout } from '../pages/layout.ts';
import type { PageFrame } from '../pages/page-frame.ts';
import type { Texts } from '../pages/texts.ts';
import type { FormFields } from './account-flow.ts';

/** One page of an account. */
export interface AccountPageContent {
  readonly frame: PageFrame;
  readonly path: OwnPath;
  readonly body: Html;
}

/** The whole document. */
export function accountLayout({ frame, path, body }: AccountPageContent): string {
  const { basePath } = frame;
  const { texts } = frame.language;
  const titles = pageTitles(texts);
  const links = [...titles].map(([other, title]) =>
    other === path
      ? html`<li><a href="${basePath}${other}" aria-current="page">${title}</a></li>`
      : html`<li><a href="${basePath}${other}">${title}</a></li>`,
  );
  const title = titles.get(path) ?? texts.account.title;
  return layout({
    frame,
    title,
    body: html`
      <nav aria-label="${texts.account.pages}"><ul class="pages">${links}</ul></nav>
      <h1>${title}</h1>
      ${body}`,
  });
}

function pageTitles({ account }: Texts): ReadonlyMap<OwnPath, string> {
  return new Map([
    ['/account', account.title],
    ['/account/sessions', account.sessions],
    ['/account/applications', account.applications],
  ]);
}

/** A form with one button. */
export interface ButtonForm {
  /** The address that it is posted to. */
  readonly target: string;
  readonly fields: FormFields;
  readonly label: string;
  /** The id of the element that says what the button is about. */
  readonly describedBy: string;
}

/** The form. */
export function buttonForm({ target, fields: { action, subject, csrf }, label, describedBy }: ButtonForm): Html {
  return html`<form method="post" action="${target}">
          <input type="hidden" name="csrf" value="${csrf}">
          ${subject !== '' && html`<input type="hidden" name="subject" value="${subject}">`}
          <button type="submit" name="action" value="${action}" aria-describedby="${describedBy}">${label}</button>
        </form>`;
}
