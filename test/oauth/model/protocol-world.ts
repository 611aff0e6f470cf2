// The protocol without HTTP: its endpoints over given stores, with a small cast of clients, one person and a clock that only
// the test moves. What a client receives and what it is refused come back as plain values.

import { randomBytes } from 'node:crypto';
import { ReplayMarks } from '../../../src/oauth/client-auth/replay-marks.ts';
import { ProofNonces } from '../../../src/oauth/dpop/nonces.ts';
import { ProofVerifier } from '../../../src/oauth/dpop/proof.ts';
import { AuthorizationEndpoint } from '../../../src/oauth/endpoints/authorization-endpoint.ts';
import { IntrospectionEndpoint, type IntrospectionResponse } from '../../../src/oauth/endpoints/introspection.ts';
import { RevocationEndpoint } from '../../../src/oauth/endpoints/revocation.ts';
import { TokenEndpoint, type TokenResponse } from '../../../src/oauth/endpoints/token-endpoint.ts';
import { UNLIMITED_STATE } from '../../../src/oauth/limits/state-limits.ts';
import type { AuditEvent } from '../../../src/oauth/ports/audit.ts';
import { clusterIssuerUnavailable } from '../../../src/oauth/ports/cluster-issuer.ts';
import { OAuthError } from '../../../src/oauth/ports/error.ts';
import { keySetUnavailable } from '../../../src/oauth/ports/key-sets.ts';
import type { Clock, Stores } from '../../../src/oauth/ports/ports.ts';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { secretVerifier } from '../../../src/oauth/registry/client-secret.ts';
import { generateSigningKeyPem, importSigningKey, KeyRing } from '../../../src/oauth/registry/keys.ts';
import { Registry } from '../../../src/oauth/registry/registry.ts';
import { Handles } from '../../../src/oauth/tokens/handles.ts';
import { IdTokens } from '../../../src/oauth/tokens/id-tokens.ts';
import { AccessTokens } from '../../../src/oauth/tokens/tokens.ts';
import { Parameters } from '../../../src/oauth/values/parameters.ts';
import { s256 } from '../../../src/oauth/values/pkce.ts';
import { DpopHolder } from '../../dpop-holder.ts';
import { aClient } from '../a-client.ts';

const ISSUER = 'https://auth.example';
const TOKEN_URL = `${ISSUER}/token`;
export const API = 'https://api.example/';
export const PERSON = 'usr_alice0000000000000000';
export const SCOPES = ['read', 'write', 'admin'] as const;

const PLAIN = aClient().tokens;
const KEYED = {
  authMethod: 'none',
  senderConstraint: 'DPoP',
  grantTypes: ['authorization_code', 'refresh_token'],
} as const;
const COMMON = { scopes: SCOPES, defaultScopes: ['read'], audiences: [API] };

/** A client's own callback, then those of all: none is refused as unregistered before the grant is checked. */
function callbacks(own: string): readonly string[] {
  return [own, 'web', 'app', 'batch', 'phone', 'kiosk', 'thief'].map((name) => `https://${name}.example/cb`);
}

/** The clients that take part: five ways to hold a refresh token, one that holds another's, and the API the tokens are for. */
const CAST = {
  web: aClient({ ...COMMON, uid: 'uid-web', clientId: 'shop.web', redirectUris: callbacks('web') }),
  /** Public, opaque tokens, no grace. */
  app: aClient({
    ...COMMON,
    uid: 'uid-app',
    clientId: 'shop.app',
    authMethod: 'none',
    grantTypes: ['authorization_code', 'refresh_token'],
    redirectUris: callbacks('app'),
    tokens: { ...PLAIN, accessTokenFormat: 'opaque', refreshTokenReuseGraceSeconds: 0 },
  }),
  /** Keeps its refresh token. */
  batch: aClient({
    ...COMMON,
    uid: 'uid-batch',
    clientId: 'shop.batch',
    authMethod: 'client_secret_post',
    redirectUris: callbacks('batch'),
    tokens: { ...PLAIN, refreshTokenRotation: 'Never' },
  }),
  /** Public, tokens bound to a key, which may rotate. */
  phone: aClient({
    ...COMMON,
    ...KEYED,
    uid: 'uid-phone',
    clientId: 'shop.phone',
    redirectUris: callbacks('phone'),
  }),
  /** Public, tokens bound to a key, keeps its refresh token. */
  kiosk: aClient({
    ...COMMON,
    ...KEYED,
    uid: 'uid-kiosk',
    clientId: 'shop.kiosk',
    redirectUris: callbacks('kiosk'),
    tokens: { ...PLAIN, accessTokenFormat: 'opaque', refreshTokenRotation: 'Never' },
  }),
  thief: aClient({ ...COMMON, uid: 'uid-thief', clientId: 'evil.thief', redirectUris: callbacks('thief') }),
  api: aClient({ ...COMMON, uid: 'uid-api', clientId: 'shop.api', resourceServerAudiences: [API] }),
} as const satisfies Record<string, Client>;

