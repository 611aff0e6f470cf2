// Makes logout tokens (OpenID Connect Back-Channel Logout §2.4): the notice to a client that a session of a person ended.

import type { Clock, EndOfTick, Random } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';
import type { KeyRing } from '../registry/keys.ts';
import { randomId } from '../values/random-id.ts';
import { JwtSigner } from './jwt-signer.ts';

/** The session that ended. */
export interface EndedLogin {
  readonly subject: string;
  /** Its name towards clients. */
  readonly sid: string;
}

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
/** How long a token is good: as long as one delivery takes, with a clock that is off. */
const LIFETIME_SECONDS = 120;

export interface LogoutTokensOptions {
  readonly issuer: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly endOfTick: EndOfTick;
}

/** Makes logout tokens. */
export class LogoutTokens {
  readonly #options: LogoutTokensOptions;
  readonly #signer: JwtSigner;

  constructor(options: LogoutTokensOptions) {
    this.#options = options;
    this.#signer = new JwtSigner({ type: 'logout+jwt', endOfTick: options.endOfTick });
  }

  /**
   * A new token for each delivery, signed by the algorithm of the client's ID tokens.
   * @returns undefined while no key of that algorithm signs
   */
  async issue(client: Client, keys: KeyRing, { subject, sid }: EndedLogin): Promise<string | undefined> {
    const { issuer, clock, random } = this.#options;
    const key = keys.signingFor([client.idTokens.signingAlgorithm]);
    if (key === undefined) return undefined;
    const iat = Math.floor(clock.now() / 1000);
    const claims = {
      iss: issuer,
      sub: subject,
      aud: client.clientId,
      iat,
      exp: iat + LIFETIME_SECONDS,
      jti: randomId(random, 20),
      sid,
      // A nonce is prohibited here: no logout token may pass for an ID token.
      events: { [EVENT]: {} },
    };
    return await this.#signer.sign(claims, key);
  }
}
