// Sign-in by an OpenID provider: the authorization code flow with PKCE, state, nonce and the issuer of the answer (RFC 9207).
// openid-client makes and checks the messages; it is loaded when a provider of this type is first discovered.

import type * as OpenidClient from 'openid-client';
import type { ProviderAnswer, Return, SignInRequest, StartedSignIn } from '../../oauth/ports/upstream-provider.ts';
import type { OidcProvider, ProviderCredentials } from '../../oauth/registry/identity-provider.ts';
import { admitPerson, type Claims, completed, factsOf, hasRequiredClaims, lacksMapped } from './claims.ts';
import { type EndpointName, faultDetail, isCodeRefused } from './fault-detail.ts';
import {
  answerOfError,
  answerOfFault,
  type Discovery,
  type ProviderClient,
  type ProviderClientOptions,
} from './provider-client.ts';
import { isPermitted, UpstreamFetch } from './upstream-fetch.ts';

/** How far the clock of the provider may be from ours, seconds. */
const CLOCK_TOLERANCE = 60;
/** The endpoints of its metadata that a browser or a server is sent to. */
const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri'] as const;

/** The discovered metadata, with the keys that were fetched since. */
interface Discovered {
  /** The metadata as text, by which a change is found. */
  readonly text: string;
  readonly config: OpenidClient.Configuration;
  readonly client: typeof OpenidClient;
}

export class OidcProviderClient implements ProviderClient {
  #provider: OidcProvider;
  readonly #credentials: ProviderCredentials;
  readonly #isClaimedElsewhere: ProviderClientOptions['isClaimedElsewhere'];
  readonly #allowsPlain: boolean;
  readonly #fetch: UpstreamFetch;
  #discovered: Discovered | undefined;

  constructor(provider: OidcProvider, { credentials, isClaimedElsewhere }: ProviderClientOptions) {
    this.#provider = provider;
    this.#credentials = credentials;
    this.#isClaimedElsewhere = isClaimedElsewhere;
    this.#allowsPlain = provider.issuer.startsWith('http://');
    this.#fetch = new UpstreamFetch({ authorities: credentials.authorities, allowsPlain: this.#allowsPlain });
  }

  /** Fetches the metadata. Where that fails the former metadata stands. */
  async discover(): Promise<Discovery> {
    const client = await import('openid-client');
    const found = await this.#metadata(client);
    if ('reach' in found) return found;
    const text = JSON.stringify(found.metadata);
    // Another Configuration would fetch the same keys again.
    if (this.#discovered?.text !== text) {
      this.#discovered = { text, config: this.#configure(client, found.metadata), client };
    }
    return { reach: 'Reachable' };
  }

