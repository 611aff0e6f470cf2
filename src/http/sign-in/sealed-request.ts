// The checked authorization request before sign-in: it travels through the login page as one sealed field, so that
// unauthenticated requests leave nothing in any store.

import { createHash } from 'node:crypto';
import type { AuthorizationSnapshot } from '../../oauth/ports/login-stores.ts';
import type { Clock, Random } from '../../oauth/ports/ports.ts';
import { SealedTexts } from './sealed-text.ts';

const LIFETIME = 600_000;

interface Sealed {
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  readonly request: AuthorizationSnapshot;
}

export interface SealedRequestsOptions {
  readonly issuer: string;
  /** The first seals, all open; at least one. */
  readonly peppers: readonly Uint8Array[];
  readonly clock: Clock;
  readonly random: Random;
}

/** Seals and opens requests. */
export class SealedRequests {
  readonly #clock: Clock;
  readonly #texts: SealedTexts;

  constructor({ issuer, peppers, clock, random }: SealedRequestsOptions) {
    this.#clock = clock;
    this.#texts = new SealedTexts({ purpose: `grantry sealed request v1\0${issuer}`, peppers, random });
  }

  /**
   * The request as one text, good for ten minutes and for one browser.
   * @param browser the value of the cookie that this browser got with the page
   */
  seal(request: AuthorizationSnapshot, browser: string): string {
    const sealed: Sealed = { expiresAt: this.#clock.now() + LIFETIME, request };
    return this.#texts.seal(JSON.stringify(sealed), bindingTo(browser));
  }

  /** The request; undefined when the text is forged, changed, expired, or made for another browser. */
  open(text: string, browser: string): AuthorizationSnapshot | undefined {
    const opened = this.#texts.open(text, bindingTo(browser));
    if (opened === undefined) return undefined;
    const { expiresAt, request } = JSON.parse(opened) as Sealed;
    return expiresAt > this.#clock.now() ? request : undefined;
  }
}

function bindingTo(browser: string): Buffer {
  return createHash('sha256').update(`grantry browser\0${browser}`).digest();
}
