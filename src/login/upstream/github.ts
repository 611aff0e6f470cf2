// Sign-in by GitHub, which is no OpenID provider: the code of an OAuth app is redeemed, and its API is asked who the person is.

import type * as OpenidClient from 'openid-client';
import type { ProviderAnswer, Return, SignInRequest, StartedSignIn } from '../../oauth/ports/upstream-provider.ts';
import type { GitHubProvider, ProviderCredentials } from '../../oauth/registry/identity-provider.ts';
import { addressIn, admitPerson, type Facts, isObject, nameIn, subjectOf } from './claims.ts';
import { type EndpointName, faultDetail, isCodeRefused } from './fault-detail.ts';
import {
  answerOfError,
  answerOfFault,
  type Discovery,
  type ProviderClient,
  type ProviderClientOptions,
} from './provider-client.ts';
import { UpstreamFetch } from './upstream-fetch.ts';

const SCOPE = 'read:org user:email';
const PAGE = 100;
const PAGES_MAX = 10;

export class GitHubProviderClient implements ProviderClient {
  #provider: GitHubProvider;
  readonly #credentials: ProviderCredentials;
  readonly #isClaimedElsewhere: ProviderClientOptions['isClaimedElsewhere'];
  readonly #addresses: Addresses;
  readonly #fetch: UpstreamFetch;
  #loaded: { readonly client: typeof OpenidClient; readonly config: OpenidClient.Configuration } | undefined;

  constructor(provider: GitHubProvider, { credentials, isClaimedElsewhere }: ProviderClientOptions) {
    this.#provider = provider;
    this.#credentials = credentials;
    this.#isClaimedElsewhere = isClaimedElsewhere;
    this.#addresses = addressesOf(provider.host);
    this.#fetch = new UpstreamFetch({ authorities: credentials.authorities, allowsPlain: false });
  }

  /** Its endpoints are known; whether it can be reached shows when a person signs in. */
  async discover(): Promise<Discovery> {
    const client = await import('openid-client');
    const { clientId, clientSecret } = this.#credentials;
    const { site } = this.#addresses;
    const metadata = {
      issuer: site,
      authorization_endpoint: `${site}/login/oauth/authorize`,
      token_endpoint: `${site}/login/oauth/access_token`,
    };
    const config = new client.Configuration(metadata, clientId, {}, client.ClientSecretPost(clientSecret ?? ''));
    config[client.customFetch] = this.#call;
    this.#loaded ??= { client, config };
    return { reach: 'Reachable' };
  }

