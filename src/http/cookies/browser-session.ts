// The two cookies of a browser: a random value, set with the first login page (a sealed request is bound to it), and
// the session after sign-in. The store holds only the hash of a session cookie. The cookies of unanswered attempts are
// in `interaction-taker.ts`.

import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Audit } from '../../oauth/ports/audit.ts';
import type { NewSession, Session, SessionStore } from '../../oauth/ports/login-stores.ts';
import type { PendingLogout } from '../../oauth/ports/logout-store.ts';
import type { People, Person, Random, ResourceOwner } from '../../oauth/ports/ports.ts';
import { SHARDS, shardOfPerson } from '../../oauth/values/shard.ts';
import { browserFamily } from '../server/browser-family.ts';
import type { Exchange } from '../server/endpoint.ts';
import { type CookieForm, cookieForm } from './cookie-form.ts';

const IDLE_LIFETIME = 3_600_000;
const ABSOLUTE_LIFETIME = 12 * 3_600_000;
/** 256 bits. */
const VALUE_BYTES = 32;
const VALUE = /^[A-Za-z0-9_-]{43}$/;
/** The shard of the person, and a random value. */
const SESSION_VALUE = /^([0-9]{3})\.[A-Za-z0-9_-]{43}$/;

/** A session, and the cookie value that proves it. */
export interface SignedIn {
  readonly session: Session;
  /** As known now. */
  readonly person: Person;
  /** For {@link FormTokens}; never stored, never logged. */
  readonly cookie: string;
}

/** The facts of a sign-in at an identity provider; none of one by a password. */
export type UpstreamSignIn = Pick<Session, 'provider' | 'upstreamAuthTime'>;

export interface BrowserSessionsOptions {
  readonly issuer: string;
  readonly sessions: SessionStore;
  readonly owners: People;
  readonly random: Random;
  readonly audit: Audit;
  /** Called with the logouts of clients that the end of a session makes pending. */
  readonly onPendingLogouts: (logouts: readonly PendingLogout[]) => void;
}

/** Reads and writes the cookies and the sessions behind them. */
export class BrowserSessions {
  readonly #sessions: SessionStore;
  readonly #owners: People;
  readonly #random: Random;
  readonly #audit: Audit;
  readonly #onPendingLogouts: BrowserSessionsOptions['onPendingLogouts'];
  readonly #attributes: CookieForm['attributes'];
  readonly #sessionCookie: string;
  readonly #browserCookie: string;

  constructor({ issuer, sessions, owners, random, audit, onPendingLogouts }: BrowserSessionsOptions) {
    this.#sessions = sessions;
    this.#owners = owners;
    this.#random = random;
    this.#audit = audit;
    this.#onPendingLogouts = onPendingLogouts;
    const { prefix, attributes } = cookieForm(issuer);
    this.#attributes = attributes;
    this.#sessionCookie = `${prefix}grantry-session`;
    this.#browserCookie = `${prefix}grantry-browser`;
  }

  /**
   * The session of this browser, unless the kill switch of its person holds. A session of a person who may hold nothing
   * now is not ended: a person who is absent by mistake finds it again.
   */
  async current(request: FastifyRequest): Promise<SignedIn | undefined> {
    const cookie = this.#sessionCookieOf(request);
    if (cookie === undefined) return undefined;
    const session = await this.#sessions.use(sessionIdOf(cookie));
    if (session === undefined) return undefined;
    const person = await this.#owners.find(session.subject);
    if (person === undefined) return undefined;
    return session.authTime > this.#owners.revokedBefore(person) ? { session, person, cookie } : undefined;
  }

