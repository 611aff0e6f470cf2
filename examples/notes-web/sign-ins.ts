// The people who are signed in, with their tokens. Those stay on the server: a browser has a cookie that leads to the id of its sign-in.
// In memory here; an application of several processes keeps them in its database.

import { randomUUID } from 'node:crypto';
import * as client from 'openid-client';

/** What the issuer gives for a code, and for a refresh token. */
export interface Tokens {
  readonly access_token?: string | undefined;
  readonly refresh_token?: string | undefined;
  readonly id_token?: string | undefined;
}

export interface SignIn {
  /** Of the person. */
  readonly name: string;
  readonly tokens: Tokens;
}

/** The issuer ended the access: the person has signed out elsewhere, say, or is no longer allowed in. */
export class SignInEnded extends Error {}

/** How long a sign-in lasts at most; that at grantry lasts as long. */
export const LASTS_SECONDS = 12 * 3600;

export class SignIns {
  readonly #config: client.Configuration;
  readonly #ofId = new Map<string, SignIn>();
  readonly #renewals = new Map<string, Promise<Tokens>>();

  /** @param config of the client at its issuer */
  constructor(config: client.Configuration) {
    this.#config = config;
  }

  /**
   * @param claims of the ID token
   * @returns the id of the sign-in, which the session of the browser keeps
   */
  begin({ name, preferred_username: username }: Readonly<Record<string, unknown>>, tokens: Tokens): string {
    const id = randomUUID();
    this.#ofId.set(id, { name: String(name ?? username), tokens });
    setTimeout(() => this.end(id), LASTS_SECONDS * 1000).unref();
    return id;
  }

  /** The sign-in, as long as it lasts. */
  find(id: string): SignIn | undefined {
    return this.#ofId.get(id);
  }

  /** Ends it here; the issuer is not asked. @returns what it was */
  end(id: string): SignIn | undefined {
    const signIn = this.#ofId.get(id);
    this.#ofId.delete(id);
    return signIn;
  }

  /**
   * Calls the API on the person's behalf. An access token that it refuses, because it has expired, is renewed once.
   * @param json what is posted; a GET without it
   * @throws SignInEnded where the issuer does not renew it
   */
  async call(id: string, url: URL, json?: object): Promise<Response> {
    const { tokens } = this.#lasting(id);
    try {
      return await this.#send(tokens, url, json);
    } catch (error) {
      if (!isRefusedToken(error)) throw error;
      return await this.#send(await this.#renewed(id, tokens), url, json);
    }
  }

  #lasting(id: string): SignIn {
    const signIn = this.#ofId.get(id);
    if (signIn === undefined) throw new SignInEnded();
    return signIn;
  }

  async #send({ access_token: token = '' }: Tokens, url: URL, json?: object): Promise<Response> {
    if (json === undefined) return await client.fetchProtectedResource(this.#config, token, url, 'GET');
    const headers = new Headers({ 'content-type': 'application/json' });
    return await client.fetchProtectedResource(this.#config, token, url, 'POST', JSON.stringify(json), headers);
  }

  /** Tokens in place of refused ones. Requests that need them at the same time share one renewal: each refresh token is good once. */
  async #renewed(id: string, refused: Tokens): Promise<Tokens> {
    const { tokens } = this.#lasting(id);
    if (tokens !== refused) return tokens;
    const renewal = this.#renewals.get(id) ?? this.#renew(id, refused).finally(() => this.#renewals.delete(id));
    this.#renewals.set(id, renewal);
    return await renewal;
  }

  async #renew(id: string, old: Tokens): Promise<Tokens> {
    try {
      const tokens = { ...old, ...(await client.refreshTokenGrant(this.#config, old.refresh_token ?? '')) };
      // The person may have signed out while the issuer was asked.
      this.#ofId.set(id, { ...this.#lasting(id), tokens });
      return tokens;
    } catch (error) {
      if (!(error instanceof client.ResponseBodyError && error.error === 'invalid_grant')) throw error;
      this.end(id);
      throw new SignInEnded();
    }
  }
}

function isRefusedToken(error: unknown): boolean {
  if (!(error instanceof client.WWWAuthenticateChallengeError)) return false;
  return error.cause.some(({ parameters }) => parameters.error === 'invalid_token');
}