export type CastName = keyof typeof CAST;

/** The keys that clients hold; `stolen` is a thief's own. */
const KEYS = { own: new DpopHolder(), stolen: new DpopHolder('EdDSA') } as const;

export type KeyName = keyof typeof KEYS;

/** The answer that a client gets. */
export type Answer<Good> = Good | { readonly error: string; readonly reason: string };

/** An access or refresh token as introspection describes it. */
export type Introspected = Answer<IntrospectionResponse>;

export type ProtocolWorld = Awaited<ReturnType<typeof protocolWorld>>;

let signingKey: ReturnType<typeof importSigningKey> | undefined;

/** What a world is made of. Replicas of one server share all but their stores. */
export interface WorldParts {
  readonly stores: Stores;
  readonly clock: Clock;
  readonly pepper: Uint8Array;
  /** Where the audit events end up. */
  readonly events: AuditEvent[];
}

/** What a person lets a client have, and by which verifier and key the code counts. */
interface AuthorizedAccess {
  readonly scope: readonly string[];
  readonly verifier: string;
  readonly codeKey?: KeyName | undefined;
}

/** Endpoints over these stores. */
export async function protocolWorld({ stores, clock, pepper, events }: WorldParts) {
  signingKey ??= generateSigningKeyPem('ES256').then((pem) => importSigningKey(pem, 'ES256', 'Active'));
  const clients = Object.values(CAST).map((client) => ({
    ...client,
    secretVerifiers: client.authMethod === 'none' ? [] : [secretVerifier(client.uid, secretOf(client))],
  }));
  const registry = { current: new Registry(clients, new KeyRing([await signingKey])) };
  const random = { bytes: (count: number) => randomBytes(count) };
  const handles = new Handles({ issuer: ISSUER, peppers: [pepper], random });
  const idTokens = new IdTokens({ issuer: ISSUER, clock, random, endOfTick: setImmediate });
  const tokens = new AccessTokens({ issuer: ISSUER, clock, random, handles, endOfTick: setImmediate });
  const audit = { record: (event: AuditEvent) => void events.push(event) };
  const limiter = { failed: () => 0 };
  const limits = UNLIMITED_STATE;
  const { people } = limits;
  const owners = {
    takesPasswords: false,
    lookUp: async () => undefined,
    authenticate: async () => undefined,
    find: async (subject: string) => ({
      subject,
      username: 'ada',
      displayName: undefined,
      email: undefined,
      groups: [],
    }),
    revokedBefore: () => 0,
  };
  const marks = new ReplayMarks({ replays: stores.replays, fallback: stores.replays, limits, audit });
  const keySets = { keysAt: () => Promise.reject(keySetUnavailable('no client publishes keys')) };
  const clusterIssuer = { current: () => Promise.reject(clusterIssuerUnavailable('no cluster')) };
  const verification = {
    issuer: ISSUER,
    tokenEndpoint: `${ISSUER}/token`,
    clock,
    keySets,
    clusterIssuer,
    certificates: undefined,
  };
  const authentication = { registry, limiter, verification, marks, audit };
  const options = { ...authentication, issuer: ISSUER, clock, random, stores, handles, tokens, owners, limits };
  const authorization = new AuthorizationEndpoint({
    ...options,
    people,
    grants: stores.grants,
    replays: stores.replays,
  });
  const nonces = new ProofNonces({ issuer: ISSUER, peppers: [pepper], rule: 'on-demand' });
  const proofs = { verifier: new ProofVerifier(), nonces, urls: [TOKEN_URL] };
  const tokenEndpoint = new TokenEndpoint({ ...options, idTokens, proofs });
  const revocation = new RevocationEndpoint(options);
  const introspection = new IntrospectionEndpoint(options);

  return {
    events: events as readonly AuditEvent[],

    /** The person lets the client have the scope; the code that the client finds in its redirect. */
    async authorize(name: CastName, { scope, verifier, codeKey }: AuthorizedAccess) {
      const check = authorization.check(
        parametersOf({
          response_type: 'code',
          client_id: CAST[name].clientId,
          redirect_uri: redirectUriOf(name),
          scope: scope.join(' '),
          code_challenge: s256(verifier),
          code_challenge_method: 'S256',
          ...(codeKey && { dpop_jkt: KEYS[codeKey].thumbprint }),
        }),
        registry.current,
      );
      if (check.kind !== 'accepted') throw new Error(`the sample request was not accepted: ${check.reason}`);
      // The person signs in after each revocation; a grant may still be as old as one.
      const person = { subject: PERSON, sessionId: 'session', sid: 'sid-of-session', authTime: clock.now() + 1 };
      const code = new URL((await authorization.issue(check, person)) ?? ISSUER).searchParams.get('code');
      if (code === null) throw new Error('the redirect holds no code');
      return code;
    },

    /** One request of a client, authenticated as it is registered, to the token endpoint, with a proof of a key or without. */
    token(name: CastName, sent: Record<string, string>, key?: KeyName): Promise<Answer<TokenResponse>> {
      const proof = key && KEYS[key].proof(TOKEN_URL, clock.now());
      return answered(async () => (await tokenEndpoint.handle({ ...requestOf(CAST[name], sent), proof })).response);
    },

    revoke(name: CastName, token: string): Promise<Answer<{ revoked: true }>> {
      return answered(async () => {
        await revocation.handle(requestOf(CAST[name], { token }));
        return { revoked: true };
      });
    },

    introspect(name: CastName, token: string): Promise<Introspected> {
      return answered(async () => (await introspection.handle(requestOf(CAST[name], { token }))).response);
    },

    /** A server that finds the stores empty ends everything from before. */
    raiseGlobal(): Promise<void> {
      return stores.watermarks.raise({ kind: 'global' }, clock.now());
    },

    /** The person withdraws the consent to this client. */
    withdraw(name: CastName): Promise<void> {
      const subject = { kind: 'consent', clientUid: CAST[name].uid, subject: PERSON } as const;
      return stores.watermarks.raise(subject, clock.now());
    },
  };
}

