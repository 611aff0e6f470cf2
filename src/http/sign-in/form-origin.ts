// Cross-site request forgery protection: the Origin header where browsers send a usable one, and a value in the form
// that only the page of this server for this browser and this interaction holds (security row U7).

import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/**
 * Checks the origin of a form post. Under this server's `Referrer-Policy: no-referrer` browsers send `Origin: null`,
 * and Sec-Fetch-Site then names the relation of the page. Without either header the csrf value alone decides.
 * @param origin the issuer's origin
 */
export function isOwnForm(headers: IncomingHttpHeaders, origin: string): boolean {
  const sentOrigin = headers.origin;
  const site = headers['sec-fetch-site'];
  if (sentOrigin === origin) return true;
  if (sentOrigin !== undefined && sentOrigin !== 'null') return false;
  return site === undefined || site === 'same-origin';
}

/** Makes and checks the hidden `csrf` values; nothing is stored, every replica with the same peppers agrees. */
export class FormTokens {
  readonly #keys: readonly Buffer[];

  /** @param options.peppers the first makes values, all are accepted; at least one */
  constructor({ issuer, peppers }: { readonly issuer: string; readonly peppers: readonly Uint8Array[] }) {
    if (peppers.length === 0) throw new TypeError('at least one pepper is needed');
    this.#keys = peppers.map((pepper) => Buffer.from(hkdfSync('sha256', pepper, issuer, 'grantry form token v1', 32)));
  }

  /**
   * The value for one form.
   * @param holder a secret of the browser: the value of one of its cookies
   * @param about the subject of the form, e.g. the id of an interaction
   */
  make(holder: string, about: string): string {
    return mac(this.#keys[0] as Buffer, holder, about).toString('base64url');
  }

  /** Whether the posted value is the one made for this holder and subject. */
  check(value: string | undefined, holder: string, about: string): boolean {
    const posted = Buffer.from(value ?? '', 'base64url');
    return this.#keys.some((key) => {
      const expected = mac(key, holder, about);
      return posted.length === expected.length && timingSafeEqual(posted, expected);
    });
  }
}

function mac(key: Buffer, holder: string, about: string): Buffer {
  return createHmac('sha256', key).update(`${holder}\0${about}`).digest();
}
