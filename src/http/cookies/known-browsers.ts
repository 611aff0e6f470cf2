// The cookie by which a browser proves that a person has signed in there before. Such a browser has limits of its own
// (`login-limit.ts`), so guesses from elsewhere do not keep the person out of it. The cookie is sealed, and no store
// knows it: a new password or a watermark makes it void.

import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock, NamedPerson, Random } from '../../oauth/ports/ports.ts';
import { randomId } from '../../oauth/values/random-id.ts';
import { type CookieForm, cookieForm } from './cookie-form.ts';
import { SealedTexts } from './sealed-text.ts';

/** The longest that browsers keep a cookie. */
const LIFETIME_SECONDS = 400 * 86_400;
/** The people of one browser, the newest: a cookie of about one KiB. */
const MOST_PEOPLE = 5;
const MOST_CHARACTERS = 4096;
const ID_BYTES = 16;
const NO_BINDING = new Uint8Array();

/** One person who has signed in at a browser. */
export interface KnownPerson {
  readonly subject: string;
  /** {@link NamedPerson.credential} as it was then. */
  readonly credential: string;
  /** Of that sign-in, epoch milliseconds. */
  readonly authTime: number;
  /** Random; the name of this browser's own counters for this person. */
  readonly id: string;
}

export interface KnownBrowsersOptions {
  readonly issuer: string;
  /** The first seals, all open; at least one. */
  readonly peppers: readonly Uint8Array[];
  readonly clock: Clock;
  readonly random: Random;
}

/** Reads and writes the cookie. */
export class KnownBrowsers {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #texts: SealedTexts;
  readonly #cookie: string;
  readonly #attributes: CookieForm['attributes'];

  constructor({ issuer, peppers, clock, random }: KnownBrowsersOptions) {
    this.#clock = clock;
    this.#random = random;
    this.#texts = new SealedTexts({ purpose: `grantry known browser v1\0${issuer}`, peppers, random });
    const { prefix, attributes } = cookieForm(issuer);
    this.#cookie = `${prefix}grantry-known`;
    this.#attributes = { ...attributes, maxAge: LIFETIME_SECONDS };
  }

  /**
   * The last sign-in of this person at this browser within 400 days; undefined where there is none, or where the
   * person's credential is another one since. The caller compares watermarks.
   * @param person undefined for a name without a person: the cookie is opened all the same, which takes as long
   */
  find(request: FastifyRequest, person: NamedPerson | undefined): KnownPerson | undefined {
    return this.#people(request).find(
      (known) => known.subject === person?.subject && known.credential === person.credential,
    );
  }

  /**
   * Makes this browser known to the person who has just signed in; of more than five people the oldest is dropped.
   * @param authTime epoch milliseconds
   */
  remember(
    { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
    { subject, credential }: NamedPerson,
    authTime: number,
  ): void {
    if (credential === undefined) return;
    const newest: KnownPerson = { subject, credential, authTime, id: randomId(this.#random, ID_BYTES) };
    const others = this.#people(request).filter((known) => known.subject !== subject);
    const people = [newest, ...others].slice(0, MOST_PEOPLE);
    reply.setCookie(this.#cookie, this.#texts.seal(JSON.stringify(people), NO_BINDING), this.#attributes);
  }

  /** Newest first. */
  #people({ cookies }: FastifyRequest): readonly KnownPerson[] {
    const sealed = cookies[this.#cookie];
    if (sealed === undefined || sealed.length > MOST_CHARACTERS) return [];
    const text = this.#texts.open(sealed, NO_BINDING);
    if (text === undefined) return [];
    const oldest = this.#clock.now() - LIFETIME_SECONDS * 1000;
    return (JSON.parse(text) as readonly KnownPerson[]).filter(({ authTime }) => authTime > oldest);
  }
}