  async verifyCredentials(callbackUrl: string): Promise<string | undefined> {
    if (this.#loaded === undefined) return undefined;
    const { client, config } = this.#loaded;
    const parameters = { code: client.randomState(), redirect_uri: callbackUrl };
    try {
      await client.genericGrantRequest(config, 'authorization_code', parameters);
      return undefined;
    } catch (fault) {
      return isCodeRefused(fault) ? undefined : faultDetail(fault, this.#nameOf);
    }
  }

  follow(provider: GitHubProvider): void {
    this.#provider = provider;
  }

  forget(): void {}

  close(): void {
    this.#fetch.close();
  }

  async begin(request: SignInRequest): Promise<StartedSignIn | 'unavailable'> {
    if (this.#loaded === undefined) return 'unavailable';
    const { client, config } = this.#loaded;
    const state = client.randomState();
    const codeVerifier = client.randomPKCECodeVerifier();
    const parameters = new URLSearchParams({
      redirect_uri: request.callbackUrl,
      scope: SCOPE,
      state,
      code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256',
    });
    // It offers no repeated sign-in, only the choice of an account.
    if (request.prompt !== undefined) parameters.set('prompt', 'select_account');
    if (request.loginHint !== undefined) parameters.set('login', request.loginHint);
    return { location: client.buildAuthorizationUrl(config, parameters).href, state, codeVerifier, nonce: '' };
  }

  async finish({ parameters, callbackUrl, pending }: Return): Promise<ProviderAnswer> {
    if (this.#loaded === undefined) return { outcome: 'unavailable' };
    const { client, config } = this.#loaded;
    const answer = new URL(callbackUrl);
    answer.search = parameters.toString();
    const error = parameters.get('error');
    try {
      const tokens = await client.authorizationCodeGrant(config, answer, {
        pkceCodeVerifier: pending.codeVerifier,
        expectedState: pending.state,
      });
      return await this.#answerFor(tokens.access_token);
    } catch (fault) {
      if (error !== null && fault instanceof client.AuthorizationResponseError) return answerOfError(error);
      return answerOfFault(fault, this.#nameOf);
    }
  }

  async #answerFor(token: string): Promise<ProviderAnswer> {
    const user = await this.#read('/user', token);
    const { id, login, name } = isObject(user) ? user : {};
    const username = nameIn(login);
    if (!Number.isSafeInteger(id) || username === undefined) return { outcome: 'invalid' };
    const organizations = await this.#organizations(token);
    if (this.#provider.organizations.length > 0 && organizations.length === 0) {
      return { outcome: 'refused', reason: 'person_not_permitted', username };
    }
    const facts: Facts = {
      subject: subjectOf('github', this.#provider.host, String(id)),
      username,
      displayName: nameIn(name),
      ...(await this.#email(token)),
      groups: [...organizations, ...(await this.#teams(token, organizations))],
      authTime: undefined,
    };
    return admitPerson(facts, this.#provider, this.#isClaimedElsewhere);
  }

  /** The logins of the listed organizations that the person is a member of: anyone may found one that is called `admins`. */
  async #organizations(token: string): Promise<readonly string[]> {
    const listed = new Map(this.#provider.organizations.map((login) => [login.toLowerCase(), login]));
    if (listed.size === 0) return [];
    const logins = (await this.#list('/user/orgs', token)).map(({ login }) => listed.get(String(login).toLowerCase()));
    return logins.filter((login) => login !== undefined);
  }

  /** `<organization>:<team>` of the person's teams in these organizations. */
  async #teams(token: string, organizations: readonly string[]): Promise<readonly string[]> {
    if (organizations.length === 0) return [];
    const of = new Map(organizations.map((login) => [login.toLowerCase(), login]));
    const teams = await this.#list('/user/teams', token);
    return teams.flatMap(({ slug, organization }) => {
      const login = isObject(organization) ? of.get(String(organization.login).toLowerCase()) : undefined;
      const team = nameIn(slug);
      return login === undefined || team === undefined ? [] : [`${login}:${team}`];
    });
  }

  /** The primary address, if it is verified. */
  async #email(token: string): Promise<Pick<Facts, 'email' | 'isEmailVerified'>> {
    const primary = (await this.#list('/user/emails', token)).find((entry) => entry.primary === true);
    return { email: addressIn(primary?.email), isEmailVerified: primary?.verified === true };
  }

  async #list(path: string, token: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const found: Readonly<Record<string, unknown>>[] = [];
    for (let page = 1; page <= PAGES_MAX; page += 1) {
      const entries = await this.#read(`${path}?per_page=${PAGE}&page=${page}`, token);
      if (!Array.isArray(entries)) throw new Error('GitHub has answered with no list');
      found.push(...entries.filter(isObject));
      if (entries.length < PAGE) break;
    }
    return found;
  }

  async #read(path: string, token: string): Promise<unknown> {
    const headers = {
      accept: 'application/vnd.github+json',
      authorization: `Bearer ${token}`,
      'user-agent': 'grantry',
      'x-github-api-version': '2022-11-28',
    };
    const response = await this.#fetch.fetch(`${this.#addresses.api}${path}`, { headers });
    if (response.status !== 200) throw new Error('GitHub has refused a call of its API', { cause: response });
    return await response.json();
  }

  readonly #nameOf: EndpointName = (url) => (url?.startsWith(this.#addresses.api) ? 'the API' : 'the token endpoint');

  /** GitHub answers a faulty request for a token with status 200. */
  readonly #call: OpenidClient.CustomFetch = async (url, { method, headers, body }) => {
    const response = await this.#fetch.fetch(url, { method, headers, body: body as URLSearchParams });
    const text = await response.text();
    const status = response.status === 200 && isError(text) ? 400 : response.status;
    return Object.defineProperty(new Response(text, { status, headers: [...response.headers] }), 'url', { value: url });
  };
}

interface Addresses {
  readonly site: string;
  readonly api: string;
}

function addressesOf(host: string): Addresses {
  const site = `https://${host}`;
  return { site, api: host === 'github.com' ? 'https://api.github.com' : `${site}/api/v3` };
}

function isError(text: string): boolean {
  try {
    const body: unknown = JSON.parse(text);
    return isObject(body) && 'error' in body;
  } catch {
    return false;
  }
}
