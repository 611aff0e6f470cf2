// A grantry without people of its own, and its one client: a shop that people sign in to by identity providers.

import { LocalUsers } from '../../../src/login/local/local-users.ts';
import type { IdentityProvider } from '../../../src/oauth/registry/identity-provider.ts';
import type { FilledForm } from '../../consumers/setup/provider.ts';
import type { AnsweredPages, Visitor } from '../../consumers/setup/visitor.ts';
import { freePort } from '../../free-port.ts';
import { basic, type Grantry, PKCE, startGrantry, TestClock } from '../../grantry.ts';
import type { Page } from '../../http/sign-in/sign-in-browser.ts';

const CLIENT_ID = 'shop';
const CLIENT_SECRET = 'the secret of the shop!!!!!!!!!!';
export const SHOP_CALLBACK = 'https://shop.example/callback';
/** What it asks for. */
export const SCOPES = ['openid', 'profile', 'email', 'groups'];

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly id_token: string;
}

export class Shop implements AnsweredPages {
  readonly grantry: Grantry;

  private constructor(grantry: Grantry) {
    this.grantry = grantry;
  }

  /** Starts grantry with a clock that runs; it ends with the file. @param postLogoutRedirectUris default: none */
  static async start(postLogoutRedirectUris: readonly string[] = []): Promise<Shop> {
    const clock = new TestClock();
    clock.run();
    const client = {
      clientId: CLIENT_ID,
      secret: CLIENT_SECRET,
      redirectUris: [SHOP_CALLBACK],
      postLogoutRedirectUris,
      grantTypes: ['authorization_code', 'refresh_token'] as const,
      scopes: SCOPES,
      defaultScopes: SCOPES,
      consent: 'Skip' as const,
      idTokens: { signingAlgorithm: 'ES256' as const, lifetimeSeconds: 3600 },
    };
    const owners = new LocalUsers({ clock, users: [] });
    return new Shop(await startGrantry({ port: await freePort(2), clock, owners, clients: [client] }));
  }

  get issuer(): string {
    return this.grantry.issuer;
  }

  /** The first button of a provider. */
  answerTo({ body }: Pick<Page, 'body'>): FilledForm | undefined {
    const [form = '', action] =
      /<form\b[^>]*\baction="([^"]*\/login\/upstream\/[^"]*)"[\s\S]*?<\/form>/.exec(body) ?? [];
    if (action === undefined) return undefined;
    const fields = [...form.matchAll(/type="hidden" name="([^"]*)" value="([^"]*)"/g)].map(([, ...field]) => field);
    return { action, fields: Object.fromEntries(fields) };
  }

  /** The callback address of a provider of this name. */
  callbackOf(name: string): string {
    return `${this.grantry.issuer}/login/callback/${name}`;
  }

  /** Replaces the providers, once each of them was tried. */
  setProviders(...providers: readonly IdentityProvider[]): Promise<void> {
    return this.grantry.setProviders(providers);
  }

  /** The path of its authorization request, with more parameters. */
  authorizePath(more: Readonly<Record<string, string>> = {}): string {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: CLIENT_ID,
      redirect_uri: SHOP_CALLBACK,
      scope: SCOPES.join(' '),
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
      ...more,
    });
    return `/authorize?${query}`;
  }

  /** The tokens of a visitor that comes to it. */
  async signIn(visitor: Visitor, more: Readonly<Record<string, string>> = {}): Promise<Tokens> {
    const arrived = await visitor.answerTo(this.grantry.url(this.authorizePath(more)), SHOP_CALLBACK);
    return await this.redeem(arrived);
  }

  /** @param arrived its redirect URI with the answer */
  async redeem(arrived: URL): Promise<Tokens> {
    const code = arrived.searchParams.get('code');
    if (code === null) throw new Error(`the answer is ${arrived.search}`);
    const form = { grant_type: 'authorization_code', code, redirect_uri: SHOP_CALLBACK, code_verifier: PKCE.verifier };
    return (await (await this.#post('/token', form)).json()) as Tokens;
  }

  /** The address that ends the session of these tokens. @param returnTo where the browser goes then; default: a page */
  logoutAddress({ id_token }: Pick<Tokens, 'id_token'>, returnTo?: string): string {
    const query = new URLSearchParams({ id_token_hint: id_token });
    if (returnTo !== undefined) query.set('post_logout_redirect_uri', returnTo);
    return this.grantry.url(`/logout?${query}`);
  }

  async refresh({ refresh_token }: Pick<Tokens, 'refresh_token'>): Promise<Tokens> {
    const answer = await this.#post('/token', { grant_type: 'refresh_token', refresh_token });
    if (answer.status !== 200) throw new Error(`the refresh was answered ${answer.status}`);
    return (await answer.json()) as Tokens;
  }

  /** What userinfo says. */
  async claims({ access_token }: Pick<Tokens, 'access_token'>): Promise<Record<string, unknown>> {
    const headers = { authorization: `Bearer ${access_token}` };
    return (await (await fetch(this.grantry.url('/userinfo'), { headers })).json()) as Record<string, unknown>;
  }

  #post(path: string, form: Record<string, string>): Promise<Response> {
    return this.grantry.post(path, form, { headers: { authorization: basic(CLIENT_ID, CLIENT_SECRET) } });
  }
}
