// Signs JWTs with the keys of this server (RFC 7515 §3.1). The callers make the claims: tokens.ts those of access tokens,
// id-tokens.ts those of ID tokens.

import type { EndOfTick } from '../ports/ports.ts';
import type { SigningKey } from '../registry/keys.ts';
import { MicroBatch } from '../values/micro-batch.ts';
import { isMadeAside, signatureAside } from '../values/signature.ts';

/** Makes the JWTs of one type. */
export class JwtSigner {
  readonly #type: string;
  readonly #headers = new WeakMap<SigningKey, string>();
  readonly #batch: MicroBatch;

  /** @param type the `typ` of their headers, such as `at+jwt` */
  constructor({ type, endOfTick }: { readonly type: string; readonly endOfTick: EndOfTick }) {
    this.#type = type;
    this.#batch = new MicroBatch({ endOfTick });
  }

  /** The compact form of a JWT with these claims, signed by this key. */
  async sign(claims: object, key: SigningKey): Promise<string> {
    const payload = Buffer.from(JSON.stringify(claims)).toString('base64url');
    const signingInput = `${this.#header(key)}.${payload}`;
    // An ECDSA signature reads a table larger than the fastest caches of a core: all signatures of a tick run in a row.
    if (!isMadeAside(key.algorithm)) await this.#batch.join();
    return `${signingInput}.${await signatureAside(signingInput, key.algorithm, key.privateKey)}`;
  }

  #header(key: SigningKey): string {
    const known = this.#headers.get(key);
    if (known !== undefined) return known;
    const json = JSON.stringify({ typ: this.#type, alg: key.algorithm, kid: key.kid });
    const header = Buffer.from(json).toString('base64url');
    this.#headers.set(key, header);
    return header;
  }
}
