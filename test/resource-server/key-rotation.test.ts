// Signing keys that are rotated while two replicas of an API check tokens of a running grantry without a pause.

import { describe, expect, it, onTestFinished } from 'vitest';
import {
  generateSigningKeyPem,
  importSigningKey,
  type SigningKey,
  type SigningKeyState,
} from '../../src/oauth/registry/keys.ts';
import { AccessDenied, createVerifier } from '../../src/resource-server/index.ts';
import { basic, DEFAULT_AUDIENCE, type Grantry, readJson, startGrantry } from '../grantry.ts';
import { until } from '../until.ts';

const SECOND = 1000;
const JOB = { clientId: 'shop.job', secret: 'the-secret-of-the-nightly-job' };
/** Tokens of grantry live so long, and so long before it signs is a key published. */
const TOKEN_LIFE = 600 * SECOND;
const CALLERS = 4;

async function aKey(): Promise<SigningKey> {
  return await importSigningKey(await generateSigningKeyPem('ES256'), 'ES256', 'Active');
}

function inState(key: SigningKey, state: SigningKeyState): SigningKey {
  return { ...key, state };
}

/** A replica of the API. */
function replicaOf({ issuer, clock }: Grantry) {
  const replica = {
    fetches: 0,
    verifier: createVerifier({
      issuer,
      audience: DEFAULT_AUDIENCE,
      mode: 'local',
      clock,
      fetch: (url, init) => {
        replica.fetches += 1;
        return fetch(url, init);
      },
    }),
  };
  return replica;
}

/** Callers that get a token, and show it and one of before to each replica, again and again. */
function load(grantry: Grantry, replicas: readonly ReturnType<typeof replicaOf>[]) {
  const { clock } = grantry;
  const active: { readonly token: string; readonly until: number }[] = [];
  const seen = { admitted: 0, refusals: [] as string[] };
  let isOver = false;

  const issued = async () => {
    const headers = { authorization: basic(JOB.clientId, JOB.secret) };
    const response = await grantry.post('/token', { grant_type: 'client_credentials' }, { headers });
    return (await readJson(response)).access_token;
  };
  const show = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    for (const { verifier } of replicas) {
      try {
        await verifier.verify(new Request('https://api.example/', { headers }));
        seen.admitted += 1;
      } catch (error) {
        if (!(error instanceof AccessDenied)) throw error;
        seen.refusals.push(error.reason);
      }
    }
  };
  const call = async () => {
    while (!isOver) {
      // A step of the clock may fall between the issuing and the verifying.
      active.push({ until: clock.now() + TOKEN_LIFE - 120 * SECOND, token: await issued() });
      while ((active[0]?.until ?? 0) < clock.now()) active.shift();
      for (const { token = '' } of [active.at(0) ?? {}, active.at(-1) ?? {}]) await show(token);
    }
  };
  const done = Promise.all(Array.from({ length: CALLERS }, call));
  const end = async () => {
    isOver = true;
    await done;
  };
  onTestFinished(end);
  /** Moves the clock on in steps of a minute, each with requests in it. */
  const pass = async (milliseconds: number) => {
    for (let passed = 0; passed < milliseconds; passed += 60 * SECOND) {
      const before = seen.admitted;
      await until('requests were answered', () => seen.admitted >= before + 2 * CALLERS * replicas.length);
      clock.advance(60 * SECOND);
    }
  };
  return { seen, pass, end };
}

describe('two verifiers under load', () => {
  it.each([
    [64, 'admitted'],
    [65, 'keys_unavailable'],
  ])('given %i keys of an issuer → %s', async (count, outcome) => {
    const keys = await Promise.all(Array.from({ length: count }, aKey));
    const grantry = await startGrantry({
      clients: [JOB],
      keys: keys.map((key, index) => inState(key, index === 0 ? 'Active' : 'Retiring')),
    });
    const headers = { authorization: basic(JOB.clientId, JOB.secret) };
    const { access_token } = await readJson(
      await grantry.post('/token', { grant_type: 'client_credentials' }, { headers }),
    );
    const { verifier } = replicaOf(grantry);
    const rawHeaders = ['authorization', `Bearer ${access_token}`];
    const reason = await verifier.verify({ method: 'GET', url: '/', rawHeaders }).then(
      () => 'admitted',
      (error: { readonly reason?: string }) => error.reason,
    );
    expect(reason).toBe(outcome);
  });

  it('given keys that are published, sign, retire and go → no refusal, and a fetch in five minutes', async () => {
    let current = await aKey();
    const grantry = await startGrantry({ clients: [JOB], keys: [current] });
    const replicas = [replicaOf(grantry), replicaOf(grantry)];
    const { seen, pass, end } = load(grantry, replicas);
    const begin = grantry.clock.now();
    for (let rotation = 0; rotation < 3; rotation += 1) {
      const next = await aKey();
      grantry.setKeys([current, inState(next, 'Published')]);
      await pass(TOKEN_LIFE);
      grantry.setKeys([next, inState(current, 'Retiring')]);
      await pass(TOKEN_LIFE);
      grantry.setKeys([next]);
      current = next;
    }
    await end();
    expect(seen.refusals).toEqual([]);
    const most = Math.ceil((grantry.clock.now() - begin) / (300 * SECOND)) + 1;
    for (const { fetches } of replicas) expect(fetches).toBeLessThanOrEqual(most);
  });

  it('given a key that signs at once → no refusal, and one more fetch each', async () => {
    const [first, second] = [await aKey(), await aKey()];
    const grantry = await startGrantry({ clients: [JOB], keys: [first] });
    const replicas = [replicaOf(grantry), replicaOf(grantry)];
    const { seen, pass, end } = load(grantry, replicas);
    await pass(60 * SECOND);
    grantry.setKeys([second, inState(first, 'Retiring')]);
    await pass(60 * SECOND);
    await end();
    expect(seen.refusals).toEqual([]);
    expect(replicas.map(({ fetches }) => fetches)).toEqual([2, 2]);
  });
});