/** The settings of a client's tokens. */
export function tokenSettingsOf(name: CastName) {
  return CAST[name].tokens;
}

export function clientIdOf(name: CastName): string {
  return CAST[name].clientId;
}

export function redirectUriOf(name: CastName): string {
  return CAST[name].redirectUris[0] as string;
}

/** Whether the tokens of a client must be bound to a key. */
export function bindsToKeys(name: CastName): boolean {
  return CAST[name].senderConstraint === 'DPoP';
}

/** The thumbprint of a key. */
export function thumbprintOf(key: KeyName): string {
  return KEYS[key].thumbprint;
}

/** Whether a client may introspect: a public one may not. */
export function isConfidential(name: CastName): boolean {
  return CAST[name].authMethod !== 'none';
}

function secretOf(client: Client): string {
  return `secret of ${client.uid}`;
}

function requestOf(client: Client, sent: Record<string, string>) {
  const rest = { certificate: undefined, proof: undefined, address: '192.0.2.1' };
  if (client.authMethod === 'client_secret_basic') {
    const pair = `${encodeURIComponent(client.clientId)}:${encodeURIComponent(secretOf(client))}`;
    const authorization = `Basic ${Buffer.from(pair).toString('base64')}`;
    return { parameters: parametersOf(sent), authorization, ...rest };
  }
  const named = { ...sent, client_id: client.clientId };
  const credentials = client.authMethod === 'none' ? named : { ...named, client_secret: secretOf(client) };
  return { parameters: parametersOf(credentials), authorization: undefined, ...rest };
}

function parametersOf(sent: Record<string, string>): Parameters {
  return new Parameters(new Map(Object.entries(sent).map(([name, value]) => [name, [value]])));
}

async function answered<Good>(ask: () => Promise<Good>): Promise<Answer<Good>> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof OAuthError) return { error: error.code, reason: error.reason };
    throw error;
  }
}
