// What the claims of an identity provider say of a person: the mapping of its manifest, and what it lets in. Pure.

import { createHash } from 'node:crypto';
import { matchingGroups } from '../../oauth/access/group-filter.ts';
import type { AssertedPerson, AssertionRefusal } from '../../oauth/ports/upstream-provider.ts';
import type { IdentityProvider, OidcProvider } from '../../oauth/registry/identity-provider.ts';

/** More groups than these, after the globs, and the person does not sign in: a shortened list would hide a denial. */
const GROUPS_MAX = 500;
/** Also the longest that an address may be (RFC 5321 §4.5.3.1.3). */
const NAME_LENGTH_MAX = 254;
/** Printable ASCII (OpenID Connect Core §2). */
const SUBJECT = /^[\x20-\x7e]{1,255}$/;
/** Controls, ends of lines, halves of characters, and what reverses the direction of the text around it. */
const UNFIT = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u{202a}-\u{202e}\u{2066}-\u{2069}]/u;

export type Claims = Readonly<Record<string, unknown>>;

/** What a provider says of a person, before the rules of its manifest. */
export interface Facts {
  /** `usr_…`, from {@link subjectOf}. */
  readonly subject: string;
  readonly username: string;
  readonly displayName: string | undefined;
  readonly email: string | undefined;
  readonly isEmailVerified: boolean;
  /** By their names at the provider; `overage` where they are too many for the token. */
  readonly groups: readonly string[] | 'overage';
  /** Epoch milliseconds. */
  readonly authTime: number | undefined;
}

export type Mapped =
  | {
      readonly outcome: 'asserted';
      readonly person: AssertedPerson;
      readonly isOverage: boolean;
      readonly groupsLeftOut: number;
    }
  | { readonly outcome: 'refused'; readonly reason: AssertionRefusal; readonly username: string };

/** The `sub` of a person of a provider: `usr_` and 132 bits of SHA-256 over the parts. */
export function subjectOf(...parts: readonly string[]): string {
  return `usr_${createHash('sha256').update(parts.join('\0')).digest('base64url').slice(0, 22)}`;
}

/** The facts in the claims of an OpenID provider; undefined without a usable subject. */
export function factsOf(claims: Claims, provider: OidcProvider): Facts | undefined {
  const identity = claims[provider.subjectClaim];
  if (typeof identity !== 'string' || !SUBJECT.test(identity)) return undefined;
  const names = provider.claims;
  const email = addressIn(valueAt(claims, names.email));
  const verified = valueAt(claims, names.emailVerified);
  return {
    subject: subjectOf('upstream', provider.issuer, identity),
    username: nameIn(valueAt(claims, names.username)) ?? identity.slice(0, NAME_LENGTH_MAX),
    displayName: nameIn(valueAt(claims, names.displayName)),
    email,
    isEmailVerified: provider.assumeEmailVerified || verified === true || verified === 'true',
    groups: groupsIn(claims, names.groups),
    authTime: timeIn(claims.auth_time),
  };
}

/** Whether the claims hold what the manifest requires: at each claim one of its values, as text. */
export function hasRequiredClaims(claims: Claims, { requiredClaims }: Pick<OidcProvider, 'requiredClaims'>): boolean {
  return requiredClaims.every(({ claim, values }) => {
    const value = valueAt(claims, claim);
    return typeof value === 'string' && values.includes(value);
  });
}

/** Whether a claim that the mapping reads is absent. */
export function lacksMapped(claims: Claims, { claims: names, requiredClaims }: OidcProvider): boolean {
  const read = [...Object.values(names), ...requiredClaims.map(({ claim }) => claim)];
  return read.some((name) => valueAt(claims, name) === undefined);
}

/**
 * The claims of an ID token with those that only userinfo has: what is signed is never overridden.
 * @returns without the word of userinfo that an address is verified, where it speaks of another one
 */
export function completed(claims: Claims, userinfo: Claims, { claims: names }: Pick<OidcProvider, 'claims'>): Claims {
  const email = valueAt(claims, names.email);
  const isOfAnother = email !== undefined && email !== valueAt(userinfo, names.email);
  const [verified] = pathOf(names.emailVerified);
  const believed = Object.entries(userinfo).filter(([name]) => !isOfAnother || name !== verified);
  return Object.fromEntries([...believed, ...Object.entries(claims)]);
}

