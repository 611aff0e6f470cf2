// oidc-provider of npm in this process, as an identity provider: its pages for development, which any password opens, and keys that
// a test replaces. Its ID tokens are thin: claims of a person are at userinfo alone.

import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import OidcProvider from 'oidc-provider';
import { type FilledForm, PERSON } from '../../consumers/setup/provider.ts';
import type { VisitedProvider } from '../../consumers/setup/visitor.ts';
import { freePort } from '../../free-port.ts';
import type { Page } from '../../http/sign-in/sign-in-browser.ts';

export const SECRET = 'the secret of grantry!!!!!!!!!!!';
/** Its clients: each is called as its authentication. */
export const METHODS = ['client_secret_basic', 'client_secret_post'] as const;

export class NpmProvider implements VisitedProvider {
  readonly issuer: string;
  readonly authority = undefined;
  /** It has none: the provider of a visitor names one. */
  readonly endpoints = { endSession: '' };
  /** How often each path was asked. */
  readonly asked = new Map<string, number>();
  readonly answerTo = answerTo;
  readonly #callback: string;
  readonly #server = createServer((request, response) => {
    const path = new URL(request.url ?? '', this.issuer).pathname;
    this.asked.set(path, (this.asked.get(path) ?? 0) + 1);
    this.#answer(request, response);
  });
  #answer: RequestListener = (_request, response) => void response.destroy();

  private constructor(issuer: string, callback: string) {
    this.issuer = issuer;
    this.#callback = callback;
  }

  /** @param callback that of grantry */
  static async start(callback: string): Promise<NpmProvider> {
    const port = await freePort();
    const provider = new NpmProvider(`http://127.0.0.1:${port}`, callback);
    provider.replaceKeys();
    provider.#server.listen(port, '127.0.0.1');
    await once(provider.#server, 'listening');
    return provider;
  }

  /** It signs by a new key from now on, the only one that it publishes; its sessions end. */
  replaceKeys(): void {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    this.#answer = new OidcProvider(this.issuer, configuration(this.#callback, privateKey)).callback();
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

function configuration(callback: string, key: KeyObject): ConstructorParameters<typeof OidcProvider>[1] {
  const { name, username, email } = PERSON;
  return {
    clients: METHODS.map((method) => ({
      client_id: method,
      client_secret: SECRET,
      token_endpoint_auth_method: method,
      application_type: 'native' as const,
      redirect_uris: [callback],
      id_token_signed_response_alg: 'ES256' as const,
    })),
    jwks: { keys: [{ ...key.export({ format: 'jwk' }), kty: 'EC', alg: 'ES256', use: 'sig' }] },
    scopes: ['openid'],
    claims: { profile: ['name', 'preferred_username'], email: ['email', 'email_verified'], groups: ['groups'] },
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: () => ({ sub, name, preferred_username: username, email, email_verified: true, groups: ['developers'] }),
    }),
    pkce: { required: () => true },
    cookies: { keys: ['a key of a test'] },
  };
}

/** Its pages have one form each: of sign-in, and of consent. */
function answerTo({ body }: Page): FilledForm | undefined {
  const action = /<form\b[^>]*\baction="([^"]*)"/.exec(body)?.[1];
  if (action === undefined) return undefined;
  const hidden = [...body.matchAll(/type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(([, name, value]) => [
    name,
    value,
  ]);
  const typed = body.includes('name="password"') ? { login: PERSON.username, password: 'any' } : {};
  return { action, fields: Object.assign(Object.fromEntries(hidden), typed) };
}
