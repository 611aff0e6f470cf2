// Takes a decided interaction before the browser is redirected to the client. An attempt that got no answer of the
// store may have taken it: a cookie of this interaction keeps the attempt id, and the browser's retry takes the
// interaction over.

import type { FastifyRequest } from 'fastify';
import type { Interaction, InteractionStore } from '../../oauth/ports/login-stores.ts';
import type { Random } from '../../oauth/ports/ports.ts';
import { randomId } from '../../oauth/values/random-id.ts';
import type { Exchange } from '../server/endpoint.ts';
import { type CookieForm, cookieForm } from './cookie-form.ts';

const TRY_BYTES = 16;
/** Unanswered attempts that are kept, the latest ones: a cookie below 1 KB. Any of them may have reached the store. */
const MOST_TRIES = 40;
const TRIES = /^[A-Za-z0-9_-]{22}(?:\.[A-Za-z0-9_-]{22}){0,39}$/;
/** Cookies of one browser: any site can send it here with made-up ids, and more could exceed the header limit. */
const MOST_COOKIES = 5;
/** 32 random bytes; no other text gets into the name of a cookie. */
const INTERACTION_ID = /^[A-Za-z0-9_-]{43}$/;
const NAMING_CHARACTERS = 8;
/** As long as an interaction may live, in seconds. */
const COOKIE_LIFETIME = 600;

export class InteractionTaker {
  readonly #interactions: InteractionStore;
  readonly #random: Random;
  readonly #attributes: CookieForm['attributes'];
  readonly #cookiePrefix: string;

  constructor({ issuer, interactions, random }: { issuer: string; interactions: InteractionStore; random: Random }) {
    this.#interactions = interactions;
    this.#random = random;
    const { prefix, attributes } = cookieForm(issuer);
    this.#attributes = attributes;
    this.#cookiePrefix = `${prefix}grantry-tries-`;
  }

  /** As {@link InteractionStore.take}. @throws StoreUnavailableError after which the same browser may retry */
  async take(exchange: Exchange, interactionId: string, sessionId: string): Promise<Interaction | undefined> {
    if (!INTERACTION_ID.test(interactionId)) return undefined;
    const { request, reply } = exchange;
    const cookie = this.#cookiePrefix + interactionId.slice(0, NAMING_CHARACTERS);
    const after = unanswered(request.cookies[cookie]);
    const attemptId = randomId(this.#random, TRY_BYTES);
    try {
      const taken = await this.#interactions.take(interactionId, sessionId, { attemptId, after });
      if (taken && after.length > 0) reply.clearCookie(cookie, this.#attributes);
      return taken;
    } catch (error) {
      const tries = [...after, attemptId].slice(-MOST_TRIES).join('.');
      const attributes = { ...this.#attributes, maxAge: COOKIE_LIFETIME };
      if (this.#hasRoom(request, cookie)) reply.setCookie(cookie, tries, attributes);
      throw error;
    }
  }

  #hasRoom({ cookies }: FastifyRequest, cookie: string): boolean {
    const others = Object.keys(cookies).filter((name) => name.startsWith(this.#cookiePrefix) && name !== cookie);
    return others.length < MOST_COOKIES;
  }
}

function unanswered(cookie: string | undefined): readonly string[] {
  return cookie !== undefined && TRIES.test(cookie) ? cookie.split('.') : [];
}
