// Self-describing handles: authorization codes, refresh tokens and opaque access tokens, and the names they have in stores.
//
//   code          ac1.<shard>.<family>.<secret>
//   refresh token rt1.<shard>.<family>.<generation>.<mac>
//   opaque access at1.<shard>.<grant>.<secret>      <grant> = SHA-256(family), or random for client_credentials
//
// `family` is 160 random bits that no store ever sees: stores know `grantId` = <shard>.<SHA-256(family)>. The MAC needs the
// pepper, so neither a dump of the store nor the pepper alone makes a token, and a forged one costs no store call.

import { hash, timingSafeEqual } from 'node:crypto';
import type { Random } from '../ports/ports.ts';
import { KeyedHash } from '../values/keyed-hash.ts';
import { randomId } from '../values/random-id.ts';
import { SHARDS, shardOfPerson } from '../values/shard.ts';

const ENTROPY_BYTES = 20;
const CODE = /^ac1\.(\d{3})\.([A-Za-z0-9_-]{27})\.([A-Za-z0-9_-]{27})$/;
const REFRESH_TOKEN = /^rt1\.(\d{3})\.([A-Za-z0-9_-]{27})\.(0|[1-9]\d{0,8})\.([A-Za-z0-9_-]{43})$/;
const ACCESS_TOKEN = /^at1\.(\d{3})\.[A-Za-z0-9_-]{43}\.[A-Za-z0-9_-]{27}$/;

/** A refresh family as its handles name it. */
export interface Family {
  readonly shard: string;
  readonly family: string;
}

export interface CodeHandle extends Family {
  readonly grantId: string;
  /** SHA-256 of the secret part, base64url. */
  readonly secretHash: string;
}

export interface RefreshHandle extends Family {
  readonly grantId: string;
  readonly generation: number;
}

export interface HandlesOptions {
  readonly issuer: string;
  /**
   * At least one. The first makes handles, all are accepted: append a new one first, then swap, and no token is lost.
   */
  readonly peppers: readonly Uint8Array[];
  readonly random: Random;
}

/** Makes and reads handles. */
export class Handles {
  readonly #issuer: string;
  readonly #peppers: readonly [KeyedHash, ...KeyedHash[]];
  readonly #random: Random;

  constructor({ issuer, peppers, random }: HandlesOptions) {
    const [first, ...others] = peppers.map((pepper) => new KeyedHash(pepper));
    if (first === undefined) throw new TypeError('at least one pepper is needed');
    this.#issuer = issuer;
    this.#peppers = [first, ...others];
    this.#random = random;
  }

  /**
   * A new code and the grant it starts, in the shard of its person (RFC 6749 §4.1.2; 160 bits each for family and
   * secret).
   * @param subject the person
   */
  newCode(subject: string): CodeHandle & { readonly code: string } {
    const shard = shardOfPerson(subject);
    const family = this.#secret();
    const secret = this.#secret();
    const code = `ac1.${shard}.${family}.${secret}`;
    return { code, shard, family, grantId: grantIdOf(shard, family), secretHash: sha256(secret) };
  }

  /** Undefined when the text cannot be a code of this server. */
  parseCode(code: string): CodeHandle | undefined {
    const [, shard, family, secret] = CODE.exec(code) ?? [];
    if (!shard || !family || !secret || !isShard(shard)) return undefined;
    return { shard, family, grantId: grantIdOf(shard, family), secretHash: sha256(secret) };
  }

  /** The refresh token of a generation; the same arguments always give the same token. */
  refreshToken({ shard, family }: Family, generation: number): string {
    const body = `${shard}.${family}.${generation}`;
    return `rt1.${body}.${this.#mac(this.#peppers[0], body)}`;
  }

  /** Undefined when the text is not a refresh token that this issuer made with one of the peppers. */
  parseRefreshToken(token: string): RefreshHandle | undefined {
    const [, shard, family, generation, mac] = REFRESH_TOKEN.exec(token) ?? [];
    if (!shard || !family || !generation || !mac || !isShard(shard)) return undefined;
    const body = `${shard}.${family}.${generation}`;
    // As text: two spellings of one MAC exist (spare bits of the last character), and only the canonical one is a
    // token.
    if (!this.#peppers.some((pepper) => isSameText(this.#mac(pepper, body), mac))) return undefined;
    return { shard, family, grantId: grantIdOf(shard, family), generation: Number(generation) };
  }

  /**
   * A new opaque access token and its name in the store.
   * @param grantId the grant it belongs to; undefined for client_credentials
   */
  newAccessToken(grantId: string | undefined): { readonly token: string; readonly tokenId: string } {
    const scope = grantId ?? `${this.#shard()}.${sha256(this.#secret())}`;
    const token = `at1.${scope}.${this.#secret()}`;
    return { token, tokenId: `${scope.slice(0, 3)}.${sha256(token)}` };
  }

  /** The store's name of an opaque access token; undefined when the text cannot be one. */
  accessTokenId(token: string): string | undefined {
    const shard = ACCESS_TOKEN.exec(token)?.[1];
    return shard && isShard(shard) ? `${shard}.${sha256(token)}` : undefined;
  }

  #mac(pepper: KeyedHash, body: string): string {
    return pepper.of(`grantry-refresh-v1\0${this.#issuer}\0${body}`);
  }

  #shard(): string {
    return String(this.#random.bytes(1)[0]).padStart(3, '0');
  }

  #secret(): string {
    return randomId(this.#random, ENTROPY_BYTES);
  }
}

function grantIdOf(shard: string, family: string): string {
  return `${shard}.${sha256(family)}`;
}

/** Compares in constant time. @param one of the length of the other, both ASCII */
function isSameText(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one, 'latin1'), Buffer.from(other, 'latin1'));
}

function isShard(text: string): boolean {
  return Number(text) < SHARDS.length;
}

function sha256(text: string): string {
  return hash('sha256', text, 'base64url');
}
