// The consent page: the client, the scope it asks for, the destination of the answer, and the signed-in person. The
// page shows a client's own data as text only, and no logo: loading one would disclose the visitor to the client.

import { destinationName } from './destination.ts';
import { type Html, html } from './html.ts';
import { isolated } from './isolated.ts';
import { layout } from './layout.ts';
import { pageTexts, type Texts } from './texts.ts';

/** The input of the consent page. */
export interface ConsentPageFacts {
  /** The path of the issuer, '' or '/…' without a slash at its end. */
  readonly basePath: string;
  readonly interactionId: string;
  readonly csrf: string;
  readonly person: { readonly displayName: string; readonly username: string };
  readonly client: {
    readonly name: string;
    readonly redirectUri: string;
    readonly website: string | undefined;
    readonly privacyPolicy: string | undefined;
    readonly termsOfService: string | undefined;
  };
  /** The scopes that are asked for now. */
  readonly asked: readonly string[];
  /** The scopes of this request that were allowed before. */
  readonly given: readonly string[];
  /** The resources the access works at. */
  readonly audiences: readonly string[];
  /** Whether the client will hold a refresh token. */
  readonly lasts: boolean;
}

/** The whole document. */
export function consentPage(facts: ConsentPageFacts): string {
  const texts = pageTexts();
  const { consent } = texts;
  const { client, person } = facts;
  const action = `${facts.basePath}/consent/${facts.interactionId}`;
  const csrf = html`<input type="hidden" name="csrf" value="${facts.csrf}">`;
  const title = consent.title(client.name);
  return layout({
    texts,
    basePath: facts.basePath,
    title,
    body: html`
      <h1>${isolated(consent.title, client.name)}</h1>
      <form class="account" method="post" action="${action}">${csrf}
        <span class="avatar" aria-hidden="true">${initial(person.displayName)}</span>
        <span class="who">
          ${consent.signedInAs} <strong>${personName(person)}</strong>
          <button type="submit" class="link" name="decision" value="other_account">${consent.otherAccount}</button>
        </span>
      </form>
      ${scopeSections(consent, facts)}
      <dl class="facts">
        <dt>${consent.goesTo}</dt>
        ${destination(consent, client.redirectUri)}
        ${
          facts.audiences.length > 0 &&
          html`<dt>${consent.at}</dt>${facts.audiences.map((audience) => html`<dd>${audience}</dd>`)}`
        }
        ${
          facts.lasts &&
          html`<dt>${consent.howLong}</dt>
        <dd>${consent.untilRevoked}<span class="detail">${consent.untilRevokedDetail}</span></dd>`
        }
      </dl>
      <form class="choices" method="post" action="${action}">${csrf}
        <button type="submit" name="decision" value="deny">${consent.deny}</button>
        <button type="submit" class="primary" name="decision" value="allow">${consent.allow}</button>
      </form>
      ${clientLinks(consent, client)}`,
  });
}

function personName({ displayName, username }: ConsentPageFacts['person']): string {
  return displayName === username ? username : `${displayName} (${username})`;
}

function initial(name: string): string {
  const [first = ''] = name;
  return first.toUpperCase();
}

function scopeSections(consent: Texts['consent'], { asked, given }: ConsentPageFacts): Html {
  // The person is asked although no scope is new: show the whole scope again.
  if (asked.length === 0) return scopeSection({ consent, heading: consent.wants, scopes: given, quiet: false });
  return html`${scopeSection({
    consent,
    heading: given.length > 0 ? consent.wantsMore : consent.wants,
    scopes: asked,
    quiet: false,
  })}
      ${given.length > 0 && scopeSection({ consent, heading: consent.alreadyHas, scopes: given, quiet: true })}`;
}

interface ScopeSection {
  readonly consent: Texts['consent'];
  readonly heading: string;
  readonly scopes: readonly string[];
  readonly quiet: boolean;
}

function scopeSection({ consent, heading, scopes, quiet }: ScopeSection): Html {
  return html`<section>
        <h2>${heading}</h2>
        <ul class="${quiet ? 'scopes quiet' : 'scopes'}">${scopes.map((scope) => scopeItem(consent, scope))}
        </ul>
      </section>`;
}

function scopeItem(consent: Texts['consent'], scope: string): Html {
  const meaning = Object.hasOwn(consent.scopes, scope) && consent.scopes[scope];
  return html`
          <li>${meaning && html`<span class="means">${meaning}</span> `}<code>${scope}</code></li>`;
}

/** The destination of the answer, in words a person can check. An address without https may be any program. */
function destination(consent: Texts['consent'], redirectUri: string): Html {
  const name = html`<strong>${destinationName(pageTexts().destination, redirectUri)}</strong>`;
  if (redirectUri.startsWith('https:')) return html`<dd>${name}</dd>`;
  return html`<dd>${name}<span class="detail">${consent.startedByYou}</span></dd>`;
}

function clientLinks(consent: Texts['consent'], client: ConsentPageFacts['client']): Html | undefined {
  const links = [
    [consent.website, client.website],
    [consent.privacy, client.privacyPolicy],
    [consent.terms, client.termsOfService],
  ].filter((link): link is [string, string] => link[1]?.startsWith('https://') === true);
  if (links.length === 0) return undefined;
  return html`<ul class="links">${links.map(
    ([label, href]) => html`<li><a href="${href}" target="_blank" rel="noopener noreferrer">${label}</a></li>`,
  )}</ul>`;
}
