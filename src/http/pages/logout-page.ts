// The pages of a sign-out: the question, where no client has proven that the person wants it, and the end.

import { answerLink } from './answer-link.ts';
import { html } from './html.ts';
import { isolated } from './isolated.ts';
import { layout } from './layout.ts';
import type { PageLanguage } from './page-language.ts';

/** The input of both pages. */
interface LogoutPageFacts {
  readonly language: PageLanguage;
  /** The path of the issuer, '' or '/…' without a slash at its end. */
  readonly basePath: string;
}

/** The input of the question. */
export interface LogoutQuestion extends LogoutPageFacts {
  readonly username: string;
  readonly csrf: string;
  /** The parameters of the request that the form sends again. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
}

/** "Sign out?" with its one button. */
export function logoutQuestionPage({ language, basePath, username, csrf, parameters }: LogoutQuestion): string {
  const { texts } = language;
  const { logout } = texts;
  return layout({
    texts,
    basePath,
    title: logout.question,
    body: html`
      <h1>${logout.question}</h1>
      <p>${isolated(logout.signedInAs, username)}</p>
      <form class="choices" method="post" action="${basePath}/logout/confirm">
        <input type="hidden" name="csrf" value="${csrf}">
        ${parameters.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
        <button type="submit" class="primary">${logout.submit}</button>
      </form>`,
  });
}

/** The input of the end. */
export interface SignedOut extends LogoutPageFacts {
  /** The address of the client that the person has to follow by hand; undefined for a page without a link. */
  readonly answer: string | undefined;
}

/** "You are signed out". */
export function signedOutPage({ language, basePath, answer }: SignedOut): string {
  const { texts } = language;
  const { logout } = texts;
  return layout({
    texts,
    basePath,
    title: logout.done,
    body: html`
      <h1>${logout.done}</h1>
      <p>${logout.doneAdvice}</p>
      ${answer === undefined ? html`<p><a href="${basePath}/account">${texts.account.title}</a></p>` : answerLink(texts, answer)}`,
  });
}
