// The pages of a sign-out: the question, where no client has proven that the person wants it, and the end.

import { answerLink } from './answer-link.ts';
import { errorText } from './error-page.ts';
import { html } from './html.ts';
import { isolated } from './isolated.ts';
import { layout } from './layout.ts';
import type { PageFrame } from './page-frame.ts';

/** The input of both pages. */
interface LogoutPageFacts {
  readonly frame: PageFrame;
}

/** The input of the question. */
export interface LogoutQuestion extends LogoutPageFacts {
  readonly username: string;
  readonly csrf: string;
  /** The parameters of the request that the form sends again. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
  /** The slug of the error for which the request cannot be answered; undefined where it can. */
  readonly refusedFor: string | undefined;
}

/** "Sign out?" with its one button. */
export function logoutQuestionPage({ frame, username, csrf, parameters, refusedFor }: LogoutQuestion): string {
  const { logout, error } = frame.language.texts;
  return layout({
    frame,
    title: logout.question,
    body: html`
      <h1>${logout.question}</h1>
      ${refusedFor !== undefined && html`<p>${errorText(error, 400, refusedFor).message}</p>`}
      <p>${isolated(logout.signedInAs, username)}</p>
      <form class="choices" method="post" action="${frame.basePath}/logout/confirm">
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
export function signedOutPage({ frame, answer }: SignedOut): string {
  const { texts } = frame.language;
  const { logout } = texts;
  return layout({
    frame,
    title: logout.done,
    body: html`
      <h1>${logout.done}</h1>
      <p>${logout.doneAdvice}</p>
      ${answer === undefined ? html`<p><a href="${frame.basePath}/account">${logout.signInAgain}</a></p>` : answerLink(texts, answer)}`,
  });
}
