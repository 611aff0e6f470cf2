// The layout of the pages of an account: their tabs, the question before something ends, and what several of them show.

import type { OwnPath } from '../cookies/sealed-request.ts';
import { type Html, html } from '../pages/html.ts';
import { layout } from '../pages/layout.ts';
import type { PageFrame } from '../pages/page-frame.ts';
import type { Texts } from '../pages/texts.ts';
import type { FormFields } from './account-flow.ts';

/** What the texts of the pages are called, in the order of the tabs. */
const PAGES: Readonly<Record<OwnPath, keyof Texts['account']['tabs']>> = {
  '/account': 'overview',
  '/account/sessions': 'sessions',
  '/account/applications': 'applications',
};

/** One page of an account. */
export interface AccountPageContent {
  readonly frame: PageFrame;
  readonly path: OwnPath;
  readonly body: Html;
}

/** The whole document. */
export function accountLayout({ frame, path, body }: AccountPageContent): string {
  const { basePath } = frame;
  const { account } = frame.language.texts;
  const tabs = Object.entries(PAGES).map(
    ([other, name]) =>
      html`<li><a href="${basePath}${other}"${other === path && html` aria-current="page"`}>${account.tabs[name]}</a></li>`,
  );
  const title = account.titles[PAGES[path]];
  return layout({
    frame,
    title,
    body: html`
      <nav aria-label="${account.pages}"><ul class="pages">${tabs}</ul></nav>
      <h1>${title}</h1>
      ${body}`,
  });
}

/** The question before something ends. */
export interface AccountQuestion extends AccountPageContent {
  readonly title: string;
  readonly fields: FormFields;
  /** Of the button that ends it. */
  readonly label: string;
}

/** The whole document. Its other button leads to the page of the path. */
export function questionPage({ frame, path, title, body, fields, label }: AccountQuestion): string {
  const target = `${frame.basePath}${path}`;
  return layout({
    frame,
    title,
    body: html`
      <h1>${title}</h1>
      <div id="what">${body}</div>
      <div class="choices">
        <form action="${target}"><button type="submit">${frame.language.texts.account.cancel}</button></form>
        ${buttonForm({ target, fields, label, describedBy: 'what', style: 'danger primary' })}
      </div>`,
  });
}

/** A button of a page. */
export interface Button {
  /** The address of the page. */
  readonly target: string;
  readonly label: string;
  /** The id of the element that says what the button is about. */
  readonly describedBy: string;
}

/** A form with one button, which acts at once. */
export function buttonForm({
  target,
  fields: { action, subject, csrf },
  label,
  describedBy,
  style,
}: Button & { readonly fields: FormFields; readonly style?: string }): Html {
  return html`<form method="post" action="${target}">
          <input type="hidden" name="csrf" value="${csrf}">
          ${subjectField(subject)}
          <button type="submit"${style && html` class="${style}"`} name="action" value="${action}" aria-describedby="${describedBy}">${label}</button>
        </form>`;
}

/** A button that leads to the question before an action, and changes nothing. */
export function askButton({
  target,
  action,
  subject = '',
  label,
  describedBy,
}: Button & { readonly action: string; readonly subject?: string }): Html {
  return html`<form action="${target}">
          ${subjectField(subject)}
          <button type="submit" class="danger" name="confirm" value="${action}" aria-describedby="${describedBy}">${label}</button>
        </form>`;
}

function subjectField(subject: string): Html | false {
  return subject !== '' && html`<input type="hidden" name="subject" value="${subject}">`;
}

/** How a session began. @param provider what people know the identity provider by; undefined for a password of this server */
export function signedInBy({ account }: Texts, provider: string | undefined): Html {
  return html`<span class="detail">${account.signedInBy}: ${provider === undefined ? account.password : html`<bdi>${provider}</bdi>`}</span>`;
}
