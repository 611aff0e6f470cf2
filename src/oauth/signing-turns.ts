// Signatures of one turn of the event loop, made one after the other. An ECDSA signature reads through a table larger than the
// fastest caches of a core and leaves what runs next to begin cold: better once for all requests of a turn than once for each.

import type { SigningKey } from './keys.ts';
import type { EndOfTurn } from './ports.ts';
import { signatureOf } from './signature.ts';

interface Waiting {
  readonly signingInput: string;
  readonly key: SigningKey;
  readonly resolve: (signature: string) => void;
  readonly reject: (error: unknown) => void;
}

export class SigningTurns {
  readonly #endOfTurn: EndOfTurn;
  #waiting: Waiting[] = [];

  constructor({ endOfTurn }: { readonly endOfTurn: EndOfTurn }) {
    this.#endOfTurn = endOfTurn;
  }

  /** The base64url JWS signature of a signing input, at the end of this turn. */
  sign(signingInput: string, key: SigningKey): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    if (this.#waiting.length === 0) this.#endOfTurn(() => this.#signAll());
    this.#waiting.push({ signingInput, key, resolve, reject });
    return promise;
  }

  #signAll(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { signingInput, key, resolve, reject } of waiting) {
      // Whoever waits goes on only after the last signature: promises are continued when this function has returned.
      try {
        resolve(signatureOf(signingInput, key.algorithm, key.privateKey));
      } catch (error) {
        reject(error);
      }
    }
  }
}