/**
 * The person, if the manifest lets in what the provider says.
 * @param isClaimedElsewhere whether another provider speaks for the addresses of a domain: here they are unverified,
 *   unless this one lists the domain as well
 */
export function admitPerson(
  facts: Facts,
  provider: IdentityProvider,
  isClaimedElsewhere: (domain: string) => boolean,
): Mapped {
  const { subject, username, displayName, authTime } = facts;
  const refused = (reason: AssertionRefusal): Mapped => ({ outcome: 'refused', reason, username });
  const domain = facts.email && domainOf(facts.email);
  const { emailDomains, groups: allowedGroups } = provider.allow;
  const isOurs = domain !== undefined && (emailDomains.includes(domain) || !isClaimedElsewhere(domain));
  const email = facts.isEmailVerified && isOurs ? facts.email : undefined;
  if (emailDomains.length > 0) {
    if (email === undefined || domain === undefined) return refused('email_not_verified');
    if (!emailDomains.includes(domain)) return refused('person_not_permitted');
  }
  const isOverage = facts.groups === 'overage';
  if (isOverage && allowedGroups.length > 0) return refused('groups_overage');
  const { include, prefix, allowCommas } = provider.groups;
  const matching = facts.groups === 'overage' ? [] : matchingGroups(facts.groups, include);
  // A program that joins groups by commas reads several groups in one whose name has a comma.
  const kept = matching.filter((group) => nameIn(group) !== undefined && (allowCommas || !group.includes(',')));
  if (kept.length > GROUPS_MAX) return refused('too_many_groups');
  const groups = kept.map((group) => `${prefix}${group}`);
  if (allowedGroups.length > 0 && !groups.some((group) => allowedGroups.includes(group))) {
    return refused('person_not_permitted');
  }
  const unverifiedEmail = email === undefined ? facts.email : undefined;
  const person = { subject, username, displayName, email, unverifiedEmail, groups, authTime };
  return { outcome: 'asserted', person, isOverage, groupsLeftOut: matching.length - kept.length };
}

/** A text that may be shown: without controls, at most 254 characters. Undefined for any other value. */
export function nameIn(value: unknown): string | undefined {
  if (typeof value !== 'string' || value === '' || value.length > NAME_LENGTH_MAX) return undefined;
  return UNFIT.test(value) ? undefined : value;
}

/** An address: a name with one `@`, and something on both sides of it. */
export function addressIn(value: unknown): string | undefined {
  const name = nameIn(value);
  return name !== undefined && /^[^@\s]+@[^@\s]+$/.test(name) ? name : undefined;
}

function domainOf(address: string): string {
  return address.slice(address.indexOf('@') + 1).toLowerCase();
}

/** Each once, in their order. */
function groupsIn(claims: Claims, name: string): Facts['groups'] {
  const value = valueAt(claims, name);
  if (value === undefined && isOverage(claims, name)) return 'overage';
  const listed: readonly unknown[] = Array.isArray(value) ? value : [value];
  return [...new Set(listed.filter((group): group is string => typeof group === 'string' && group !== ''))];
}

/** Entra marks too many groups by `hasgroups`, or by the claim's name among the distributed ones (Core §5.6.2). */
function isOverage(claims: Claims, name: string): boolean {
  const distributed = claims._claim_names;
  if (isObject(distributed) && Object.hasOwn(distributed, name)) return true;
  return claims.hasgroups === true || claims.hasgroups === 'true';
}

/** Seconds, which may have a fraction, to whole milliseconds. */
function timeIn(value: unknown): number | undefined {
  const time = typeof value === 'number' ? Math.floor(value * 1000) : Number.NaN;
  return Number.isSafeInteger(time) && time >= 0 ? time : undefined;
}

/** The value at a name or a JSON Pointer; undefined for none, and for null. */
function valueAt(claims: Claims, name: string): unknown {
  let value: unknown = claims;
  for (const key of pathOf(name)) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value ?? undefined;
}

function pathOf(name: string): readonly string[] {
  return name.startsWith('/') ? name.slice(1).split('/').map(unescaped) : [name];
}

/** RFC 6901 §4: `~1` first. */
function unescaped(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** Whether a value of JSON is an object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
