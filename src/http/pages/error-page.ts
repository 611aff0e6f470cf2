// The error page: what happened, what the person can do, and the request id to quote.
// It never shows internals nor any text from the request. Its one link is the answer of the server to a registered address, the
// website of a client, or the account page.

import { answerLink } from './answer-link.ts';
import { type Html, html } from './html.ts';
import { layout } from './layout.ts';
import type { PageFrame } from './page-frame.ts';
import type { ErrorText, Texts } from './texts.ts';

/** The input of an error page. */
export interface ErrorPageFacts {
  readonly frame: PageFrame;
  /** The HTTP status it is sent with. */
  readonly status: number;
  /** The slug of the error; chooses the wording. */
  readonly reason: string;
  readonly requestId: string;
  /**
   * The address of an answer that the person has to follow by hand: a registered redirect URI with the error. Undefined
   * for a page without a link.
   */
  readonly answer?: string | undefined;
  /** Where the person can begin again: the website of a client that is served, or the path of a page of ours. */
  readonly start?: string | undefined;
}

const CLIENT_REASONS: ReadonlySet<string> = new Set(['client_unknown', 'client_refused', 'client_gone']);
const APPLICATION_REASONS: ReadonlySet<string> = new Set([
  'client_id_missing',
  'client_id_duplicate',
  'redirect_uri_missing',
  'redirect_uri_duplicate',
  'id_token_hint_invalid',
  'client_id_mismatch',
  'post_logout_redirect_uri_without_client',
  'request_too_long_for_upstream',
]);

/** The whole document. */
export function errorPage({ frame, status, reason, requestId, answer, start }: ErrorPageFacts): string {
  const { texts } = frame.language;
  const next = isAboutAccount(reason) ? `${frame.basePath}/account` : start;
  const { title, message, advice } =
    answer === undefined ? errorText(texts.error, status, reason) : texts.error.notAsserted;
  return layout({
    frame,
    title,
    body: html`
      <h1>${title}</h1>
      <p>${message}</p>
      <p>${advice}</p>
      ${answer === undefined ? next !== undefined && startLink(texts, next) : answerLink(texts, answer)}
      <p class="request-id">${texts.error.requestId} <code>${requestId}</code></p>`,
  });
}

function startLink(texts: Texts, address: string): Html {
  if (address.startsWith('/')) return html`<p><a href="${address}">${texts.account.titles.overview}</a></p>`;
  const { protocol, host, origin } = new URL(address);
  return html`<p><a href="${address}" rel="noreferrer">${texts.error.goTo(protocol === 'https:' ? host : origin)}</a></p>`;
}

function isAboutAccount(reason: string): boolean {
  return reason.startsWith('account_');
}

/** The texts of an error. @param status that of the answer @param reason the slug of the error */
export function errorText(errors: Texts['error'], status: number, reason: string): ErrorText {
  if (
    reason === 'redirect_uri_mismatch' ||
    reason === 'redirect_uri_gone' ||
    reason === 'post_logout_redirect_uri_mismatch'
  )
    return errors.redirectUri;
  if (CLIENT_REASONS.has(reason)) return errors.client;
  if (APPLICATION_REASONS.has(reason)) return errors.application;
  if (reason.startsWith('interaction_')) return errors.startAgain;
  if (isAboutAccount(reason)) return errors.account;
  if (status === 429) return errors.tooMany;
  if (status === 503) return errors.unavailable;
  if (status === 404) return errors.notFound;
  return status >= 500 ? errors.internal : errors.badRequest;
}
