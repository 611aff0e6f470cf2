// Tokens at userinfo that are bound to their sender: to a DPoP key (RFC 9449 §7) or to a client certificate (RFC 8705 §3).
// The checks of a proof, one by one: `test/oauth/dpop/proof.test.ts`.

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../../src/oauth/ports/error.ts';
import type { Stores } from '../../../../src/oauth/ports/ports.ts';
import { DpopHolder, type ProofChanges } from '../../../dpop-holder.ts';
import { type Grantry, PKCE, startGrantry, type TestClient } from '../../../grantry.ts';
import { type MutualTlsGrantry, MutualTlsWorld } from '../../mtls/mutual-tls-grantry.ts';
import { WEB } from '../token-calls.ts';
import {
  aPerson,
  OPENID_CLIENT,
  PERSONAL,
  personTokens,
  type UserinfoAnswer,
  userinfo,
  withToken,
} from './userinfo-calls.ts';

const ISSUER = 'https://id.example';
const USERINFO = `${ISSUER}/userinfo`;
const SPA = { clientId: 'shop.spa' };
const opaqueTokens = {
  accessTokenFormat: 'opaque',
  accessTokenLifetimeSeconds: 600,
  refreshTokenIdleLifetimeSeconds: 1_209_600,
  refreshTokenLifetimeSeconds: 7_776_000,
  refreshTokenRotation: 'Always',
  refreshTokenReuseGraceSeconds: 10,
} as const;
const KEEPER = { clientId: 'shop.keeper', secret: 'the-secret-of-the-one-with-opaque-tokens' };
const clients: readonly TestClient[] = [
  { ...WEB, ...OPENID_CLIENT },
  { ...SPA, ...OPENID_CLIENT },
  { ...KEEPER, ...OPENID_CLIENT, tokens: opaqueTokens },
];

const { owners, subject } = await aPerson();
const holder = new DpopHolder();

/** Whether the store of marks fails. */
let areMarksAway = false;
/** The marks that the store was asked to claim. */
let marksClaimed = 0;
function breakable(stores: Stores): Stores {
  const claim: Stores['replays']['claim'] = async (...given) => {
    marksClaimed++;
    if (areMarksAway) throw new StoreUnavailableError('replays.claim');
    return await stores.replays.claim(...given);
  };
  return { ...stores, replays: { claim } };
}

