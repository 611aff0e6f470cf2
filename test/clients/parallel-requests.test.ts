// Many clients, or one thief among them, with the same code or refresh token at the same moment (security rows K1, K2, RF3).

import { beforeAll, describe, expect, it } from 'vitest';
import { basic, type Grantry, PKCE, startGrantry, type TestClient } from '../grantry.ts';
import { decideOn } from './person.ts';
import { ALICE } from './registered-clients.ts';

const SECRET = 'secret-of-the-web-application';
const TOKENS = {
  accessTokenFormat: 'jwt',
  accessTokenLifetimeSeconds: 600,
  refreshTokenIdleLifetimeSeconds: 86_400,
  refreshTokenLifetimeSeconds: 864_000,
  refreshTokenRotation: 'Always',
  refreshTokenReuseGraceSeconds: 10,
} as const;

const CLIENTS: readonly (TestClient & { readonly secret: string })[] = [
  { clientId: 'shop.jwt', secret: SECRET, tokens: TOKENS },
  { clientId: 'shop.opaque', secret: SECRET, tokens: { ...TOKENS, accessTokenFormat: 'opaque' } },
  { clientId: 'shop.graceless', secret: SECRET, tokens: { ...TOKENS, refreshTokenReuseGraceSeconds: 0 } },
];

interface Told {
  readonly status: number;
  readonly body: Readonly<Record<string, string>>;
}

describe('the same request many times at once', () => {
  let grantry: Grantry;
  beforeAll(async () => {
    grantry = await startGrantry({ clients: CLIENTS, users: { [ALICE.username]: ALICE.password } });
  });

  async function post(clientId: string, path: string, form: Record<string, string>): Promise<Told> {
    const response = await grantry.post(path, form, { headers: { authorization: basic(clientId, SECRET) } });
    return { status: response.status, body: (await response.json()) as Told['body'] };
  }

  function atOnce(times: number, clientId: string, form: Record<string, string>): Promise<Told[]> {
    return Promise.all(Array.from({ length: times }, () => post(clientId, '/token', form)));
  }

  async function codeForm(clientId: string) {
    const redirect_uri = grantry.client(clientId).redirectUris[0] as string;
    const url = new URL(grantry.url('/authorize'));
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id: clientId,
      redirect_uri,
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
    }).toString();
    const code = (await decideOn(grantry, url, ALICE)).searchParams.get('code') ?? '';
    return { grant_type: 'authorization_code', code, redirect_uri, code_verifier: PKCE.verifier };
  }

  async function signedIn(clientId: string): Promise<Told['body']> {
    const { status, body } = await post(clientId, '/token', await codeForm(clientId));
    expect(status).toBe(200);
    return body;
  }

  function refreshForm({ refresh_token = '' }: Told['body']) {
    return { grant_type: 'refresh_token', refresh_token };
  }

  function alerts(clientId: string, event: string): number {
    return grantry.audits().filter((line) => line.event === event && line.clientId === clientId).length;
  }

  for (const clientId of ['shop.jwt', 'shop.opaque']) {
    it(`gives one of 400 redemptions tokens, and they are revoked afterwards: ${clientId}`, async () => {
      const answers = await atOnce(400, clientId, await codeForm(clientId));
      const winners = answers.filter(({ status }) => status === 200);
      expect(winners).toHaveLength(1);
      const losers = answers.filter(({ status, body }) => status === 400 && body.error === 'invalid_grant');
      expect(losers).toHaveLength(399);

      const { access_token = '', refresh_token = '' } = winners[0]?.body ?? {};
      for (const token of [access_token, refresh_token]) {
        expect(await post(clientId, '/introspect', { token })).toEqual({ status: 200, body: { active: false } });
      }
      const refreshed = await post(clientId, '/token', refreshForm({ refresh_token }));
      expect(refreshed).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
      expect(alerts(clientId, 'authorization_code.replayed')).toBe(1);
    });
  }

  it('gives 200 refreshes the same successor, within the grace', async () => {
    const answers = await atOnce(200, 'shop.jwt', refreshForm(await signedIn('shop.jwt')));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    const successors = new Set(answers.map(({ body }) => body.refresh_token));
    expect(successors.size).toBe(1);
    const again = await post('shop.jwt', '/token', refreshForm({ refresh_token: [...successors][0] as string }));
    expect(again.status).toBe(200);
  });

  it('without grace revokes the family: one refresh wins, and what it won is revoked', async () => {
    const clientId = 'shop.graceless';
    const answers = await atOnce(200, clientId, refreshForm(await signedIn(clientId)));
    const winners = answers.filter(({ status }) => status === 200);
    expect(winners).toHaveLength(1);
    const refreshed = await post(clientId, '/token', refreshForm(winners[0]?.body ?? {}));
    expect(refreshed).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    const token = winners[0]?.body.access_token ?? '';
    expect(await post(clientId, '/introspect', { token })).toEqual({ status: 200, body: { active: false } });
    expect(alerts(clientId, 'refresh_token.reuse_detected')).toBe(1);
  });
});
