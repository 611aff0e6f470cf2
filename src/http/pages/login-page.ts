// The login page: the answer of /authorize to a browser that is not signed in, and of /login after a failed sign-in.

import type { Brand } from './brand.ts';
import { type Html, html } from './html.ts';
import { isolated } from './isolated.ts';
import { layout } from './layout.ts';
import type { PageFrame } from './page-frame.ts';
import type { Texts } from './texts.ts';

/** Why the page is shown again. */
export type LoginProblem = PasswordProblem | ProviderProblem | ClientProblem;

/** Why a sign-in by a password failed. */
export type PasswordProblem =
  | { readonly kind: 'wrong' }
  | { readonly kind: 'busy'; readonly seconds: number | undefined }
  | { readonly kind: 'outdated'; readonly seconds: number }
  | { readonly kind: 'missing'; readonly username: boolean; readonly password: boolean }
  | { readonly kind: 'tooMany'; readonly seconds: number };

/** What came of a sign-in at a provider, by its display name. */
export type ProviderProblem =
  | { readonly kind: 'tooMany'; readonly seconds: number }
  | { readonly kind: 'cancelled' | 'unavailable' | 'invalid'; readonly provider: string }
  | { readonly kind: 'notPermitted'; readonly provider: string; readonly username: string };

/** What the client is not for: a person, by the display name of the provider if any, or a way to sign in. */
export type ClientProblem =
  | { readonly kind: 'notForPerson'; readonly username: string; readonly provider: string | undefined }
  | { readonly kind: 'notOpen' };

/** What stands first where people sign in by providers and by a password. */
export type SignInOrder = 'providers-first' | 'local-first';

/** A provider to sign in by. */
export interface LoginProvider {
  /** A path segment. */
  readonly name: string;
  readonly displayName: string;
}

/** The input of the login page. */
export interface LoginPageFacts {
  readonly frame: PageFrame;
  /** The host this server is known by. */
  readonly host: string;
  /** Undefined for a sign-in to the account page. */
  readonly clientName: string | undefined;
  readonly sealedRequest: string;
  readonly csrf: string;
  /** The value typed before; '' at first. */
  readonly username: string;
  readonly problem: LoginProblem | undefined;
  /** Whether there is a form for a password. */
  readonly takesPasswords: boolean;
  readonly providers: readonly LoginProvider[];
  /** Whether there is no way to sign in because no provider can be used for now. */
  readonly isClosedForNow: boolean;
  readonly order: SignInOrder;
}

/** The whole document. */
export function loginPage(facts: LoginPageFacts): string {
  const { login } = facts.frame.language.texts;
  const { problem, providers, takesPasswords } = facts;
  const isSecond = takesPasswords && providers.length > 0 && facts.order === 'providers-first';
  const isOpen = !isSecond || isForLocalUsers(facts);
  const form = takesPasswords && passwordForm(facts, isOpen);
  return layout({
    frame: facts.frame,
    title: login.title,
    body: html`
      ${problem && problemSummary(login, problem)}
      <h1>${login.title}</h1>
      <p class="lead">${facts.clientName === undefined ? login.leadToAccount : isolated(login.lead, facts.clientName)}</p>
      ${!isSecond && form}
      ${providers.map((provider) => providerForm(facts, provider))}
      ${
        isSecond &&
        html`<details class="second"${isOpen && html` open`}>
        <summary>${login.byPassword}</summary>
        ${form}
      </details>`
      }
      ${!takesPasswords && providers.length === 0 && html`<p>${facts.isClosedForNow ? login.closedForNow : login.noWay}</p>`}
      ${helpLink(facts.frame.brand)}`,
  });
}

/** In a tab of its own, so that what was typed stays; a mail program leaves the page anyway. */
function helpLink({ help }: Brand): Html | undefined {
  if (help === undefined) return undefined;
  const target = help.url.startsWith('https:') && html` target="_blank"`;
  return html`<p class="note"><a href="${help.url}"${target} rel="noopener noreferrer"><bdi>${help.text}</bdi></a></p>`;
}

/** Whether the form for a password was used, or the client names an account, whichever: no account shows by it. */
function isForLocalUsers({ username, problem }: LoginPageFacts): boolean {
  const isOfLocalUser = problem?.kind === 'notForPerson' && problem.provider === undefined;
  return username !== '' || problem?.kind === 'missing' || isOfLocalUser;
}

