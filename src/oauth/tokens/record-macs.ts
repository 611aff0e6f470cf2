// The MACs on what a store keeps about people and tokens: a party that may write to the store, and does not know a
// pepper, makes no valid record and changes none. It can still delete records and lift a revocation.

import { timingSafeEqual } from 'node:crypto';
import { KeyedHash } from '../values/keyed-hash.ts';

/** What a MAC is about; a MAC of one kind is none of another. */
export type RecordKind =
  | 'grant'
  | 'nonce'
  | 'session'
  | 'interaction'
  | 'decision'
  | 'access_token'
  | 'consent'
  | 'login'
  | 'person';

/** 132 bits in base64url. */
const CHARACTERS = 22;

/** The fields of a record, always in the same order. */
export type RecordFields = readonly (string | number | readonly string[] | undefined)[];

export interface RecordMacsOptions {
  readonly issuer: string;
  /** At least one. The first makes MACs, all are accepted. */
  readonly peppers: readonly Uint8Array[];
}

/** Makes and checks MACs. */
export class RecordMacs {
  readonly #issuer: string;
  readonly #peppers: readonly KeyedHash[];

  constructor({ issuer, peppers }: RecordMacsOptions) {
    if (peppers.length === 0) throw new TypeError('at least one pepper is needed');
    this.#issuer = issuer;
    this.#peppers = peppers.map((pepper) => new KeyedHash(pepper));
  }

  /** The MAC of a record: 22 characters of base64url. */
  make(kind: RecordKind, fields: RecordFields): string {
    return this.#mac(this.#peppers[0] as KeyedHash, this.#message(kind, fields));
  }

  /** Whether one of the peppers made the MAC for these fields. */
  isRight(mac: string | undefined, kind: RecordKind, fields: RecordFields): boolean {
    if (mac?.length !== CHARACTERS) return false;
    const presented = Buffer.from(mac, 'latin1');
    const message = this.#message(kind, fields);
    return this.#peppers.some((pepper) =>
      timingSafeEqual(presented, Buffer.from(this.#mac(pepper, message), 'latin1')),
    );
  }

  #message(kind: RecordKind, fields: RecordFields): string {
    return `grantry ${kind} v1\0${this.#issuer}\0${JSON.stringify(fields)}`;
  }

  #mac(pepper: KeyedHash, message: string): string {
    return pepper.of(message).slice(0, CHARACTERS);
  }
}
