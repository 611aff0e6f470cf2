// The consent page: the client, the access it asks for, the destination of the answer, and the signed-in person. The
// page shows what clients and owners of resources write as text only, and no logo: loading one would disclose the visitor.

import { destinationName } from './destination.ts';
import { type Html, html } from './html.ts';
import { isolated } from './isolated.ts';
import { layout } from './layout.ts';
import type { PageFrame } from './page-frame.ts';
import type { Texts } from './texts.ts';

/** A scope that a client asks for. */
export interface ShownScope {
  readonly name: string;
  /** What its owner says of it, in the language of the page; undefined where that is nothing. */
  readonly description: string | undefined;
}

/** A resource as people are shown it. */
export interface ShownResource {
  readonly identifier: string;
  /** What its owner calls it, in the language of the page; undefined where that is nothing. */
  readonly name: string | undefined;
}

/** What a client asks for at some resources. */
export interface ShownAccess {
  readonly resources: readonly ShownResource[];
  /** The scopes that are asked for now. */
  readonly asked: readonly ShownScope[];
  /** The scopes of this request that were allowed before. */
  readonly given: readonly ShownScope[];
}

/** What the client learns of the person. */
export interface DisclosedPerson {
  readonly name: string | undefined;
  readonly address: string | undefined;
  /** The first ones. */
  readonly groups: readonly string[];
  /** How many groups there are beside those. */
  readonly moreGroups: number;
}

/** The input of the consent page. */
export interface ConsentPageFacts {
  readonly frame: PageFrame;
  readonly interactionId: string;
  readonly csrf: string;
  readonly person: { readonly displayName: string; readonly username: string };
  /** Whether another person may answer the request. */
  readonly maySwitch: boolean;
  readonly client: {
    readonly name: string;
    readonly redirectUri: string;
    readonly website: string | undefined;
    readonly privacyPolicy: string | undefined;
    readonly termsOfService: string | undefined;
  };
  readonly access: readonly ShownAccess[];
  /** Undefined where the client learns nothing but which account it is. */
  readonly disclosed: DisclosedPerson | undefined;
  /** Whether the client is for some people only. */
  readonly isLimited: boolean;
  /** What ends the refresh tokens of the client; undefined where it gets none. */
  readonly lastsUntil: 'sign_out' | 'revocation' | undefined;
}

/** The whole document. */
export function consentPage(facts: ConsentPageFacts): string {
  const { frame } = facts;
  const { texts } = frame.language;
  const { consent } = texts;
  const { client, person, access } = facts;
  const [only] = access.length === 1 ? access : [];
  const action = `${frame.basePath}/consent/${facts.interactionId}`;
  const csrf = html`<input type="hidden" name="csrf" value="${facts.csrf}">`;
  const title = consent.title(client.name);
  return layout({
    frame,
    title,
    body: html`
      <h1>${isolated(consent.title, client.name)}</h1>
      <form class="account" method="post" action="${action}">${csrf}
        <span class="avatar" aria-hidden="true">${initial(person.displayName)}</span>
        <span class="who">
          ${consent.signedInAs} <strong>${personName(person)}</strong>
          ${
            facts.maySwitch &&
            html`<button type="submit" class="link" name="decision" value="other_account">${consent.otherAccount}</button>`
          }
        </span>
      </form>
      ${accessSections(consent, access)}
      <dl class="facts">
        <dt>${consent.goesTo}</dt>
        ${destination(texts, client.redirectUri)}
        ${only && html`<dt>${consent.at}</dt>${only.resources.map((resource) => html`<dd>${resourceName(resource)}</dd>`)}`}
        ${facts.disclosed && disclosure(consent, facts.disclosed)}
        ${
          facts.lastsUntil &&
          html`<dt>${consent.howLong}</dt>
        <dd>${consent.lasts[facts.lastsUntil]}<span class="detail">${consent.lastsDetail[facts.lastsUntil]}
          <a href="${frame.basePath}/account/applications" target="_blank" rel="noopener noreferrer">${consent.revokeThere}</a></span></dd>`
        }
      </dl>
      ${facts.isLimited && html`<p class="note">${consent.onlySome}</p>`}
      <form class="choices" method="post" action="${action}">${csrf}
        <button type="submit" name="decision" value="deny">${consent.deny}</button>
        <button type="submit" class="primary" name="decision" value="allow">${consent.allow}</button>
      </form>
      ${clientLinks(consent, client)}`,
  });
}

