// Access tokens that the issuer is asked about (RFC 7662): opaque ones, and JWTs whose revocation has to take effect at once.

import { hash } from 'node:crypto';
import type { Clock } from '../oauth/ports/ports.ts';
import { type AccessClaims, type TokenExpectations, timeFault, verifyClaims } from '../oauth/resource/access-token.ts';
import type { JsonObject } from '../oauth/values/jws.ts';
import { RecentValues } from '../oauth/values/recent-values.ts';
import { frozen } from './access.ts';
import { InvalidTokenError, UnavailableError } from './access-denied.ts';
import { callIssuer, type Fetch } from './issuer-calls.ts';
import type { TokenSource } from './local-tokens.ts';

/** A request to the introspection endpoint that lacks its authentication. */
export interface UnsignedRequest {
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: URLSearchParams;
}

/** How the API authenticates at the introspection endpoint, and how long answers are kept. */
export type IntrospectionOptions = {
  /** Default `<issuer>/introspect`. */
  readonly endpoint?: string;
  /** How long an answer about an active token is used again: 0 to 30, default 0. */
  readonly cacheSeconds?: number;
} & (
  | { readonly clientId: string; readonly clientSecret: string; readonly authenticate?: undefined }
  /** Adds the authentication to a request, such as a client assertion (RFC 7523). */
  | { readonly authenticate: (request: UnsignedRequest) => UnsignedRequest | Promise<UnsignedRequest> }
);

interface KeptAnswer {
  readonly claims: AccessClaims;
  readonly until: number;
}

const BOUNDS = { milliseconds: 2000, bytes: 64 * 1024 };
const CACHE_SECONDS_MOST = 30;
const TOKEN_CHARACTERS_MAX = 8192;
/** So many answers are kept at least, and twice as many at most. */
const KEPT_ANSWERS = 500;

export class IntrospectedTokens implements TokenSource {
  readonly #options: IntrospectionOptions;
  readonly #endpoint: string;
  readonly #clock: Clock;
  readonly #fetch: Fetch;
  readonly #cacheMilliseconds: number;
  /** By the hash of the token, as `#running`. */
  readonly #kept = new RecentValues<KeptAnswer>(KEPT_ANSWERS);
  readonly #running = new Map<string, Promise<JsonObject>>();

  /** @throws TypeError for options that cannot be right */
  constructor({
    issuer,
    options,
    clock,
    fetch,
  }: {
    readonly issuer: string;
    readonly options: IntrospectionOptions;
    readonly clock: Clock;
    readonly fetch: Fetch;
  }) {
    const { cacheSeconds = 0, endpoint = `${issuer}/introspect` } = options;
    if (!(cacheSeconds >= 0 && cacheSeconds <= CACHE_SECONDS_MOST)) {
      throw new TypeError(`introspection.cacheSeconds is not within 0 and ${CACHE_SECONDS_MOST}`);
    }
    if (options.authenticate === undefined && !(isText(options.clientId) && isText(options.clientSecret))) {
      throw new TypeError('introspection needs clientId and clientSecret, or authenticate');
    }
    this.#options = options;
    this.#endpoint = endpoint;
    this.#clock = clock;
    this.#fetch = fetch;
    this.#cacheMilliseconds = 1000 * cacheSeconds;
  }

  async claimsOf(token: string, expected: TokenExpectations): Promise<AccessClaims> {
    if (token.length > TOKEN_CHARACTERS_MAX) throw new InvalidTokenError('token_too_large');
    const name = hash('sha256', token, 'base64url');
    const kept = this.#kept.get(name);
    if (kept !== undefined && expected.now < kept.until) {
      const fault = timeFault(kept.claims, expected);
      if (fault !== undefined) throw new InvalidTokenError(fault);
      return kept.claims;
    }
    const askedAt = this.#clock.now();
    const answer = await this.#answerAbout(token, name);
    if (answer.active !== true) throw new InvalidTokenError('token_inactive');
    const claims = verifyClaims(answer, expected);
    if (typeof claims === 'string') throw new InvalidTokenError(claims);
    // From when it was asked: the answer may be as old as the question.
    if (this.#cacheMilliseconds > 0) this.#kept.set(name, { claims, until: askedAt + this.#cacheMilliseconds });
    return claims;
  }

  /** One call at a time about one token. */
  #answerAbout(token: string, name: string): Promise<JsonObject> {
    const running = this.#running.get(name);
    if (running !== undefined) return running;
    const started = this.#ask(token).finally(() => this.#running.delete(name));
    this.#running.set(name, started);
    return started;
  }

  async #ask(token: string): Promise<JsonObject> {
    try {
      const { url, headers, body } = await this.#authenticated({
        url: this.#endpoint,
        headers: { accept: 'application/json' },
        body: new URLSearchParams([
          ['token', token],
          ['token_type_hint', 'access_token'],
        ]),
      });
      const init = { method: 'POST', headers: { ...headers }, body };
      const { content } = await callIssuer(this.#fetch, { url, init, bounds: BOUNDS });
      if (typeof content !== 'object' || content === null || Array.isArray(content)) throw new Error('no JSON object');
      return frozen(content as JsonObject);
    } catch (error) {
      throw new UnavailableError('introspection_unavailable', error);
    }
  }

  async #authenticated(request: UnsignedRequest): Promise<UnsignedRequest> {
    const options = this.#options;
    if (options.authenticate !== undefined) return await options.authenticate(request);
    const credentials = `${formEncoded(options.clientId)}:${formEncoded(options.clientSecret)}`;
    const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
    return { url: request.url, headers: { ...request.headers, authorization }, body: request.body };
  }
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** RFC 6749 §2.3.1, appendix B. */
function formEncoded(text: string): string {
  return new URLSearchParams([[text, '']]).toString().slice(0, -1);
}
