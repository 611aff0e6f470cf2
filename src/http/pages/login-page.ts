// The login page: the answer of /authorize to a browser that is not signed in, and of /login after a failed sign-in.

import { type Html, html } from './html.ts';
import { isolated } from './isolated.ts';
import { layout } from './layout.ts';
import type { PageLanguage } from './page-language.ts';
import type { Texts } from './texts.ts';

/** Why the page is shown again. */
export type LoginProblem =
  | { readonly kind: 'wrong' }
  | { readonly kind: 'busy'; readonly seconds: number | undefined }
  | { readonly kind: 'outdated'; readonly seconds: number }
  | { readonly kind: 'missing'; readonly username: boolean; readonly password: boolean }
  | { readonly kind: 'tooMany'; readonly seconds: number };

/** The input of the login page. */
export interface LoginPageFacts {
  readonly language: PageLanguage;
  /** The path of the issuer, '' or '/…' without a slash at its end. */
  readonly basePath: string;
  /** The host this server is known by. */
  readonly host: string;
  /** Undefined for a sign-in to the account page. */
  readonly clientName: string | undefined;
  readonly sealedRequest: string;
  readonly csrf: string;
  /** The value typed before; '' at first. */
  readonly username: string;
  readonly problem: LoginProblem | undefined;
}

/** The whole document. */
export function loginPage(facts: LoginPageFacts): string {
  const { texts } = facts.language;
  const { login } = texts;
  const { problem } = facts;
  return layout({
    texts,
    basePath: facts.basePath,
    title: login.title,
    body: html`
      ${problem && problemSummary(login, problem)}
      <h1>${login.title}</h1>
      <p class="lead">${facts.clientName === undefined ? login.leadToAccount : isolated(login.lead, facts.clientName)}</p>
      <form method="post" action="${facts.basePath}/login" novalidate>
        <input type="hidden" name="request" value="${facts.sealedRequest}">
        <input type="hidden" name="csrf" value="${facts.csrf}">
        ${field({
          name: 'username',
          label: login.username,
          error: problem?.kind === 'missing' && problem.username && login.usernameMissing,
          invalid: problem?.kind === 'wrong',
          attributes: html`type="text" autocomplete="username" autocapitalize="none" autocorrect="off" spellcheck="false"
            maxlength="254" value="${facts.username}"${problem === undefined && html` autofocus`}`,
        })}
        ${field({
          name: 'password',
          label: login.password,
          error: problem?.kind === 'missing' && problem.password && login.passwordMissing,
          invalid: problem?.kind === 'wrong',
          attributes: html`type="password" autocomplete="current-password" maxlength="1024"`,
        })}
        <button type="submit" class="primary wide">${login.submit}</button>
      </form>
      <p class="note">${login.note(facts.host)}</p>`,
  });
}

interface Field {
  readonly name: string;
  readonly label: string;
  /** Shown below the field. */
  readonly error: string | false;
  /** Whether the summary's message is about this field. */
  readonly invalid: boolean;
  readonly attributes: Html;
}

function field({ name, label, error, invalid, attributes }: Field): Html {
  const description = error ? `${name}-error` : invalid && 'problem-text';
  return html`<div class="field">
          <label for="${name}">${label}</label>
          <input id="${name}" name="${name}" required ${attributes}${
            description && html` aria-invalid="true" aria-describedby="${description}"`
          }>
          ${error && html`<p class="field-error" id="${name}-error">${error}</p>`}
        </div>`;
}

/** Focused when the page opens, so that a screen reader begins with it. */
function problemSummary(login: Texts['login'], problem: LoginProblem): Html {
  return html`<div class="problem" role="alert" tabindex="-1" autofocus aria-labelledby="problem-title">
        <h2 id="problem-title">${login.errorTitle}</h2>
        ${problemText(login, problem)}
      </div>`;
}

function problemText(login: Texts['login'], problem: LoginProblem): Html {
  switch (problem.kind) {
    case 'missing':
      return html`<ul>
          ${problem.username && html`<li><a href="#username">${login.usernameMissing}</a></li>`}
          ${problem.password && html`<li><a href="#password">${login.passwordMissing}</a></li>`}
        </ul>`;
    case 'tooMany':
      return html`<p id="problem-text">${login.tooMany(problem.seconds)}</p>`;
    default:
      return html`<p id="problem-text">${login[problem.kind]}</p>`;
  }
}
