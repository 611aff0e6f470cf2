// The cookies of the pending sign-ins of a browser: the values that the callback of an identity provider must match, and the
// destination of the sign-in. They are sealed and bound to the browser, and no store has them: a request without a session
// writes no state.

import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { OAuthError } from '../../oauth/ports/error.ts';
import type { Clock, Random } from '../../oauth/ports/ports.ts';
import type { PendingSignIn } from '../../oauth/ports/upstream-provider.ts';
import { type CookieForm, cookieForm } from './cookie-form.ts';
import type { Destination } from './sealed-request.ts';
import { bindingTo, SealedTexts } from './sealed-text.ts';

/** How long a sign-in at the provider may take. */
const LIFETIME_SECONDS = 600;
/** Of one cookie; browsers keep 4 096 bytes with name and attributes. */
const PART_CHARACTERS = 3500;
const PARTS_MAX = 2;
/** Of all pending sign-ins of a browser: servers and proxies refuse longer headers. */
const CHARACTERS_MAX = PARTS_MAX * PART_CHARACTERS;
const SIGN_INS_MAX = 4;
/** A word of the purpose that the cookies are sealed for: part of their format, as the name `grantry-away-` is. */
const SEALED_FOR = 'departure';
/** The sealed text is ours, and no longer than the request that it holds. */
const INFLATED_MAX = 64 * 1024;
/** The first characters of a state, which the name of its cookie contains. */
const TAG = /^[A-Za-z0-9_-]{8}/;

/** What the cookies of one pending sign-in seal. */
export interface SealedSignIn {
  readonly destination: Destination;
  /** The name, the uid and the issuer of the provider. */
  readonly provider: { readonly name: string; readonly uid: string; readonly issuer: string };
  readonly pending: PendingSignIn;
  /** When the sign-in began, epoch milliseconds. */
  readonly leftAt: number;
}

export interface PendingSignInsOptions {
  readonly issuer: string;
  /** The first seals, all open; at least one. */
  readonly peppers: readonly Uint8Array[];
  readonly clock: Clock;
  readonly random: Random;
}

interface Answering {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** Reads and writes the cookies. */
export class PendingSignIns {
  readonly #clock: Clock;
  readonly #texts: SealedTexts;
  readonly #name: string;
  readonly #attributes: CookieForm['attributes'];

  constructor({ issuer, peppers, clock, random }: PendingSignInsOptions) {
    this.#clock = clock;
    this.#texts = new SealedTexts({ purpose: `grantry pending ${SEALED_FOR} v1\0${issuer}`, peppers, random });
    const { prefix, attributes } = cookieForm(issuer);
    this.#name = `${prefix}grantry-away-`;
    this.#attributes = attributes;
  }

  /**
   * Keeps a pending sign-in; the oldest ones of the browser are removed where there are too many.
   * @param browser the value of the cookie that identifies the browser
   * @throws OAuthError invalid_request, `request_too_long_for_upstream`
   */
  keep({ request, reply }: Answering, browser: string, sent: Omit<SealedSignIn, 'leftAt'>): void {
    const whole: SealedSignIn = { ...sent, leftAt: this.#clock.now() };
    const sealed = this.#texts.sealBytes(deflateRawSync(JSON.stringify(whole)), bindingTo(browser));
    if (sealed.length > CHARACTERS_MAX) {
      const reason = 'request_too_long_for_upstream';
      throw new OAuthError('invalid_request', 'The authorization request is too long.', { reason });
    }
    this.#makeRoom({ request, reply }, sealed.length);
    const tag = tagOf(sent.pending.state);
    for (let part = 0; part * PART_CHARACTERS < sealed.length; part += 1) {
      const value = sealed.slice(part * PART_CHARACTERS, (part + 1) * PART_CHARACTERS);
      reply.setCookie(this.#partName(tag, part), value, { ...this.#attributes, maxAge: LIFETIME_SECONDS });
    }
  }

  /**
   * The pending sign-in that a callback completes, with its cookies cleared: it completes once.
   * @param state of the callback
   * @returns undefined where this browser has none of this state, or it has expired
   */
  take({ request, reply }: Answering, browser: string, state: string): SealedSignIn | undefined {
    if (!TAG.test(state)) return undefined;
    const tag = tagOf(state);
    const sealed = this.#sealed(request, tag);
    this.#clear(reply, tag);
    if (sealed === '') return undefined;
    const bytes = this.#texts.openBytes(sealed, bindingTo(browser));
    if (bytes === undefined) return undefined;
    const kept = JSON.parse(inflateRawSync(bytes, { maxOutputLength: INFLATED_MAX }).toString()) as SealedSignIn;
    const isYoung = this.#clock.now() < kept.leftAt + LIFETIME_SECONDS * 1000;
    return isYoung && kept.pending.state === state ? kept : undefined;
  }

  /** Browsers send the cookies of one path in the order of their creation (RFC 6265 §5.4). */
  #makeRoom({ request, reply }: Answering, needed: number): void {
    const tags = new Set(
      Object.keys(request.cookies).flatMap((name) => {
        const tag = name.startsWith(this.#name) ? TAG.exec(name.slice(this.#name.length))?.[0] : undefined;
        return tag === undefined ? [] : [tag];
      }),
    );
    const kept = [...tags].map((tag) => ({ tag, length: this.#sealed(request, tag).length }));
    let taken = kept.reduce((sum, { length }) => sum + length, 0);
    while (kept.length >= SIGN_INS_MAX || taken + needed > CHARACTERS_MAX) {
      const oldest = kept.shift();
      if (oldest === undefined) return;
      taken -= oldest.length;
      this.#clear(reply, oldest.tag);
    }
  }

  #sealed({ cookies }: FastifyRequest, tag: string): string {
    const parts = Array.from({ length: PARTS_MAX }, (_, part) => cookies[this.#partName(tag, part)] ?? '');
    return parts.join('');
  }

  #clear(reply: FastifyReply, tag: string): void {
    for (let part = 0; part < PARTS_MAX; part += 1) reply.clearCookie(this.#partName(tag, part), this.#attributes);
  }

  #partName(tag: string, part: number): string {
    return `${this.#name}${tag}${part === 0 ? '' : `.${part + 1}`}`;
  }
}

function tagOf(state: string): string {
  return state.slice(0, 8);
}
