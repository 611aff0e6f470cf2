// Makes ID tokens (OpenID Connect Core §2): who signed in at which client, and what the client may know of the person.
// `../access/scope-claims.ts` is the table of that.

import { hash } from 'node:crypto';
import { type PersonClaims, personClaims } from '../access/scope-claims.ts';
import { OAuthError } from '../ports/error.ts';
import type { Clock, EndOfTick, Person, Random } from '../ports/ports.ts';
import type { Client } from '../registry/client.ts';
import type { KeyRing } from '../registry/keys.ts';
import { randomId } from '../values/random-id.ts';
import type { SigningAlgorithm } from '../values/signature.ts';
import { JwtSigner } from './jwt-signer.ts';

/** The sign-in that an ID token reports. */
export interface Login {
  /** Epoch milliseconds. */
  readonly authTime: number;
  /** Random; names the session towards clients (Back-Channel Logout §2.1). */
  readonly sid: string;
  /** That of the authorization request; undefined where it had none, and at a refresh (Core §12.2). */
  readonly nonce: string | undefined;
}

/** What an ID token reports, known after the exchange of a grant. */
export interface IdTokenContent {
  /** The person as of now. */
  readonly person: Person;
  /** The scope of the access token. */
  readonly scope: readonly string[];
  readonly login: Login;
  /** The access token that is issued beside it, of any format. */
  readonly accessToken: string;
}

/** An ID token in its compact form. */
export interface IssuedIdToken {
  readonly idToken: string;
  /** How many names the claim `groups` would have, where it was left out for its size; else 0. Userinfo has it. */
  readonly omittedGroups: number;
}

/** The key and the times of an ID token, fixed before the grant is exchanged. */
export interface PreparedIdToken {
  /** The token itself. Call after the exchange. */
  issue(content: IdTokenContent): Promise<IssuedIdToken>;
}

/** The most bytes of a `groups` claim as JSON: clients keep ID tokens in cookies, which browsers drop beyond 4 KiB. */
const MOST_GROUPS_BYTES = 4096;

/** The claims of an ID token of this server besides those about the person. */
interface ProtocolClaims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: string;
  readonly iat: number;
  readonly exp: number;
  readonly auth_time: number;
  readonly at_hash: string;
  readonly sid: string;
  readonly jti: string;
  readonly nonce?: string;
}

export interface IdTokensOptions {
  readonly issuer: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly endOfTick: EndOfTick;
}

/** Makes ID tokens. */
export class IdTokens {
  readonly #options: IdTokensOptions;
  readonly #signer: JwtSigner;

  constructor(options: IdTokensOptions) {
    this.#options = options;
    this.#signer = new JwtSigner({ type: 'JWT', endOfTick: options.endOfTick });
  }

  /**
   * Prepares a token for this client. A missing key fails here, before the grant is consumed.
   * @throws OAuthError temporarily_unavailable when no key of the client's algorithm signs
   */
  prepare(client: Pick<Client, 'clientId' | 'groups' | 'idTokens'>, keys: KeyRing): PreparedIdToken {
    const { issuer, clock, random } = this.#options;
    const { signingAlgorithm, lifetimeSeconds } = client.idTokens;
    const iat = Math.floor(clock.now() / 1000);
    const key = keys.signingFor([signingAlgorithm]);
    if (key === undefined) {
      throw new OAuthError('temporarily_unavailable', 'The service cannot issue tokens right now.', {
        reason: 'no_signing_key',
        retryAfterSeconds: 5,
      });
    }
    return {
      issue: async ({ person, scope, login, accessToken }) => {
        const { claims, omittedGroups } = withoutLongGroups(personClaims(scope, person, client));
        const protocolClaims: ProtocolClaims = {
          iss: issuer,
          sub: person.subject,
          aud: client.clientId,
          iat,
          exp: iat + lifetimeSeconds,
          auth_time: Math.floor(login.authTime / 1000),
          at_hash: accessTokenHash(accessToken, signingAlgorithm),
          sid: login.sid,
          jti: randomId(random, 20),
          ...(login.nonce !== undefined && { nonce: login.nonce }),
        };
        return { idToken: await this.#signer.sign({ ...claims, ...protocolClaims }, key), omittedGroups };
      },
    };
  }
}

function withoutLongGroups(claims: PersonClaims): { claims: PersonClaims; omittedGroups: number } {
  const { groups, ...others } = claims;
  const isTooLong = Array.isArray(groups) && Buffer.byteLength(JSON.stringify(groups)) > MOST_GROUPS_BYTES;
  return isTooLong ? { claims: others, omittedGroups: groups.length } : { claims, omittedGroups: 0 };
}

/** The hash function of each algorithm. EdDSA: that of Ed25519 itself. */
const DIGESTS: Readonly<Record<SigningAlgorithm, string>> = {
  RS256: 'sha256',
  PS256: 'sha256',
  ES256: 'sha256',
  ES384: 'sha384',
  EdDSA: 'sha512',
};

/** `at_hash`: the left half of the hash of an access token (Core §3.1.3.6). */
function accessTokenHash(accessToken: string, algorithm: SigningAlgorithm): string {
  const digest = hash(DIGESTS[algorithm], accessToken, 'buffer');
  return digest.subarray(0, digest.length / 2).toString('base64url');
}