  /**
   * Starts a session under a new id, regardless of the cookie the browser sent, and ends the session it had, if any. One
   * of the same person hands its `sid` on: clients notice nothing.
   * @returns `outdated`, and nothing changes, if the credential by which the person signed in is not the current one
   */
  async begin(
    { request, reply, address }: Pick<Exchange, 'request' | 'reply' | 'address'>,
    owner: ResourceOwner,
    upstream: UpstreamSignIn = {},
  ): Promise<Session | 'outdated'> {
    const formerCookie = this.#sessionCookieOf(request);
    const cookie = `${shardOfPerson(owner.subject)}.${this.#newValue()}`;
    const begun: NewSession = {
      sessionId: sessionIdOf(cookie),
      sid: this.#newValue(),
      subject: owner.subject,
      username: owner.username,
      displayName: owner.displayName,
      idleLifetime: IDLE_LIFETIME,
      absoluteLifetime: ABSOLUTE_LIFETIME,
      address,
      browser: browserFamily(request.headers),
      provider: upstream.provider,
      upstreamAuthTime: upstream.upstreamAuthTime,
    };
    const former = formerCookie === undefined ? undefined : await this.#sessions.use(sessionIdOf(formerCookie));
    const succeeds = former?.subject === owner.subject ? former : undefined;
    const session = await this.#sessions.create(begun, owner.credential, succeeds);
    if (session === 'outdated') return session;
    if (succeeds !== undefined) this.#recordEnd(succeeds, 'signed_in_again');
    else if (former !== undefined) await this.#end(former, 'signed_in_again');
    this.#write(reply, this.#sessionCookie, cookie);
    return session;
  }

  /**
   * Signs this browser out.
   * @param reason a slug for the audit line
   */
  async end(reply: FastifyReply, { session }: SignedIn, reason: string): Promise<void> {
    await this.#end(session, reason);
    reply.clearCookie(this.#sessionCookie, this.#attributes);
  }

  /**
   * Ends the session with this `sid`, in whichever browser it is, or what one that has expired has left.
   * @param reason a slug for the audit line
   */
  async endLogin({ subject, sid }: Pick<Session, 'subject' | 'sid'>, reason: string): Promise<void> {
    const active = (await this.#sessions.list(subject)).find((session) => session.sid === sid);
    if (active !== undefined) await this.#end(active, reason);
    else
      this.#onPendingLogouts(await this.#sessions.end({ sessionId: `${shardOfPerson(subject)}.${sid}`, subject, sid }));
  }

  /** The active ones among the person's newest sessions, the newest first. @param most the most sessions that are read */
  async list({ session: { subject } }: SignedIn, most: number): Promise<readonly Session[]> {
    const sessions = await this.#sessions.list(subject, most);
    return sessions.toSorted((one, other) => other.authTime - one.authTime);
  }

  /** Ends a session in another browser. @param reason a slug for the audit line */
  async endElsewhere(session: Session, reason: string): Promise<void> {
    await this.#end(session, reason);
  }

  /**
   * Ends all sessions of the person who is signed in here, and signs this browser out.
   * @param reason a slug for the audit line
   */
  async endAll(reply: FastifyReply, { session: { subject } }: SignedIn, reason: string): Promise<void> {
    await this.#sessions.endAll(subject);
    this.#audit.record({ type: 'sessions.ended_all', subject, reason });
    reply.clearCookie(this.#sessionCookie, this.#attributes);
  }

  /** The value that identifies this browser; undefined before its first login page. */
  browser(request: FastifyRequest): string | undefined {
    return readCookie(request, this.#browserCookie);
  }

  /** As {@link browser}, but a browser that has no value gets one. */
  ensureBrowser(request: FastifyRequest, reply: FastifyReply): string {
    const known = this.browser(request);
    if (known !== undefined) return known;
    const value = this.#newValue();
    this.#write(reply, this.#browserCookie, value);
    return value;
  }

  async #end(session: Session, reason: string): Promise<void> {
    this.#onPendingLogouts(await this.#sessions.end(session));
    this.#recordEnd(session, reason);
  }

  #recordEnd({ subject }: Session, reason: string): void {
    this.#audit.record({ type: 'session.ended', subject, reason });
  }

  #sessionCookieOf(request: FastifyRequest): string | undefined {
    const value = request.cookies[this.#sessionCookie];
    const [, shard] = SESSION_VALUE.exec(value ?? '') ?? [];
    return shard !== undefined && SHARDS[Number(shard)] === shard ? value : undefined;
  }

  #newValue(): string {
    return Buffer.from(this.#random.bytes(VALUE_BYTES)).toString('base64url');
  }

  #write(reply: FastifyReply, name: string, value: string): void {
    reply.setCookie(name, value, this.#attributes);
  }
}

function readCookie(request: FastifyRequest, name: string): string | undefined {
  const value = request.cookies[name];
  return value !== undefined && VALUE.test(value) ? value : undefined;
}

function sessionIdOf(cookie: string): string {
  return `${cookie.slice(0, 3)}.${createHash('sha256').update(`grantry session\0${cookie}`).digest('base64url')}`;
}
