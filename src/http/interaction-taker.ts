// Takes a decided interaction for a browser that is on its way back to the client. A try that got no answer may have taken
// it: its id stays with the browser, in a cookie, which is told to come again and takes the interaction over then.

import type { Interaction, InteractionStore } from '../oauth/login-stores.ts';
import type { Random } from '../oauth/ports.ts';
import { randomId } from '../oauth/random-id.ts';
import type { Exchange } from './endpoint.ts';

const TRY_BYTES = 16;
/** Of so many tries without an answer the latest are kept. */
const MOST_TRIES = 5;
const TRIES = /^[A-Za-z0-9_-]{22}(?:\.[A-Za-z0-9_-]{22}){0,4}$/;
/** As long as an interaction may live, in seconds. */
const COOKIE_LIFETIME = 600;

export class InteractionTaker {
  readonly #interactions: InteractionStore;
  readonly #random: Random;
  readonly #isSecure: boolean;
  readonly #cookie: string;

  constructor({ issuer, interactions, random }: { issuer: string; interactions: InteractionStore; random: Random }) {
    this.#interactions = interactions;
    this.#random = random;
    // As `browser-session.ts` does it.
    this.#isSecure = issuer.startsWith('https:');
    this.#cookie = `${this.#isSecure ? '__Host-' : ''}grantry-tries`;
  }

  /** As {@link InteractionStore.take}. @throws StoreUnavailableError after which the same browser may come again */
  async take(exchange: Exchange, interactionId: string, sessionId: string): Promise<Interaction | undefined> {
    const { request, reply } = exchange;
    const after = unanswered(request.cookies[this.#cookie]);
    const attemptId = randomId(this.#random, TRY_BYTES);
    const attributes = { path: '/', httpOnly: true, secure: this.#isSecure, sameSite: 'lax' } as const;
    try {
      const taken = await this.#interactions.take(interactionId, sessionId, { attemptId, after });
      if (after.length > 0) reply.clearCookie(this.#cookie, attributes);
      return taken;
    } catch (error) {
      const tries = [...after, attemptId].slice(-MOST_TRIES).join('.');
      reply.setCookie(this.#cookie, tries, { ...attributes, maxAge: COOKIE_LIFETIME });
      throw error;
    }
  }
}

function unanswered(cookie: string | undefined): readonly string[] {
  return cookie !== undefined && TRIES.test(cookie) ? cookie.split('.') : [];
}