/** A person's own name with the name of the account behind it, where they differ. */
export function personName({ displayName, username }: ConsentPageFacts['person']): string {
  return displayName === username ? username : `${displayName} (${username})`;
}

/** The letter of an avatar. */
export function initial(name: string): string {
  const [first = ''] = name;
  return first.toUpperCase();
}

function accessSections(consent: Texts['consent'], access: readonly ShownAccess[]): Html {
  const shown = (heading: string, scopesOf: (each: ShownAccess) => readonly ShownScope[], quiet: boolean) =>
    accessSection({ consent, heading, access, scopesOf, quiet });
  // The person is asked although nothing is new: show the whole access again.
  if (access.every(({ asked }) => asked.length === 0)) return shown(consent.wants, ({ given }) => given, false);
  const isWider = access.some(({ given }) => given.length > 0);
  return html`${shown(isWider ? consent.wantsMore : consent.wants, ({ asked }) => asked, false)}
      ${isWider && shown(consent.alreadyHas, ({ given }) => given, true)}`;
}

interface AccessSection {
  readonly consent: Texts['consent'];
  readonly heading: string;
  readonly access: readonly ShownAccess[];
  /** The scopes that this section is about. */
  readonly scopesOf: (access: ShownAccess) => readonly ShownScope[];
  readonly quiet: boolean;
}

/** The scopes; below the resource that they are for, where there are several. */
function accessSection({ consent, heading, access, scopesOf, quiet }: AccessSection): Html {
  const shown = access.filter((each) => scopesOf(each).length > 0);
  return html`<section>
        <h2>${heading}</h2>
        ${shown.map(
          (
            each,
          ) => html`${access.length > 1 && each.resources.map((resource) => html`<h3>${resourceName(resource)}</h3>`)}
        <ul class="${quiet ? 'scopes quiet' : 'scopes'}">${scopesOf(each).map((scope) => scopeItem(consent, scope))}
        </ul>`,
        )}
      </section>`;
}

/** A scope in words, as an item of a list. */
export function scopeItem(consent: Texts['consent'], { name, description }: ShownScope): Html {
  const ownMeaning = Object.hasOwn(consent.scopes, name) && consent.scopes[name];
  const meaning = description === undefined ? ownMeaning : html`<bdi>${description}</bdi>`;
  return html`
          <li>${meaning && html`<span class="means">${meaning}</span> `}<code>${name}</code></li>`;
}

/** Anyone may write any name, so the identifier, which is one owner's alone, always stands beside it. */
export function resourceName({ name, identifier }: ShownResource): Html {
  if (name === undefined) return html`${identifier}`;
  return html`<bdi>${name}</bdi> <span class="detail">${identifier}</span>`;
}

function disclosure(consent: Texts['consent'], { name, address, groups, moreGroups }: DisclosedPerson): Html {
  const names = groups.map((group, index) => html`${index > 0 && ', '}<bdi>${group}</bdi>`);
  return html`<dt>${consent.learns}</dt>
        ${name !== undefined && html`<dd><bdi>${name}</bdi></dd>`}
        ${address !== undefined && html`<dd><bdi>${address}</bdi></dd>`}
        ${names.length > 0 && html`<dd>${consent.groups}: ${names}${moreGroups > 0 && ` ${consent.andMore(moreGroups)}`}</dd>`}`;
}

/** The destination of the answer, in words a person can check. An address without https may be any program. */
function destination(texts: Texts, redirectUri: string): Html {
  const name = html`<strong>${destinationName(texts.destination, redirectUri)}</strong>`;
  if (redirectUri.startsWith('https:')) return html`<dd>${name}</dd>`;
  return html`<dd>${name}<span class="detail">${texts.consent.startedByYou}</span></dd>`;
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
