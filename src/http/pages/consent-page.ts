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

/** The same scopes at some resources; at none where they are about the person. */
export interface ShownGrant {
  readonly resources: readonly ShownResource[];
  readonly scopes: readonly ShownScope[];
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
    readonly id: string;
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
  const hidden = html`<input type="hidden" name="csrf" value="${facts.csrf}"><input type="hidden" name="client" value="${client.id}">`;
  const title = consent.title(client.name);
  return layout({
    frame,
    title,
    body: html`
      <h1>${isolated(consent.title, client.name)}</h1>
      <form class="account" method="post" action="${action}">${hidden}
        <span class="avatar" aria-hidden="true">${initial(person.displayName)}</span>
        <span class="who">
          ${consent.signedInAs} <strong>${personName(person)}</strong>
          ${
            facts.maySwitch &&
            html`<button type="submit" class="link" name="decision" value="other_account">${consent.otherAccount}</button>`
          }
        </span>
      </form>
      ${accessSections(facts)}
      <dl class="facts">
        <dt>${consent.goesTo}</dt>
        ${destination(texts, client.redirectUri)}
        ${
          only !== undefined &&
          only.resources.length > 0 &&
          html`<dt>${consent.at}</dt>${only.resources.map((resource) => html`<dd>${shortName(resource)}</dd>`)}`
        }
        ${facts.lastsUntil && html`<dt>${consent.howLong}</dt><dd>${consent.lasts[facts.lastsUntil]}</dd>`}
      </dl>
      ${facts.isLimited && html`<p class="note">${consent.onlySome}</p>`}
      <form class="choices" method="post" action="${action}">${hidden}
        <button type="submit" name="decision" value="deny">${consent.deny}</button>
        <button type="submit" class="primary" name="decision" value="allow">${consent.allow}</button>
      </form>
      ${details(facts)}
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

function accessSections({ frame, access, disclosed }: ConsentPageFacts): Html {
  const { consent } = frame.language.texts;
  const shown = (heading: string, scopesOf: (each: ShownAccess) => readonly ShownScope[], quiet: boolean) =>
    accessSection({ consent, heading, access, disclosed, scopesOf, quiet });
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
  readonly disclosed: DisclosedPerson | undefined;
  /** The scopes that this section is about. */
  readonly scopesOf: (access: ShownAccess) => readonly ShownScope[];
  readonly quiet: boolean;
}

/** The scopes; below the resource that they are for, where there are several. */
function accessSection({ consent, heading, access, disclosed, scopesOf, quiet }: AccessSection): Html {
  // Scopes without a resource, the claims of the person, stand above the first heading.
  const shown = access
    .filter((each) => scopesOf(each).length > 0)
    .toSorted((one, other) => Math.min(one.resources.length, 1) - Math.min(other.resources.length, 1));
  return html`<section>
        <h2>${heading}</h2>
        ${shown.map(
          (each) => html`${access.length > 1 && each.resources.map((resource) => html`<h3>${shortName(resource)}</h3>`)}
        <ul class="${quiet ? 'scopes quiet' : 'scopes'}">${scopesOf(each).map(
          (scope) => html`
          <li>${claimLine(consent, scope, disclosed) ?? scopeInWords(consent, scope)}</li>`,
        )}
        </ul>`,
        )}
      </section>`;
}

/** What a scope means, else its name. */
export function scopeInWords(consent: Texts['consent'], scope: ShownScope): Html {
  return meaningOf(consent, scope) ?? html`<code>${scope.name}</code>`;
}

/** Undefined where neither the owner nor a standard says what the scope means. */
function meaningOf(consent: Texts['consent'], { name, description }: ShownScope): Html | undefined {
  if (description !== undefined) return html`<bdi>${description}</bdi>`;
  return Object.hasOwn(consent.scopes, name) ? html`${consent.scopes[name]}` : undefined;
}

/** A scope of claims as the value that the client learns; undefined for another scope, and where there is no value. */
function claimLine(
  { claims, andMore }: Texts['consent'],
  { name, description }: ShownScope,
  disclosed: DisclosedPerson | undefined,
): Html | undefined {
  if (disclosed === undefined || description !== undefined) return undefined;
  const { name: person, address, groups, moreGroups } = disclosed;
  if (name === 'profile' && person !== undefined) return html`${claims.name}: <bdi>${person}</bdi>`;
  if (name === 'email' && address !== undefined) return html`${claims.address}: <bdi>${address}</bdi>`;
  if (name !== 'groups' || groups.length === 0) return undefined;
  const names = groups.map((group, index) => html`${index > 0 && ', '}<bdi>${group}</bdi>`);
  return html`${claims.groups}: ${names}${moreGroups > 0 && ` ${andMore(moreGroups)}`}`;
}

/** The name that the owner gives the resource, else its identifier. */
export function shortName({ name, identifier }: ShownResource): Html {
  return name === undefined ? html`${identifier}` : html`<bdi>${name}</bdi>`;
}

/** Details beyond the decision: how access ends, the identifiers behind names, and the scopes behind descriptions. */
function details({ frame, access, lastsUntil }: ConsentPageFacts): Html | undefined {
  const { consent } = frame.language.texts;
  const grants = access.map(({ resources, asked, given }) => ({ resources, scopes: [...asked, ...given] }));
  const list = identifierList(consent, grants);
  if (lastsUntil === undefined && list === undefined) return undefined;
  return html`<details>
        <summary>${consent.details}</summary>
        ${
          lastsUntil &&
          html`<p>${consent.lastsDetail[lastsUntil]}
          <a href="${frame.basePath}/account/applications" target="_blank" rel="noopener noreferrer">${consent.revokeThere}</a></p>`
        }
        ${list}
      </details>`;
}

/**
 * The identifiers behind names, and the scopes behind descriptions: anyone may write any name, and an identifier is one owner's alone.
 * Undefined where there are none.
 */
export function identifierList(consent: Texts['consent'], grants: readonly ShownGrant[]): Html | undefined {
  const named = grants.flatMap(({ resources }) => resources).filter(({ name }) => name !== undefined);
  const scopes = grants.flatMap((grant) => grant.scopes);
  const described = scopes.filter((scope) => meaningOf(consent, scope) !== undefined);
  if (named.length + described.length === 0) return undefined;
  return html`<ul>${named.map(
    ({ name, identifier }) => html`<li><bdi>${name}</bdi> <span class="detail">${identifier}</span></li>`,
  )}${described.map((scope) => html`<li>${meaningOf(consent, scope)} <code>${scope.name}</code></li>`)}
        </ul>`;
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
