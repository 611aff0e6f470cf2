// A server that makes every kind of token, with clients whose registered keys are those of the server itself: whatever it has
// signed has a good signature there.

import { randomBytes } from 'node:crypto';
import type { Stores } from '../../../../src/oauth/ports/ports.ts';
import {
  generateSigningKeyPem,
  importSigningKey,
  KeyRing,
  type SigningKey,
} from '../../../../src/oauth/registry/keys.ts';
import { LogoutTokens } from '../../../../src/oauth/tokens/logout-tokens.ts';
import { readJwk } from '../../../../src/oauth/values/jwk.ts';
import { type Grantry, PKCE, startGrantry, type TestClient } from '../../../grantry.ts';
import { hidden, TestBrowser } from '../../sign-in/sign-in-browser.ts';
import { WEB } from '../token-calls.ts';
import { aPerson, OPENID_CLIENT, PASSWORD, PERSONAL, personTokens } from './userinfo-calls.ts';

const ISSUER = 'https://id.example';
const SID = 'sid-of-another-session';
export const CALLBACK = 'https://app.example/cb';
export const OPAQUE = { clientId: 'shop.opaque', secret: 'the-secret-of-the-opaque-application' } as const;
export const WIKI = { clientId: 'shop.wiki', secret: 'the-secret-of-another-application' } as const;
export const POD = 'shop.pod';

/** Each kind of token of this server, and a code. */
export type Kind = 'ID token' | 'access token' | 'opaque token' | 'refresh token' | 'logout token' | 'code';

/** The actions of stores that change nothing. */
const READS = ['read', 'has', 'use', 'find', 'get', 'list'];

const OPAQUE_TOKENS = {
  accessTokenFormat: 'opaque',
  accessTokenLifetimeSeconds: 600,
  refreshTokenIdleLifetimeSeconds: 1000,
  refreshTokenLifetimeSeconds: 3000,
  refreshTokenRotation: 'Always',
  refreshTokenReuseGraceSeconds: 10,
} as const;

export interface TokenWorld {
  readonly grantry: Grantry;
  readonly keys: Readonly<Record<'accessTokens' | 'idTokens' | 'foreign', SigningKey>>;
  /** Of the person, signed in. */
  readonly browser: TestBrowser;
  /** A new one of each kind, of the person at this client; the opaque one is of {@link OPAQUE}. */
  tokens(client?: typeof WEB | typeof WIKI): Promise<Readonly<Record<Kind, string>>>;
  signIn(): Promise<void>;
  /** The calls of stores since the last time that may have changed something. */
  takeWrites(): readonly string[];
}

/** The world ends with the file. */
export async function aTokenWorld(): Promise<TokenWorld> {
  const [accessTokens, idTokens, foreign] = await Promise.all([aKeyOf('ES256'), aKeyOf('RS256'), aKeyOf('RS256')]);
  const keys = [accessTokens, idTokens];
  const { owners, subject } = await aPerson();
  const calls: string[] = [];
  const grantry = await startGrantry({
    issuer: ISSUER,
    owners,
    keys,
    clients: clientsWith(keys),
    clusterIssuer: { current: async () => ({ issuer: ISSUER, keys: keys.map(registered) }) },
    wrapStores: (stores) => recording(stores, calls),
  });
  const browser = new TestBrowser(`http://127.0.0.1:${grantry.port}`, ISSUER);
  const signIn = async () => {
    const page = await browser.get(authorizePath());
    const fields = { csrf: hidden(page, 'csrf'), request: hidden(page, 'request') };
    await browser.post('/login', { username: 'alice', password: PASSWORD, ...fields });
  };
  await signIn();
  const options = { issuer: ISSUER, clock: grantry.clock, random: { bytes: randomBytes }, endOfTick: setImmediate };
  const logoutTokens = new LogoutTokens(options);
  return {
    grantry,
    keys: { accessTokens, idTokens, foreign },
    browser,
    signIn,
    async tokens(client = WEB) {
      const openid = { sid: SID, nonce: undefined };
      const issued = await personTokens(grantry, { ...client, subject, openid });
      const opaque = await personTokens(grantry, { ...OPAQUE, subject });
      const logoutToken = await logoutTokens.issue(grantry.client(client.clientId), new KeyRing(keys), {
        subject,
        sid: SID,
      });
      return {
        'ID token': String(issued.id_token),
        'access token': String(issued.access_token),
        'opaque token': String(opaque.access_token),
        'refresh token': String(issued.refresh_token),
        'logout token': String(logoutToken),
        code: await grantry.issueCode(client.clientId, { subject, scope: PERSONAL, audiences: [ISSUER], openid }),
      };
    },
    takeWrites: () => calls.splice(0).filter((call) => !READS.includes(call.split('.')[1] ?? '')),
  };
}

/** A good request of {@link WEB} with scope openid, and more. */
export function authorizePath(more: Readonly<Record<string, string>> = {}): string {
  const request = {
    response_type: 'code',
    client_id: WEB.clientId,
    redirect_uri: CALLBACK,
    scope: 'openid',
    state: 'the-state',
    code_challenge: PKCE.challenge,
    code_challenge_method: 'S256',
  };
  return `/authorize?${new URLSearchParams({ ...request, ...more })}`;
}

function clientsWith(keys: readonly SigningKey[]): readonly TestClient[] {
  const openid = {
    ...OPENID_CLIENT,
    idTokens: { signingAlgorithm: 'RS256', lifetimeSeconds: 3600 },
    consent: 'Skip',
    redirectUris: [CALLBACK],
  } as const;
  const machine = { grantTypes: ['client_credentials'], redirectUris: [], namespace: 'shop' };
  const assertion = {
    keys: keys.map(registered),
    algorithms: keys.map(({ algorithm }) => algorithm),
    acceptTokenEndpointAudience: true,
  };
  const serviceAccounts = [{ name: 'pod', uid: 'uid-of-the-account' }];
  return [
    { ...WEB, ...openid },
    { ...WIKI, ...openid },
    { ...OPAQUE, ...openid, tokens: OPAQUE_TOKENS },
    { ...machine, clientId: 'shop.keyed', authMethod: 'private_key_jwt', assertion },
    { ...machine, clientId: POD, authMethod: 'kubernetes_service_account', serviceAccounts },
  ];
}

async function aKeyOf(algorithm: 'ES256' | 'RS256'): Promise<SigningKey> {
  return importSigningKey(await generateSigningKeyPem(algorithm, 2048), algorithm, 'Active');
}

/** A key of the server as a client, or a cluster, publishes its own. */
function registered({ publicJwk }: SigningKey) {
  const key = readJwk(publicJwk);
  if (typeof key === 'string') throw new Error(key);
  return key;
}

/** The stores; each call is recorded. */
function recording(stores: Stores, calls: string[]): Stores {
  const entries = Object.entries(stores).map(([name, store]: [string, object]) => [
    name,
    new Proxy(store, {
      get(target, action) {
        const method: unknown = Reflect.get(target, action);
        if (typeof method !== 'function') return method;
        return (...given: unknown[]) => {
          calls.push(`${name}.${String(action)}`);
          return method.apply(target, given);
        };
      },
    }),
  ]);
  return Object.fromEntries(entries) as Stores;
}
