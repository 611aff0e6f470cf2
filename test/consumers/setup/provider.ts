// An OpenID provider as the tests of programs see it: its addresses, the person that it knows, and the answers to its pages.

import type { IdentityProvider } from '../../../src/oauth/registry/identity-provider.ts';
import type { TestClient } from '../../grantry.ts';
import type { Page } from '../../http/sign-in/sign-in-browser.ts';

/** The algorithms of ID tokens that programs are tried with. */
export const ALGORITHMS = ['RS256', 'ES256'] as const;
export type IdTokenAlgorithm = (typeof ALGORITHMS)[number];

/** A program that signs people in. */
export interface Consumer {
  readonly clientId: string;
  /** Absent for a public client. */
  readonly secret?: string;
  readonly redirectUri: string;
  /** Of its ID tokens. Default: RS256. */
  readonly algorithm?: IdTokenAlgorithm;
  /** In seconds. Default: an hour. */
  readonly idTokenLifetime?: number;
  /** In seconds. Default: ten minutes. */
  readonly accessTokenLifetime?: number;
  readonly postLogoutRedirectUri?: string;
  readonly backchannelLogoutUri?: string;
  /** Scopes of APIs, beside those of OpenID Connect. Default: none. */
  readonly scopes?: readonly string[];
  /** The APIs that its access tokens may be for. Default: none, so they are for userinfo. */
  readonly audiences?: readonly string[];
  /** The one that they are for where a request names none; the issuer is possible too. */
  readonly defaultAudience?: string;
}

/** A form with what the person puts into it. */
export interface FilledForm {
  readonly action: string;
  readonly fields: Readonly<Record<string, string>>;
}

export interface Provider {
  readonly issuer: string;
  /** The CA of an https issuer, in PEM; undefined with http. */
  readonly authority: string | undefined;
  readonly endpoints: {
    readonly authorization: string;
    readonly token: string;
    readonly userinfo: string;
    readonly endSession: string;
  };
  /** How {@link PERSON} answers a page; undefined for one that asks nothing. */
  answerTo(page: Page): FilledForm | undefined;
  /** From now on the person is in these groups. */
  setGroups(groups: readonly string[]): void;
  /** From now on the person has this name; undefined: none beside the user name. */
  setName(name: string | undefined): void;
  /** Replaces all clients, as edited manifests would. */
  setClients(clients: readonly TestClient[]): void;
  /** From now on people sign in by these alone, once they were tried; without any {@link PERSON} is a local user again. */
  setIdentityProviders(providers: readonly IdentityProvider[]): Promise<void>;
  /** The next keys are in the key set from now on, as a rotation in time begins. */
  publishSigningKey(): Promise<void>;
  /** From now on the next keys sign, published or not; what the old ones signed stays valid. */
  rotateSigningKey(): Promise<void>;
  stop(): Promise<void>;
}

/** The person that each provider of a test knows. */
export const PERSON = {
  username: 'demo',
  name: 'Demo Person',
  email: 'demo@shop.example',
  groups: ['developers', 'on-call'],
} as const;
