// grantry as the provider of programs: its real pages, a clock that runs, for programs have their own, notices of ended
// sessions, and TLS in front of it where the issuer needs that.

import { hashPassword, type LocalUser, LocalUsers } from '../../../src/login/local/local-users.ts';
import type { IdentityProvider } from '../../../src/oauth/registry/identity-provider.ts';
import {
  generateSigningKeyPem,
  importSigningKey,
  type SigningKey,
  type SigningKeyState,
} from '../../../src/oauth/registry/keys.ts';
import type { MadeCertificate } from '../../client-certificates.ts';
import { fillIn } from '../../clients/person.ts';
import { freePort } from '../../free-port.ts';
import { startGrantry, type TestClient, TestClock } from '../../grantry.ts';
import { ALGORITHMS, type Consumer, PERSON, type Provider } from './provider.ts';
import { startTlsFront } from './tls-front.ts';

const PASSWORD = 'a password of a test';

export interface ProviderWishes {
  readonly consumers?: readonly Consumer[];
  /** More clients, made for the issuer, such as those of `examples.ts`. */
  readonly clients?: (issuer: string) => Promise<readonly TestClient[]>;
  /** Its port, where that has to be known before; the next one is taken, too. Default: free ones. */
  readonly port?: number;
  /** People sign in by these alone. Default: {@link PERSON} is a local user. */
  readonly identityProviders?: readonly IdentityProvider[];
  /** Of `localhost`, for an https issuer. Default: http on 127.0.0.1. */
  readonly tls?: { readonly certificate: MadeCertificate; readonly authority: MadeCertificate };
}

/** Starts it on free ports. */
export async function startGrantryProvider(wishes: ProviderWishes): Promise<Provider> {
  const { consumers = [], clients, tls, identityProviders = [] } = wishes;
  const clock = new TestClock();
  clock.run();
  const passwordHash = await hashPassword(PASSWORD);
  const { username, name: displayName, email, groups } = PERSON;
  let person: LocalUser = { username, displayName, email, groups, passwordHash };
  const owners = new LocalUsers({ clock, users: [person] });
  const change = (changes: Partial<LocalUser>) => {
    person = { ...person, ...changes };
    owners.replace([person]);
  };
  const port = wishes.port ?? (await freePort(2));
  const front = tls && { certificate: tls.certificate, port: await freePort(), upstream: port };
  const issuer = front === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${front.port}`;
  let keys = await newKeys('Active');
  let published: readonly SigningKey[] = [];
  const grantry = await startGrantry({
    clients: [...consumers.map(clientOf), ...((await clients?.(issuer)) ?? [])],
    owners,
    clock,
    keys,
    fetch: { networks: ['127.0.0.0/8', '::1'] },
    port,
    issuer,
  });
  const setIdentityProviders = async (providers: readonly IdentityProvider[]) => {
    owners.replace(providers.length === 0 ? [person] : []);
    await grantry.setProviders(providers);
  };
  if (identityProviders.length > 0) await setIdentityProviders(identityProviders);
  grantry.server.logouts.start();
  const stopFront = front && (await startTlsFront(front));
  return {
    issuer,
    authority: tls?.authority.certificate,
    endpoints: {
      authorization: `${issuer}/authorize`,
      token: `${issuer}/token`,
      userinfo: `${issuer}/userinfo`,
      endSession: `${issuer}/logout`,
    },
    answerTo: (page) => fillIn(page, { username, password: PASSWORD, decision: 'allow' }),
    setGroups: (groups) => change({ groups }),
    setName: (displayName) => change({ displayName }),
    setClients: (changed) => grantry.setClients(changed),
    setIdentityProviders,
    publishSigningKey: async () => {
      published = await newKeys('Published');
      grantry.setKeys([...keys, ...published]);
    },
    rotateSigningKey: async () => {
      const next = published.length > 0 ? published : await newKeys('Published');
      published = [];
      keys = [...inState(next, 'Active'), ...inState(keys, 'Retiring')];
      grantry.setKeys(keys);
    },
    stop: async () => {
      stopFront?.();
      await grantry.server.logouts.stop();
      await grantry.stop();
    },
  };
}

/** One for each algorithm; the first signs access tokens, too. */
async function newKeys(state: SigningKeyState): Promise<readonly SigningKey[]> {
  return await Promise.all(
    ALGORITHMS.toReversed().map(async (algorithm) =>
      importSigningKey(await generateSigningKeyPem(algorithm, 2048), algorithm, state),
    ),
  );
}

function inState(keys: readonly SigningKey[], state: SigningKeyState): readonly SigningKey[] {
  return keys.map((key) => ({ ...key, state }));
}

function clientOf(consumer: Consumer): TestClient {
  const { clientId, secret, redirectUri, postLogoutRedirectUri, backchannelLogoutUri, defaultAudience } = consumer;
  const { algorithm = 'RS256', idTokenLifetime = 3600, accessTokenLifetime, scopes = [], audiences = [] } = consumer;
  return {
    clientId,
    ...(secret !== undefined && { secret }),
    redirectUris: [redirectUri],
    postLogoutRedirectUris: postLogoutRedirectUri === undefined ? [] : [postLogoutRedirectUri],
    backchannelLogoutUri,
    grantTypes: ['authorization_code', 'refresh_token'],
    scopes: ['openid', 'profile', 'email', 'groups', 'offline_access', ...scopes],
    defaultScopes: [],
    audiences,
    defaultAudience,
    idTokens: { signingAlgorithm: algorithm, lifetimeSeconds: idTokenLifetime },
    ...(accessTokenLifetime !== undefined && { tokens: { accessTokenLifetimeSeconds: accessTokenLifetime } }),
  };
}