describe.each([WEB, KEEPER, SPA])('a token of $clientId that is bound to a DPoP key', (client: TestClient) => {
  let grantry: Grantry;
  let token: string;
  beforeAll(async () => {
    grantry = await startGrantry({ issuer: ISSUER, owners, clients, wrapStores: breakable });
    const proof = holder.proof(`${ISSUER}/token`, grantry.clock.now());
    const { clientId, secret } = client;
    const issued = await personTokens(grantry, { clientId, ...(secret && { secret }), subject, proof });
    token = String(issued.access_token);
  });

  function proofOf({ by = holder, htu = USERINFO, method = 'GET', claims = {} }: Wishes = {}): string {
    const ath = createHash('sha256').update(token).digest('base64url');
    return by.proof(htu, grantry.clock.now(), { claims: { htm: method, ath, ...claims } });
  }
  function asked(proof: string | undefined, scheme = 'DPoP', init: RequestInit = {}): Promise<UserinfoAnswer> {
    const headers = { authorization: `${scheme} ${token}`, ...(proof !== undefined && { dpop: proof }) };
    return userinfo(grantry, { ...init, headers });
  }

  it('given a proof for GET or POST, in any spelling of the address → 200', async () => {
    expect(await asked(proofOf())).toMatchObject({ status: 200, body: { sub: subject, name: 'Alice Example' } });
    expect((await asked(proofOf({ htu: 'HTTPS://ID.example:443/./userinf%6F' }))).status).toBe(200);
    expect((await asked(proofOf({ method: 'POST' }), 'DPoP', { method: 'POST' })).status).toBe(200);
  });

  it.each<[string, Wishes]>([
    ['for the token endpoint', { htu: `${ISSUER}/token` }],
    ['for another host', { htu: 'https://other.example/userinfo' }],
    ['for another method', { method: 'POST' }],
    ['without ath', { claims: { ath: undefined } }],
    ['for another token', { claims: { ath: 'x' } }],
  ])('given a proof %s → 401 invalid_dpop_proof', async (_, wishes) => {
    const { status, body, challenge } = await asked(proofOf(wishes));
    expect([status, body.error]).toEqual([401, 'invalid_dpop_proof']);
    expect(challenge).toMatch(
      new RegExp(`^Bearer realm="${ISSUER}", DPoP error="invalid_dpop_proof", .*, algs="ES256 `),
    );
  });

  it('given no proof, or two → 401 invalid_dpop_proof', async () => {
    for (const [proof, reason] of [
      [undefined, 'dpop_proof_missing'],
      [`${proofOf()}, ${proofOf()}`, 'dpop_proof_repeated'],
    ] as const) {
      const answer = await asked(proof);
      expect([answer.status, answer.body.error, answer.reason]).toEqual([401, 'invalid_dpop_proof', reason]);
    }
  });

  it('given a proof of another key → 401 invalid_token', async () => {
    const answer = await asked(proofOf({ by: new DpopHolder() }));
    expect([answer.status, answer.body.error, answer.reason]).toEqual([401, 'invalid_token', 'dpop_key_mismatch']);
  });

  it('as Bearer, in header or form, with a proof and without → 401 invalid_token', async () => {
    const form = new URLSearchParams({ access_token: token });
    for (const answer of [
      await asked(proofOf(), 'Bearer'),
      await asked(undefined, 'Bearer'),
      await userinfo(grantry, { method: 'POST', body: form, headers: { dpop: proofOf({ method: 'POST' }) } }),
    ]) {
      const { status, body, reason } = answer;
      expect([status, body.error, reason]).toEqual([401, 'invalid_token', 'bound_token_as_bearer']);
    }
  });

  it('given a proof again → 401 invalid_dpop_proof, also while the store of marks is unavailable', async () => {
    for (const isAway of [false, true]) {
      areMarksAway = isAway;
      const proof = proofOf();
      const first = await asked(proof);
      const again = await asked(proof);
      areMarksAway = false;
      expect([first.status, again.status, again.body.error]).toEqual([200, 401, 'invalid_dpop_proof']);
      expect(again.reason).toBe('dpop_proof_replayed');
      expect(again.challenge).toContain('DPoP error="invalid_dpop_proof"');
    }
  });

  it('given a proof → a mark in the store for a confidential client, and none for a public one: its people could fill it', async () => {
    const before = marksClaimed;
    expect([(await asked(proofOf())).status, (await asked(proofOf())).status]).toEqual([200, 200]);
    expect(marksClaimed - before).toBe(client === SPA ? 0 : 2);
  });

  it('given a clock that is wrong → use_dpop_nonce with a nonce, and 200 with it', async () => {
    const iat = Math.floor(grantry.clock.now() / 1000) + 120;
    const refused = await asked(proofOf({ claims: { iat } }));
    expect([refused.status, refused.body.error]).toEqual([401, 'use_dpop_nonce']);
    const nonce = refused.headers.get('dpop-nonce');
    expect((await asked(proofOf({ claims: { iat, nonce } }))).status).toBe(200);
  });
});

interface Wishes {
  readonly by?: DpopHolder;
  readonly htu?: string;
  readonly method?: string;
  readonly claims?: NonNullable<ProofChanges['claims']>;
}

describe('a server that demands nonces', () => {
  it('gives the next one with an answer when that of the proof is not current', async () => {
    const grantry = await startGrantry({ issuer: ISSUER, owners, clients, dpopNonce: 'required' });
    const asked = async (nonce: string | null, token: string) => {
      const ath = createHash('sha256').update(token).digest('base64url');
      const dpop = holder.proof(USERINFO, grantry.clock.now(), { claims: { htm: 'GET', ath, nonce } });
      return await userinfo(grantry, { headers: { authorization: `DPoP ${token}`, dpop } });
    };
    const token = await boundToken(grantry);
    const refused = await asked(null, token);
    expect([refused.status, refused.body.error]).toEqual([401, 'use_dpop_nonce']);
    const nonce = refused.headers.get('dpop-nonce');
    const current = await asked(nonce, token);
    expect([current.status, current.headers.get('dpop-nonce')]).toEqual([200, null]);
    grantry.clock.advance(60_000);
    const older = await asked(nonce, token);
    expect(older.status).toBe(200);
    expect((await asked(older.headers.get('dpop-nonce'), token)).status).toBe(200);
  });

  /** By the nonce that the token endpoint demands. */
  async function boundToken(grantry: Grantry): Promise<string> {
    const code = await grantry.issueCode(SPA.clientId, { subject, scope: ['openid'], audiences: [ISSUER] });
    const redeem = (claims: ProofChanges['claims'] = {}) => {
      const dpop = holder.proof(`${ISSUER}/token`, grantry.clock.now(), { claims });
      const form = {
        code,
        client_id: SPA.clientId,
        redirect_uri: 'https://app.example/cb',
        code_verifier: PKCE.verifier,
      };
      return grantry.post('/token', { grant_type: 'authorization_code', ...form }, { headers: { dpop } });
    };
    const nonce = (await redeem()).headers.get('dpop-nonce');
    const { access_token } = (await (await redeem({ nonce })).json()) as { access_token: string };
    return access_token;
  }
});

