// The nonces of DPoP proofs (RFC 9449 §8): a minute and its MAC. No store holds them: every replica with the same peppers
// makes the same nonce and accepts those of the others.

import { timingSafeEqual } from 'node:crypto';
import { KeyedHash } from '../values/keyed-hash.ts';

/**
 * When a proof needs a nonce: `on-demand`, where its `iat` is too far from the clock of the server; or always
 * (`required`).
 */
export type NonceRule = 'on-demand' | 'required';

const MINUTE = 60_000;
/** The minutes before and after that of the clock whose nonces pass; replicas may disagree on the minute. */
const MINUTES_BEFORE = 3;
const MINUTES_AFTER = 1;
/** The minute in base 36, and 132 bits of the MAC. */
const NONCE = /^([0-9a-z]{1,9})\.([A-Za-z0-9_-]{22})$/;
const MAC_CHARACTERS = 22;

/** A nonce that passes. */
export interface PassingNonce {
  /** Whether a nonce made now is the same. */
  readonly isCurrent: boolean;
  /** Epoch milliseconds: before that it does not pass. */
  readonly passesFrom: number;
  /** Epoch milliseconds: from then on it does not pass. */
  readonly expiresAt: number;
}

export interface ProofNoncesOptions {
  readonly issuer: string;
  /** At least one. The first makes nonces, those of all are accepted. */
  readonly peppers: readonly Uint8Array[];
  readonly rule: NonceRule;
}

/** Makes and reads the nonces of one issuer. */
export class ProofNonces {
  readonly rule: NonceRule;
  readonly #keys: readonly [KeyedHash, ...KeyedHash[]];

  constructor({ issuer, peppers, rule }: ProofNoncesOptions) {
    const [first, ...others] = peppers.map((pepper) => nonceKey(pepper, issuer));
    if (first === undefined) throw new TypeError('at least one pepper is needed');
    this.rule = rule;
    this.#keys = [first, ...others];
  }

  /** The nonce of this minute. @param now epoch milliseconds */
  make(now: number): string {
    const minute = minuteAt(now).toString(36);
    return `${minute}.${mac(this.#keys[0], minute)}`;
  }

  /** Undefined for a nonce that this issuer did not make, or that does not pass now. */
  read(nonce: string, now: number): PassingNonce | undefined {
    const [, text, presented] = NONCE.exec(nonce) ?? [];
    if (text === undefined || presented === undefined) return undefined;
    if (!this.#keys.some((key) => isSameText(mac(key, text), presented))) return undefined;
    const minute = Number.parseInt(text, 36);
    const current = minuteAt(now);
    if (minute < current - MINUTES_BEFORE || minute > current + MINUTES_AFTER) return undefined;
    return {
      isCurrent: minute === current,
      passesFrom: MINUTE * (minute - MINUTES_AFTER),
      expiresAt: MINUTE * (minute + MINUTES_BEFORE + 1),
    };
  }
}

/** A key of its own: a MAC that the pepper makes elsewhere is no nonce, whatever its message. */
function nonceKey(pepper: Uint8Array, issuer: string): KeyedHash {
  return new KeyedHash(Buffer.from(new KeyedHash(pepper).of(`grantry-dpop-nonce-v1\0${issuer}`), 'base64url'));
}

function minuteAt(now: number): number {
  return Math.floor(now / MINUTE);
}

function mac(key: KeyedHash, minute: string): string {
  return key.of(minute).slice(0, MAC_CHARACTERS);
}

/** Compares in constant time. @param one of the length of the other, both ASCII */
function isSameText(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one, 'latin1'), Buffer.from(other, 'latin1'));
}
