// The sign-in between two commands: tokens, and the key that they are bound to, in a file that only its owner can read.

import type { webcrypto } from 'node:crypto';
import { access, constants, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Problem } from './problem.ts';

/** What a sign-in leaves behind. */
export interface Session {
  readonly keys: webcrypto.CryptoKeyPair;
  readonly accessToken: string;
  readonly refreshToken: string;
}

interface Kept {
  readonly issuer: string;
  readonly privateKey: webcrypto.JsonWebKey;
  readonly publicKey: webcrypto.JsonWebKey;
  readonly accessToken: string;
  readonly refreshToken: string;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' };

/** The session at one issuer. */
export class SessionFile {
  readonly #path: string;
  readonly #issuer: string;

  constructor({ path, issuer }: { readonly path: string; readonly issuer: string }) {
    this.#path = path;
    this.#issuer = issuer;
  }

  /**
   * The session; undefined where there is none, or one that is of no use.
   * @throws Problem where none can be kept either
   */
  async read(): Promise<Session | undefined> {
    const text = await this.#used(readFile(this.#path, 'utf8').catch(ifMissing));
    if (text === undefined) {
      await this.#used(access(dirname(this.#path), constants.W_OK));
      return undefined;
    }
    try {
      const { issuer, privateKey, publicKey, accessToken, refreshToken } = JSON.parse(text) as Kept;
      const isWhole = typeof accessToken === 'string' && typeof refreshToken === 'string';
      if (issuer !== this.#issuer || !isWhole) return undefined;
      const keys = { privateKey: await imported(privateKey, 'sign'), publicKey: await imported(publicKey, 'verify') };
      return { keys, accessToken, refreshToken };
    } catch {
      return undefined;
    }
  }

  /** Puts a session in place of the earlier one. @throws Problem */
  async write({ keys, accessToken, refreshToken }: Session): Promise<void> {
    const kept: Kept = {
      issuer: this.#issuer,
      privateKey: await crypto.subtle.exportKey('jwk', keys.privateKey),
      publicKey: await crypto.subtle.exportKey('jwk', keys.publicKey),
      accessToken,
      refreshToken,
    };
    // `mode` is for a new file only.
    await this.remove();
    await this.#used(writeFile(this.#path, JSON.stringify(kept), { mode: 0o600, flag: 'wx' }));
  }

  /** @throws Problem */
  async remove(): Promise<void> {
    await this.#used(rm(this.#path, { force: true }));
  }

  async #used<Result>(call: Promise<Result>): Promise<Result> {
    try {
      return await call;
    } catch (error) {
      throw new Problem(
        `${this.#path} cannot keep the sign-in (${(error as Error).message}): name a file by --session`,
      );
    }
  }
}

function imported(jwk: webcrypto.JsonWebKey, usage: 'sign' | 'verify'): Promise<webcrypto.CryptoKey> {
  return crypto.subtle.importKey('jwk', jwk, ALGORITHM, true, [usage]);
}

function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined;
  throw error;
}
