// Calls of the API with the access of a person. Without one it asks for a sign-in: once, as long as the refresh token lives.

import * as client from 'openid-client';
import type { Session, SessionFile } from './session-file.ts';
import { signIn } from './sign-in.ts';

const SCOPE = 'default/notes.read default/notes.write';

export interface AuthorizedCallsOptions {
  readonly config: client.Configuration;
  readonly file: SessionFile;
  /** Shows a person the address to open. */
  readonly announce: (address: string) => void;
}

export class AuthorizedCalls {
  readonly #config: client.Configuration;
  readonly #file: SessionFile;
  readonly #announce: (address: string) => void;

  constructor({ config, file, announce }: AuthorizedCallsOptions) {
    this.#config = config;
    this.#file = file;
    this.#announce = announce;
  }

  /** A GET, or a POST of JSON. Any answer but a challenge is the caller's. */
  async call(url: URL, json?: unknown): Promise<Response> {
    const session = await this.#file.read();
    if (session === undefined) return await this.#send(await this.#signedIn(), url, json);
    try {
      return await this.#send(session, url, json);
    } catch (error) {
      if (!isRefusedToken(error)) throw error;
      return await this.#send(await this.#renewed(session), url, json);
    }
  }

  /** Revokes what this program has. @returns false without a session */
  async signOut(): Promise<boolean> {
    const session = await this.#file.read();
    if (session === undefined) return false;
    // The access tokens of a grant end with its refresh token (RFC 7009 §2.1).
    await client.tokenRevocation(this.#config, session.refreshToken, { token_type_hint: 'refresh_token' });
    await this.#file.remove();
    return true;
  }

  async #send({ keys, accessToken }: Session, url: URL, json: unknown): Promise<Response> {
    const DPoP = client.getDPoPHandle(this.#config, keys);
    // A proof that needs the nonce of the API is sent again with it (RFC 9449 §9).
    const call = client.fetchProtectedResource;
    if (json === undefined) return await call(this.#config, accessToken, url, 'GET', undefined, undefined, { DPoP });
    const headers = new Headers({ 'content-type': 'application/json' });
    return await call(this.#config, accessToken, url, 'POST', JSON.stringify(json), headers, { DPoP });
  }

  async #signedIn(): Promise<Session> {
    const keys = await client.randomDPoPKeyPair('ES256', { extractable: true });
    const DPoP = client.getDPoPHandle(this.#config, keys);
    const tokens = await signIn({ config: this.#config, DPoP, scope: SCOPE, announce: this.#announce });
    return await this.#keep(keys, tokens);
  }

  async #renewed({ keys, refreshToken }: Session): Promise<Session> {
    const DPoP = client.getDPoPHandle(this.#config, keys);
    try {
      const tokens = await client.refreshTokenGrant(this.#config, refreshToken, undefined, { DPoP });
      return await this.#keep(keys, tokens, refreshToken);
    } catch (error) {
      const hasEnded = error instanceof client.ResponseBodyError && error.error === 'invalid_grant';
      if (!hasEnded) throw error;
      return await this.#signedIn();
    }
  }

  async #keep(
    keys: Session['keys'],
    { access_token: accessToken, refresh_token: newer }: client.TokenEndpointResponse,
    refreshToken = '',
  ): Promise<Session> {
    const session = { keys, accessToken, refreshToken: newer ?? refreshToken };
    await this.#file.write(session);
    return session;
  }
}

function isRefusedToken(error: unknown): boolean {
  if (!(error instanceof client.WWWAuthenticateChallengeError)) return false;
  return error.cause.some(({ parameters }) => parameters.error === 'invalid_token');
}
