// What a replica remembers of its clients for the controller, over real requests.

import { describe, expect, it } from 'vitest';
import { ClientUsage } from '../../../src/http/admin/client-usage.ts';
import type { AccountIssuer } from '../../../src/oauth/ports/cluster-issuer.ts';
import type { People } from '../../../src/oauth/ports/ports.ts';
import type { VerificationKey } from '../../../src/oauth/values/jwk.ts';
import { basic, type Grantry, startGrantry, type TestClient } from '../../grantry.ts';
import { asserted, assertedBy, assertionOf } from '../../oauth/client-auth/client-assertions.ts';
import { aKey, sign } from '../../oauth/values/signed-tokens.ts';
import { aPerson, OPENID_CLIENT, personTokens } from '../protocol/openid/userinfo-calls.ts';
import { TokenCalls } from '../protocol/token-calls.ts';

const SECRET = 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p';
const DAY = 86_400_000;
const SIGN_IN = { sid: 'sid-of-the-session', nonce: undefined };
const MACHINE = { clientId: 'team.machine', uid: 'u-machine', secret: SECRET, grantTypes: ['client_credentials'] };

async function start(
  clients: readonly TestClient[] = [MACHINE, { clientId: 'team.app', uid: 'u-app' }],
  cluster?: AccountIssuer<VerificationKey>,
  owners?: People,
) {
  /** What happens before a store says whose grant it has. */
  const way = { pause: async () => {} };
  let usage: ClientUsage | undefined;
  const spec = { generation: 1 };
  const grantry = await startGrantry({
    clients,
    ...(cluster && { clusterIssuer: { current: async () => cluster } }),
    ...(owners && { owners }),
    usage: (registry, clock) => {
      usage = new ClientUsage({ registry, clock, instance: 'one', generationOf: () => spec.generation });
      return usage;
    },
    wrapStores: (stores) => {
      const subjectOf = stores.grants.subjectOf.bind(stores.grants);
      stores.grants.subjectOf = async (grantId) => {
        await way.pause();
        return subjectOf(grantId);
      };
      return stores;
    },
  });
  if (usage === undefined) throw new Error('no usage was asked for');
  return { grantry, usage, spec, way };
}

function ask(grantry: Grantry, form: Record<string, string> = {}, secret = SECRET) {
  const headers = { authorization: basic('team.machine', secret) };
  return grantry.post('/token', { grant_type: 'client_credentials', ...form }, { headers });
}

