// The page of the clients with access to an account: what each may do and where, and when it was used; and the question before the
// access of one is revoked. What clients and owners of resources write is text only.

import { identifierList, type ShownGrant, scopeInWords, shortName } from '../pages/consent-page.ts';
import { type Html, html } from '../pages/html.ts';
import { isolated } from '../pages/isolated.ts';
import type { Texts } from '../pages/texts.ts';
import type { FormFields } from './account-flow.ts';
import { type AccountPageContent, accountLayout, askButton, questionPage } from './account-layout.ts';
import { dayIn } from './point-in-time.ts';

/** One client. */
export interface ShownApplication {
  /** Undefined where it is not registered now. */
  readonly client:
    | {
        readonly name: string;
        readonly clientId: string;
        /** How long after a revocation an API may accept its tokens that does not ask this server; 0 for not at all. */
        readonly livesOnSeconds: number;
      }
    | undefined;
  /** Whether its people are not asked. */
  readonly isLetIn: boolean;
  /** What the person allowed. */
  readonly access: readonly ShownGrant[];
  /** Epoch milliseconds; undefined where it has had no token. */
  readonly firstUsed: number | undefined;
  readonly lastUsed: number | undefined;
  /** The uid of the client, also of one that is not registered now. */
  readonly clientUid: string;
}

/** The input of the page. */
export interface ApplicationsFacts extends Omit<AccountPageContent, 'body'> {
  /** Those of this page. */
  readonly applications: readonly ShownApplication[];
  /** From 1. */
  readonly page: number;
  readonly pages: number;
  /** The client whose access was revoked just now. */
  readonly revoked: string | undefined;
}

/** The whole document. */
export function applicationsPage({ applications, page, pages, revoked, ...content }: ApplicationsFacts): string {
  const { texts } = content.frame.language;
  const { account } = texts;
  const target = `${content.frame.basePath}${content.path}`;
  const items = applications.map((application, index) =>
    applicationItem(texts, application, { target, id: `application-${index}` }),
  );
  const body = html`
      ${revoked !== undefined && html`<p class="notice" role="status">${isolated(account.revoked, revoked)}</p>`}
      ${
        items.length === 0
          ? html`<p>${account.noApplications}</p>`
          : html`<ul class="entries">${items}
      </ul>`
      }
      ${pages > 1 && pageLinks(account, { target, page, pages })}`;
  return accountLayout({ ...content, body });
}

/** The input of the question. */
export interface RevocationQuestion extends Omit<AccountPageContent, 'body'> {
  readonly application: ShownApplication;
  readonly fields: FormFields;
}

/** The whole document. */
export function revokePage({ application, ...page }: RevocationQuestion): string {
  const { texts } = page.frame.language;
  const { account, consent } = texts;
  const { client, access } = application;
  const livesOnSeconds = client?.livesOnSeconds ?? 0;
  const places = access.flatMap(({ resources }) => resources).map(shortName);
  const body = html`<div class="entry facts">${applicationName(texts, application, 'application')}
          ${places.length > 0 && html`<p class="detail">${consent.at}: ${places.map((place, at) => [at > 0 && ', ', place])}</p>`}
          <details><summary>${consent.details}</summary>${grantLists(texts, access)}
          ${identifierList(consent, access)}
          ${usedOn(texts, application)}</details>
      </div>
      <p>${account.revokeDetail}</p>
      ${livesOnSeconds > 0 && html`<p>${account.livesOn(livesOnSeconds)}</p>`}`;
  return questionPage({ ...page, title: account.questions.revoke, body, label: account.revoke });
}

function applicationItem(
  texts: Texts,
  application: ShownApplication,
  { target, id }: { readonly target: string; readonly id: string },
): Html {
  const { consent, account } = texts;
  const label = account.revoke;
  const identifiers = identifierList(consent, application.access);
  return html`
        <li class="entry">${applicationName(texts, application, id)}
          ${grantLists(texts, application.access)}
          ${identifiers && html`<details><summary>${consent.details}</summary>${identifiers}</details>`}
          ${usedOn(texts, application)}
          ${askButton({ target, action: 'revoke', subject: application.clientUid, label, describedBy: id })}
        </li>`;
}

/** @param id of the name */
function applicationName({ account }: Texts, { client, isLetIn }: ShownApplication, id: string): Html {
  return html`
          <h2 id="${id}">${client === undefined ? account.unknownApplication : html`<bdi>${client.name}</bdi>`}</h2>
          <p class="detail">${client === undefined ? account.unknownDetail : html`<code>${client.clientId}</code>`}</p>
          ${isLetIn && html`<p class="detail">${account.letInByDefault}</p>`}`;
}

function grantLists({ account, consent }: Texts, access: readonly ShownGrant[]): Html | undefined {
  if (access.length === 0) return undefined;
  return html`<h3>${account.mayDo}</h3>${access.map(
    ({ resources, scopes }) => html`
          ${resources.map((resource) => html`<h4>${shortName(resource)}</h4>`)}
          <ul class="scopes">${scopes.map((scope) => html`<li>${scopeInWords(consent, scope)}</li>`)}</ul>`,
  )}`;
}

function usedOn(texts: Texts, { firstUsed, lastUsed }: ShownApplication): Html {
  const { account } = texts;
  if (firstUsed === undefined || lastUsed === undefined) return html`<p class="detail">${account.neverUsed}</p>`;
  return html`<p class="detail">${account.firstUsed}: ${dayIn(texts, firstUsed)}</p>
          <p class="detail">${account.lastUsed}: ${dayIn(texts, lastUsed)}</p>`;
}

function pageLinks(
  account: Texts['account'],
  { target, page, pages }: { readonly target: string; readonly page: number; readonly pages: number },
): Html {
  return html`<nav aria-label="${account.pageOf(page, pages)}"><ul class="links">
        ${page > 1 && html`<li><a rel="prev" href="${target}?page=${page - 1}">${account.previous}</a></li>`}
        <li>${account.pageOf(page, pages)}</li>
        ${page < pages && html`<li><a rel="next" href="${target}?page=${page + 1}">${account.next}</a></li>`}
      </ul></nav>`;
}