/** Hidden fields of each form of the page. */
function sealed({ sealedRequest, csrf }: LoginPageFacts): Html {
  return html`<input type="hidden" name="request" value="${sealedRequest}">
        <input type="hidden" name="csrf" value="${csrf}">`;
}

function providerForm(facts: LoginPageFacts, { name, displayName }: LoginProvider): Html {
  const { login } = facts.frame.language.texts;
  return html`<form class="provider" method="post" action="${facts.frame.basePath}/login/upstream/${name}">
        ${sealed(facts)}
        <button type="submit" class="wide">${isolated(login.signInBy, displayName)}</button>
      </form>
      `;
}

/** @param isOpen whether it can be seen: the first empty field has the focus then, unless a problem has it */
function passwordForm(facts: LoginPageFacts, isOpen: boolean): Html {
  const { login } = facts.frame.language.texts;
  const { problem, username } = facts;
  const focused = isOpen && problem === undefined && (username === '' ? 'username' : 'password');
  return html`<form method="post" action="${facts.frame.basePath}/login" novalidate>
        ${sealed(facts)}
        ${field({
          name: 'username',
          label: login.username,
          error: problem?.kind === 'missing' && problem.username && login.usernameMissing,
          invalid: problem?.kind === 'wrong',
          attributes: html`type="text" autocomplete="username" autocapitalize="none" autocorrect="off" spellcheck="false"
            maxlength="254" value="${username}"${focused === 'username' && html` autofocus`}`,
        })}
        ${field({
          name: 'password',
          label: login.password,
          error: problem?.kind === 'missing' && problem.password && login.passwordMissing,
          invalid: problem?.kind === 'wrong',
          attributes: html`type="password" autocomplete="current-password" maxlength="1024"${
            focused === 'password' && html` autofocus`
          }`,
        })}
        <button type="submit" class="primary wide">${login.submit}</button>
        <p class="note">${login.note(facts.host)}</p>
      </form>`;
}

interface Field {
  readonly name: string;
  readonly label: string;
  /** Shown below the field. */
  readonly error: string | false;
  /** Whether the title of the summary is about this field. */
  readonly invalid: boolean;
  readonly attributes: Html;
}

function field({ name, label, error, invalid, attributes }: Field): Html {
  const description = error ? `${name}-error` : invalid && 'problem-title';
  return html`<div class="field">
          <label for="${name}">${label}</label>
          <input id="${name}" name="${name}" required ${attributes}${
            description && html` aria-invalid="true" aria-describedby="${description}"`
          }>
          ${error && html`<p class="field-error" id="${name}-error">${error}</p>`}
        </div>`;
}

/** Focused when the page opens, so that a screen reader begins with it. */
function problemSummary({ problems, ...login }: Texts['login'], problem: LoginProblem): Html {
  return html`<div class="problem" role="alert" tabindex="-1" autofocus aria-labelledby="problem-title">
        <h2 id="problem-title">${problemTitle(problems, problem)}</h2>
        ${
          problem.kind === 'missing'
            ? html`<ul>
          ${problem.username && html`<li><a href="#username">${login.usernameMissing}</a></li>`}
          ${problem.password && html`<li><a href="#password">${login.passwordMissing}</a></li>`}
        </ul>`
            : html`<p>${problem.kind === 'tooMany' ? problems.tooMany.advice(problem.seconds) : problems[problem.kind].advice}</p>`
        }
      </div>`;
}

function problemTitle(problems: Texts['login']['problems'], problem: LoginProblem): Html | string {
  switch (problem.kind) {
    case 'missing':
      return problems.missing;
    case 'tooMany':
      return problems.tooMany.title;
    case 'cancelled':
    case 'unavailable':
    case 'invalid':
      return isolated(problems[problem.kind].title, problem.provider);
    case 'notForPerson':
      return problem.provider === undefined
        ? isolated(problems.notForLocal.title, problem.username)
        : isolated(problems.notForPerson.title, problem.username, problem.provider);
    case 'notPermitted':
      return isolated(problems.notPermitted.title, problem.username, problem.provider);
    default:
      return problems[problem.kind].title();
  }
}