  async verifyCredentials(callbackUrl: string): Promise<string | undefined> {
    if (this.#discovered === undefined) return undefined;
    const { client, config } = this.#discovered;
    const code = { code: client.randomState(), code_verifier: client.randomPKCECodeVerifier() };
    try {
      await client.genericGrantRequest(config, 'authorization_code', { ...code, redirect_uri: callbackUrl });
    } catch (fault) {
      if (!isCodeRefused(fault)) return faultDetail(fault, this.#nameOf);
    }
    const { jwks_uri = '' } = config.serverMetadata();
    try {
      const answer = await this.#fetch.fetch(jwks_uri, {});
      if (answer.status !== 200) throw new Error('an identity provider has no key set', { cause: answer });
      const { keys } = (await answer.json()) as { readonly keys?: unknown };
      return Array.isArray(keys) && keys.length > 0 ? undefined : 'the key set has no keys';
    } catch (fault) {
      return faultDetail(fault, this.#nameOf);
    }
  }

  follow(provider: OidcProvider): void {
    this.#provider = provider;
  }

  /** Forgets the discovered metadata: it is too old to be relied on. */
  forget(): void {
    this.#discovered = undefined;
  }

  close(): void {
    this.#fetch.close();
  }

  async begin(request: SignInRequest): Promise<StartedSignIn | 'unavailable'> {
    if (this.#discovered === undefined) return 'unavailable';
    const { config, client } = this.#discovered;
    const { scopes, acrValues } = this.#provider;
    const state = client.randomState();
    const nonce = client.randomNonce();
    const codeVerifier = client.randomPKCECodeVerifier();
    const parameters = {
      redirect_uri: request.callbackUrl,
      scope: scopes.join(' '),
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256',
      acr_values: acrValues.length > 0 ? acrValues.join(' ') : undefined,
      prompt: request.prompt,
      max_age: request.maxAge?.toString(),
      login_hint: request.loginHint,
      ui_locales: request.uiLocales,
    };
    const sent = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const location = client.buildAuthorizationUrl(config, new URLSearchParams(sent)).href;
    return { location, state, nonce, codeVerifier };
  }

  async finish(returned: Return): Promise<ProviderAnswer> {
    if (this.#discovered === undefined) return { outcome: 'unavailable' };
    const error = returned.parameters.get('error');
    try {
      // The library believes no error whose state or issuer is not that of the provider either.
      const claims = await this.#redeem(returned, this.#discovered);
      return this.#answerFor(claims);
    } catch (fault) {
      const { AuthorizationResponseError } = this.#discovered.client;
      if (error !== null && fault instanceof AuthorizationResponseError) return answerOfError(error);
      return answerOfFault(fault, this.#nameOf);
    }
  }

  /** The claims of the ID token, and of userinfo where one that is needed is missing. The tokens are dropped. */
  async #redeem({ parameters, callbackUrl, pending }: Return, { client, config }: Discovered): Promise<Claims> {
    const answer = new URL(callbackUrl);
    answer.search = parameters.toString();
    const tokens = await client.authorizationCodeGrant(config, answer, {
      pkceCodeVerifier: pending.codeVerifier,
      expectedState: pending.state,
      expectedNonce: pending.nonce,
      idTokenExpected: true,
    });
    const claims: Claims | undefined = tokens.claims();
    if (claims === undefined) throw new Error('an identity provider has sent no ID token');
    const { userinfo_endpoint } = config.serverMetadata();
    if (userinfo_endpoint === undefined || !lacksMapped(claims, this.#provider)) return claims;
    const more = await client.fetchUserInfo(config, tokens.access_token, String(claims.sub));
    return completed(claims, more, this.#provider);
  }

  #answerFor(claims: Claims): ProviderAnswer {
    const facts = factsOf(claims, this.#provider);
    if (facts === undefined)
      return { outcome: 'invalid', detail: `the ID token has no usable ${this.#provider.subjectClaim}` };
    if (!hasRequiredClaims(claims, this.#provider)) {
      return { outcome: 'refused', reason: 'person_not_permitted', username: facts.username };
    }
    return admitPerson(facts, this.#provider, this.#isClaimedElsewhere);
  }

  async #metadata(
    client: typeof OpenidClient,
  ): Promise<Discovery | { readonly metadata: OpenidClient.ServerMetadata }> {
    const { issuer } = this.#provider;
    const execute = this.#allowsPlain ? [client.allowInsecureRequests] : [];
    try {
      const found = await client.discovery(new URL(issuer), this.#credentials.clientId, undefined, client.None(), {
        execute,
        [client.customFetch]: this.#call,
      });
      const { issuer: named, ...rest } = found.serverMetadata();
      // The library compares addresses; an ID token is compared by its characters.
      if (named !== issuer) return otherIssuer(named);
      const addresses = ENDPOINTS.map((name) => rest[name]);
      const [authorization, token, , keys] = addresses;
      if (authorization === undefined || token === undefined || keys === undefined) {
        return { reach: 'DiscoveryFailed', detail: 'the discovery document lacks an endpoint' };
      }
      const arePermitted = addresses.every(
        (address) => address === undefined || isPermitted(address, { allowsPlain: this.#allowsPlain }),
      );
      if (arePermitted) return { metadata: plain(found.serverMetadata()) };
      return { reach: 'DiscoveryFailed', detail: 'the discovery document has an endpoint without TLS' };
    } catch (fault) {
      const isOther = fault instanceof client.ClientError && fault.code === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED';
      if (isOther) return otherIssuer((fault.cause as { readonly body?: Claims }).body?.issuer);
      return { reach: 'DiscoveryFailed', detail: faultDetail(fault, this.#nameOf) };
    }
  }

  #configure(client: typeof OpenidClient, metadata: OpenidClient.ServerMetadata): OpenidClient.Configuration {
    const { clientId, clientSecret = '' } = this.#credentials;
    const authentications = {
      client_secret_basic: client.ClientSecretBasic,
      client_secret_post: client.ClientSecretPost,
      none: client.None,
    };
    const authentication = authentications[this.#provider.clientAuth](clientSecret);
    const tolerance = { [client.clockTolerance]: CLOCK_TOLERANCE };
    const config = new client.Configuration(metadata, clientId, tolerance, authentication);
    config[client.customFetch] = this.#call;
    client.enableNonRepudiationChecks(config);
    if (this.#allowsPlain) client.allowInsecureRequests(config);
    return config;
  }

  readonly #nameOf: EndpointName = (url) => {
    const metadata = this.#discovered?.config.serverMetadata();
    if (metadata === undefined || url === undefined) return 'the discovery document';
    if (url === metadata.jwks_uri) return 'the key set';
    if (url === metadata.userinfo_endpoint) return 'userinfo';
    return url === metadata.token_endpoint ? 'the token endpoint' : 'the discovery document';
  };

  readonly #call: OpenidClient.CustomFetch = async (url, { method, headers, body }) =>
    (await this.#fetch.fetch(url, { method, headers, body: body as string | URLSearchParams })) as unknown as Response;
}

/** The issuer of the document is shown where it can be one. */
function otherIssuer(named: unknown): Discovery {
  const isShown = typeof named === 'string' && /^https?:\/\/[!-~]{1,80}$/.test(named);
  const detail = isShown ? `the document names the issuer ${named}` : 'the document names another issuer';
  return { reach: 'IssuerMismatch', detail };
}

/** Without the helper methods that openid-client adds. */
function plain(metadata: OpenidClient.ServerMetadata): OpenidClient.ServerMetadata {
  return JSON.parse(JSON.stringify(metadata));
}
