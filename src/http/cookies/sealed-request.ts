// Where a sign-in leads: the checked authorization request, or a page of ours. It travels through the login page as one sealed
// field, and with what a refused form shows again in the address of its page, so that unauthenticated requests leave nothing in
// any store.

import type { AuthorizationSnapshot } from '../../oauth/ports/login-stores.ts';
import type { Clock, Random } from '../../oauth/ports/ports.ts';
import type { LoginProblem } from '../pages/login-page.ts';
import { bindingTo, SealedTexts } from './sealed-text.ts';

const LIFETIME = 600_000;

/** The pages of ours that a sign-in may lead to. A closed set: no sealed field leads to any other address. */
const OWN_PATHS = ['/account', '/account/sessions', '/account/applications'] as const;

/** Below the path of the issuer. */
export type OwnPath = (typeof OWN_PATHS)[number];

/** Where a sign-in leads, and what has to be known of it until then. */
export type Destination = ({ readonly request: AuthorizationSnapshot } | { readonly path: OwnPath }) & AccountChoice;

export interface AccountChoice {
  /** Whether the person is to choose an account: no provider is to sign in the one that it knows. */
  readonly selectsAccount?: boolean | undefined;
}

/** What the page of a refused form shows. */
export interface RefusedForm {
  /** As typed; undefined where the form has no such field. */
  readonly username?: string | undefined;
  readonly problem: LoginProblem;
}

/** An opened text. */
export interface Opened {
  readonly destination: Destination;
  /** Undefined for a form. */
  readonly refused: RefusedForm | undefined;
  /** Epoch milliseconds. */
  readonly sealedAt: number;
  /** An expired one only names where the sign-in led. */
  readonly isExpired: boolean;
}

type Sealed = Destination & {
  readonly refused?: RefusedForm | undefined;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
};

export interface SealedRequestsOptions {
  readonly issuer: string;
  /** The first seals, all open; at least one. */
  readonly peppers: readonly Uint8Array[];
  readonly clock: Clock;
  readonly random: Random;
}

/** Seals and opens destinations. */
export class SealedRequests {
  readonly #clock: Clock;
  readonly #texts: SealedTexts;

  constructor({ issuer, peppers, clock, random }: SealedRequestsOptions) {
    this.#clock = clock;
    this.#texts = new SealedTexts({ purpose: `grantry sealed request v1\0${issuer}`, peppers, random });
  }

  /**
   * The destination as one text, valid for ten minutes and for one browser.
   * @param browser the value of the cookie that this browser got with the page
   * @param refused for the address of a page that shows it
   */
  seal(destination: Destination, browser: string, refused?: RefusedForm): string {
    const sealed: Sealed = { expiresAt: this.#clock.now() + LIFETIME, ...destination, refused };
    return this.#texts.seal(JSON.stringify(sealed), bindingTo(browser));
  }

  /** The sealed destination; undefined when the text is forged, changed, or made for another browser. */
  open(text: string, browser: string): Opened | undefined {
    const opened = this.#texts.open(text, bindingTo(browser));
    if (opened === undefined) return undefined;
    const { expiresAt, refused, ...destination } = JSON.parse(opened) as Sealed;
    // Another version of this server may have sealed a path that this one has no page for.
    if ('path' in destination && !OWN_PATHS.includes(destination.path)) return undefined;
    return { destination, refused, sealedAt: expiresAt - LIFETIME, isExpired: expiresAt <= this.#clock.now() };
  }
}