describe('a token that is bound to nothing', () => {
  it('under DPoP, with a proof → 401 invalid_token', async () => {
    const grantry = await startGrantry({ issuer: ISSUER, owners, clients });
    const { access_token } = await personTokens(grantry, { ...WEB, subject });
    const ath = createHash('sha256').update(String(access_token)).digest('base64url');
    const dpop = holder.proof(USERINFO, grantry.clock.now(), { claims: { htm: 'GET', ath } });
    const answer = await userinfo(grantry, { headers: { authorization: `DPoP ${access_token}`, dpop } });
    expect([answer.status, answer.body.error, answer.reason]).toEqual([
      401,
      'invalid_token',
      'unbound_token_under_dpop',
    ]);
  });
});

describe('the listener for mutual TLS', () => {
  const world = new MutualTlsWorld();
  const own = world.maker.client(world.authority, { subject: '/CN=web' });
  const other = world.maker.client(world.authority, { subject: '/CN=other' });
  const BOUND = { clientId: 'shop.bound' };
  let mtls: MutualTlsGrantry;
  beforeAll(async () => {
    const bound: TestClient = {
      ...BOUND,
      ...OPENID_CLIENT,
      authMethod: 'tls_client_auth',
      certificate: { name: 'subjectDn', value: 'CN=web' },
      senderConstraint: 'MutualTLS',
    };
    mtls = await world.start({
      issuer: ISSUER,
      owners,
      clients: [bound, { ...bound, clientId: 'shop.bound-opaque', tokens: opaqueTokens }, { ...SPA, ...OPENID_CLIENT }],
    });
  });
  afterAll(() => world.maker.remove());

  async function boundToken(clientId: string): Promise<string> {
    const code = await mtls.grantry.issueCode(clientId, { subject, scope: [...PERSONAL], audiences: [ISSUER] });
    const form = { code, client_id: clientId, redirect_uri: 'https://app.example/cb', code_verifier: PKCE.verifier };
    const { status, body } = await mtls.post(
      '/token',
      { grant_type: 'authorization_code', ...form },
      { certificate: own },
    );
    expect(status).toBe(200);
    return body.access_token;
  }

  it.each(['shop.bound', 'shop.bound-opaque'])(
    'given a token of %s and its certificate → 200, by GET and by POST',
    async (clientId) => {
      const token = await boundToken(clientId);
      const wishes = { certificate: own, headers: { authorization: `Bearer ${token}` } };
      expect((await mtls.get('/userinfo', wishes)).body).toMatchObject({ sub: subject, name: 'Alice Example' });
      expect(await mtls.post('/userinfo', { access_token: token }, { certificate: own })).toMatchObject({
        status: 200,
      });
    },
  );

  it.each(['shop.bound', 'shop.bound-opaque'])(
    'given a token of %s, and another certificate or none → 401 invalid_token',
    async (clientId) => {
      const token = await boundToken(clientId);
      const headers = { authorization: `Bearer ${token}` };
      for (const certificate of [other, undefined]) {
        const { status, body } = await mtls.get('/userinfo', { certificate, headers });
        expect([status, body.error]).toEqual([401, 'invalid_token']);
      }
      // The public port has no certificates.
      const answer = await withToken(mtls.grantry, token);
      expect([answer.status, answer.body.error, answer.reason]).toEqual([401, 'invalid_token', 'certificate_missing']);
    },
  );

  it('given a DPoP proof for its own address, or for that of the issuer → 200', async () => {
    const { grantry } = mtls;
    const proof = holder.proof(`${ISSUER}/token`, grantry.clock.now());
    const { access_token } = await personTokens(grantry, { ...SPA, subject, proof });
    const ath = createHash('sha256').update(String(access_token)).digest('base64url');
    for (const htu of [`https://localhost:${mtls.port}/userinfo`, USERINFO]) {
      const dpop = holder.proof(htu, grantry.clock.now(), { claims: { htm: 'GET', ath } });
      const { status } = await mtls.get('/userinfo', { headers: { authorization: `DPoP ${access_token}`, dpop } });
      expect([htu, status]).toEqual([htu, 200]);
    }
  });

  it('is named by the metadata', async () => {
    for (const name of ['oauth-authorization-server', 'openid-configuration']) {
      const { body } = await mtls.get(`/.well-known/${name}`);
      expect(body.mtls_endpoint_aliases.userinfo_endpoint).toBe(`https://localhost:${mtls.port}/userinfo`);
    }
  });
});