describe('what a replica reports of its clients', () => {
  it('is the day of the last token, once a day', async () => {
    const { grantry, usage } = await start();
    await ask(grantry);
    const first = usage.since(undefined);
    expect(first.lastUsed).toEqual({ 'u-machine': '2026-01-01' });
    await ask(grantry);
    expect(usage.since(first.cursor).lastUsed).toEqual({});
    grantry.clock.advance(DAY);
    await ask(grantry);
    expect(usage.since(first.cursor).lastUsed).toEqual({ 'u-machine': '2026-01-02' });
  });

  it('is every refusal that its owner can mend, counted', async () => {
    const { grantry, usage } = await start();
    await ask(grantry, { scope: 'admin' });
    await ask(grantry, { scope: 'admin' });
    await ask(grantry, { grant_type: 'refresh_token', refresh_token: 'x' });
    await ask(grantry, { grant_type: 'nonsense' });
    await ask(grantry, {}, 'wrong');
    const lastTime = '2026-01-01T12:00:00.000Z';
    expect(usage.since(undefined).denied).toEqual({
      'u-machine': [
        { reason: 'invalid_scope', generation: 1, count: 2, lastTime },
        { reason: 'unauthorized_client', generation: 1, count: 1, lastTime },
      ],
    });
  });

  it('is nothing that a request did which only named a public client, but an address that is not its own', async () => {
    const { grantry, usage } = await start();
    await grantry.post('/token', { grant_type: 'client_credentials', client_id: 'team.app' });
    expect(usage.since(undefined).denied).toEqual({});
    const query = new URLSearchParams({ client_id: 'team.app', redirect_uri: 'https://evil.example/cb' });
    await fetch(grantry.url(`/authorize?${query}`));
    query.set('client_id', 'nobody');
    await fetch(grantry.url(`/authorize?${query}`));
    expect(usage.since(undefined).denied).toMatchObject({ 'u-app': [{ reason: 'redirect_uri_mismatch', count: 1 }] });
  });

  it('is each alert, of a public client too, about the generation that is served then', async () => {
    const { grantry, usage, spec } = await start();
    const caller = new TokenCalls(grantry, { clientId: 'team.app' });
    const { body } = await caller.redeem(await grantry.issueCode('team.app'));
    expect(usage.since(undefined).denied).toEqual({});
    const first = usage.since(undefined);
    const replay = async () => {
      const code = await grantry.issueCode('team.app');
      for (let times = 0; times < 3; times++) await caller.redeem(code);
    };
    expect(body.access_token).toBeDefined();
    await replay();
    await replay();
    spec.generation = 2;
    const reason = 'authorization_code.replayed';
    const lastTime = '2026-01-01T12:00:00.000Z';
    expect(usage.since(first.cursor).denied).toEqual({ 'u-app': [{ reason, generation: 1, count: 2, lastTime }] });
    await replay();
    expect(usage.since(undefined).denied).toEqual({ 'u-app': [{ reason, generation: 2, count: 1, lastTime }] });
  });

  it('is each ID token without groups, of a public client too', async () => {
    const { owners, subject, change } = await aPerson();
    const app = { clientId: 'team.app', uid: 'u-app', ...OPENID_CLIENT };
    const { grantry, usage } = await start([app], undefined, owners);
    const signIn = () => personTokens(grantry, { clientId: app.clientId, subject, openid: SIGN_IN });
    await signIn();
    expect(usage.since(undefined).denied).toEqual({});
    await change({ groups: Array.from({ length: 50 }, (_, index) => `${index}`.padEnd(100, 'g')) });
    for (let times = 0; times < 2; times++) await signIn();
    expect(usage.since(undefined).denied).toMatchObject({ 'u-app': [{ reason: 'groups_omitted', count: 2 }] });
  });

  it('is every refusal of an assertion that the client has signed, and nothing of one that it has not', async () => {
    const clientId = 'team.signer';
    const key = aKey('ES256');
    const signer = { clientId, uid: 'u-signer', authMethod: 'private_key_jwt', assertion: assertedBy([key]) };
    const { grantry, usage } = await start([signer]);
    const present = async (changes: object, { signedBy = key, path = '/token' } = {}) => {
      const party = { clientId, issuer: grantry.issuer, now: grantry.clock.now() };
      const form = asserted(await assertionOf(signedBy, party, changes));
      await grantry.post(path, { grant_type: 'refresh_token', refresh_token: 'none', token: 'none', ...form });
    };
    await present({ aud: `${grantry.issuer}/token` }, { signedBy: aKey('ES256') });
    await present({}, { signedBy: aKey('EdDSA') });
    expect(usage.since(undefined).denied).toEqual({});
    for (const path of ['/token', '/par']) await present({ aud: `${grantry.issuer}${path}` });
    for (const path of ['/token', '/token', '/revoke', '/introspect']) await present({ jti: 'the same' }, { path });
    expect(usage.since(undefined).denied).toMatchObject({
      'u-signer': [
        { reason: 'assertion_audience_mismatch', count: 2 },
        { reason: 'client_assertion_replayed', count: 3 },
      ],
    });
  });

  it('is every refusal of a token of the client’s own account, and nothing of one of another account', async () => {
    const clientId = 'team.pod';
    const key = aKey('RS256');
    const cluster = { issuer: 'https://cluster.example', keys: [key.key] };
    const account = { name: 'pod', uid: 'u-account' };
    const pod = { clientId, uid: 'u-pod', namespace: 'team', authMethod: 'kubernetes_service_account' };
    const { grantry, usage } = await start([{ ...pod, serviceAccounts: [account] }], cluster);
    const present = async (name: string, aud: unknown) => {
      const iat = grantry.clock.now() / 1000;
      const bound = { namespace: 'team', serviceaccount: { name, uid: account.uid } };
      const sub = `system:serviceaccount:team:${name}`;
      const claims = { iss: cluster.issuer, sub, aud, iat, exp: iat + 600, 'kubernetes.io': bound };
      const form = { ...asserted(await sign(key, claims)), client_id: clientId };
      await grantry.post('/token', { grant_type: 'client_credentials', ...form });
    };
    await present('stranger', ['https://elsewhere.example']);
    expect(usage.since(undefined).denied).toEqual({});
    await present('pod', ['https://elsewhere.example']);
    expect(usage.since(undefined).denied).toMatchObject({
      'u-pod': [{ reason: 'account_token_audience_mismatch', count: 1 }],
    });
  });

  it('is reported again as often as it is asked with the same cursor, and whole to a caller of another process', async () => {
    const { grantry, usage } = await start();
    await ask(grantry, { scope: 'admin' });
    const all = usage.since(undefined);
    expect(usage.since(undefined)).toEqual(all);
    expect(usage.since('another.7')).toEqual(all);
    expect(usage.since(all.cursor)).toEqual({ cursor: all.cursor, lastUsed: {}, denied: {} });
    expect(usage.since(undefined)).toEqual(all);
  });

  it('restarts the count after a day without refusals', async () => {
    const { grantry, usage } = await start();
    await ask(grantry, { scope: 'admin' });
    grantry.clock.advance(DAY + 1);
    expect(usage.since(undefined).denied).toEqual({});
    await ask(grantry, { scope: 'admin' });
    expect(usage.since(undefined).denied).toMatchObject({ 'u-machine': [{ count: 1 }] });
  });

  it('names the generation that was refused, and restarts the count with another one', async () => {
    const { grantry, usage, spec } = await start();
    await ask(grantry, { scope: 'admin' });
    await ask(grantry, { scope: 'admin' });
    spec.generation = 2;
    expect(usage.since(undefined).denied).toMatchObject({ 'u-machine': [{ generation: 1, count: 2 }] });
    await ask(grantry, { scope: 'admin' });
    expect(usage.since(undefined).denied).toMatchObject({ 'u-machine': [{ generation: 2, count: 1 }] });
  });

  it('is nothing of a refusal during which the client became another one, whose owner may have mended it', async () => {
    const client = { clientId: 'team.web', uid: 'u-web', secret: SECRET };
    const { grantry, usage, spec, way } = await start([client]);
    const calls = new TokenCalls(grantry, client);
    const { body } = await calls.redeem(await grantry.issueCode(client.clientId));
    way.pause = async () => {
      grantry.setClients([client]);
      spec.generation = 2;
    };
    expect((await calls.refresh(body.refresh_token, { scope: 'admin' })).body.error).toBe('invalid_scope');
    expect(usage.since(undefined).denied).toEqual({});
    way.pause = async () => {};
    await calls.refresh(body.refresh_token, { scope: 'admin' });
    expect(usage.since(undefined).denied).toMatchObject({ 'u-web': [{ generation: 2, count: 1 }] });
  });

  it('is no more at once than a controller reads, and in the end all of it', async () => {
    const ids = Array.from({ length: 5010 }, (_, index) => `team.app-${index}`);
    const { usage } = await start(ids.map((clientId) => ({ clientId, uid: clientId })));
    // One after the other of each kind, and the one kind long before the other.
    for (const clientId of ids) usage.redirectMismatch(clientId);
    for (const clientId of ids) usage.note({ type: 'token.issued', clientId });
    const [denied, used] = [new Set<string>(), new Set<string>()];
    let cursor: string | undefined;
    for (let times = 0; times < 4; times++) {
      const answer = usage.since(cursor);
      const uids = [Object.keys(answer.denied), Object.keys(answer.lastUsed)] as const;
      expect(Math.max(...uids.map(({ length }) => length))).toBeLessThanOrEqual(5000);
      for (const uid of uids[0]) denied.add(uid);
      for (const uid of uids[1]) used.add(uid);
      cursor = answer.cursor;
    }
    expect([denied.size, used.size]).toEqual([ids.length, ids.length]);
    expect(usage.since(cursor)).toEqual({ cursor, lastUsed: {}, denied: {} });
  });

  it('is all that was not reported yet of a client that is not served any more, and then nothing of it', async () => {
    const { grantry, usage } = await start();
    await ask(grantry, { scope: 'admin' });
    const { cursor } = usage.since(undefined);
    await ask(grantry);
    usage.alerted({ type: 'refresh_token.reuse_detected', clientUid: 'u-machine' });
    grantry.setClients([]);
    // The answer may be lost.
    for (let times = 0; times < 2; times++) {
      const { lastUsed, denied } = usage.since(cursor);
      expect(lastUsed).toEqual({ 'u-machine': '2026-01-01' });
      expect(denied).toMatchObject({ 'u-machine': [{ reason: 'refresh_token.reuse_detected', count: 1 }] });
    }
    const last = usage.since(cursor);
    usage.since(last.cursor);
    expect(usage.since(undefined)).toEqual({ cursor: last.cursor, lastUsed: {}, denied: {} });
  });
});
