// Each method of client authentication against each (docs/scope.md: C1, C2): every client registered for one method and
// tried by every other, and every pair of methods in one request. A new method needs a line in CREDENTIALS.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CERTIFICATE_METHODS, CLIENT_AUTH_METHODS } from '../../../src/oauth/client-auth/index.ts';
import type { MadeCertificate } from '../../client-certificates.ts';
import { basic, type TestClient } from '../../grantry.ts';
import { asserted, assertedBy, assertionOf } from '../../oauth/client-auth/client-assertions.ts';
import { aKey, sign } from '../../oauth/values/signed-tokens.ts';
import { byKey, type MutualTlsGrantry, MutualTlsWorld } from '../mtls/mutual-tls-grantry.ts';

const SECRET = 'kSiQ0yY8Jh1x4nV7wB2dR5tG9mC3fL6p';
const KEY = aKey('ES256');
const CLUSTER = 'https://kubernetes.default.svc';
const ACCOUNT = { name: 'worker', uid: 'uid-of-worker' };
const world = new MutualTlsWorld();
const issued = world.maker.client(world.authority, { extensions: ['subjectAltName=DNS:worker.shop.svc'] });
const selfSigned = world.maker.make({ subject: '/CN=worker' });

interface Presented {
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly certificate?: MadeCertificate;
}

/** What a client presents by each method: the right credentials, if only it is registered for that method. */
const CREDENTIALS: Readonly<Record<string, (clientId: string) => Presented | Promise<Presented>>> = {
  client_secret_basic: (clientId) => ({ headers: { authorization: basic(clientId, SECRET) } }),
  client_secret_post: (clientId) => ({ form: { client_id: clientId, client_secret: SECRET } }),
  private_key_jwt: async (clientId) => {
    const { issuer, clock } = mtls.grantry;
    return { form: asserted(await assertionOf(KEY, { clientId, issuer, now: clock.now() })) };
  },
  kubernetes_service_account: async (clientId) => {
    const { issuer, clock } = mtls.grantry;
    const now = clock.now() / 1000;
    const bound = { namespace: 'shop', serviceaccount: ACCOUNT };
    const names = { iss: CLUSTER, sub: `system:serviceaccount:shop:${ACCOUNT.name}`, aud: [issuer] };
    const token = await sign(KEY, { ...names, iat: now, exp: now + 600, 'kubernetes.io': bound });
    return { form: { client_id: clientId, ...asserted(token) } };
  },
  none: (clientId) => ({ form: { client_id: clientId } }),
  tls_client_auth: (clientId) => ({ form: { client_id: clientId }, certificate: issued }),
  self_signed_tls_client_auth: (clientId) => ({ form: { client_id: clientId }, certificate: selfSigned }),
};

const METHODS = [...CLIENT_AUTH_METHODS.keys()];
const idOf = (method: string) => `team.${method}`;

/** Every client has all credentials, of the two kinds of certificate one; its method decides which of them count. */
function clientOf(method: string): TestClient {
  const assertion = assertedBy([KEY]);
  const certificate =
    method === 'self_signed_tls_client_auth'
      ? byKey(selfSigned)
      : ({ name: 'sanDns', value: 'worker.shop.svc' } as const);
  const credentials = { secret: SECRET, assertion, certificate, serviceAccounts: [ACCOUNT] };
  return { clientId: idOf(method), authMethod: method, ...credentials };
}

let mtls: MutualTlsGrantry;
beforeAll(async () => {
  const clusterIssuer = { current: async () => ({ issuer: CLUSTER, keys: [KEY.key] }) };
  mtls = await world.start({ clients: METHODS.map(clientOf), clusterIssuer });
});
afterAll(() => world.maker.remove());

/** At the endpoint that clients of every method may use, where certificates are asked for. */
async function ask(presented: readonly Presented[]) {
  const pairs = presented.flatMap(({ form = {} }) => Object.entries(form));
  // Two methods may send the same client_id, and that is one parameter.
  const form = pairs.filter(
    ([name], index) => name !== 'client_id' || pairs.findIndex(([first]) => first === name) === index,
  );
  const headers = Object.assign({}, ...presented.map((each) => each.headers ?? {}));
  const certificate = presented.find((each) => each.certificate !== undefined)?.certificate;
  const { status, body } = await mtls.post('/revoke', [['token', 'none'], ...form], { headers, certificate });
  return { status, error: body.error };
}

async function presentedBy(method: string, clientId: string): Promise<Presented> {
  const present = CREDENTIALS[method];
  if (present === undefined) throw new Error(`CREDENTIALS has no line for ${method}`);
  return present(clientId);
}

const every = METHODS.flatMap((one) => METHODS.map((other) => [one, other] as const));
const byCertificate = (method: string) => CERTIFICATE_METHODS.includes(method);

describe('a client registered for one method', () => {
  it.each(every)('%s, by %s → accepted only by its own', async (registered, used) => {
    const answer = await ask([await presentedBy(used, idOf(registered))]);
    // A certificate claims nothing by itself: a public client sends its client_id, and need not hide the certificate it has.
    const isOwn = registered === used || (registered === 'none' && byCertificate(used));
    expect(answer).toEqual(isOwn ? { status: 200, error: undefined } : { status: 401, error: 'invalid_client' });
  });
});

describe('two methods in one request', () => {
  // A connection has one certificate: the two methods that go by one are never used at once.
  const pairs = every.filter(([one, other]) => one < other && !(byCertificate(one) && byCertificate(other)));

  it.each(pairs)(
    '%s and %s → invalid_request, unless one is a client_id, alone or with a certificate',
    async (one, other) => {
      for (const registered of [one, other]) {
        const explicit = [one, other].filter((method) => CLIENT_AUTH_METHODS.get(method)?.implicit === false);
        const answer = await ask([
          await presentedBy(one, idOf(registered)),
          await presentedBy(other, idOf(registered)),
        ]);
        if (explicit.length === 2) expect(answer).toEqual({ status: 400, error: 'invalid_request' });
        else if (explicit.length === 1) expect(answer.status).toBe(explicit[0] === registered ? 200 : 401);
        else expect(answer.status).toBe(200);
      }
    },
  );
});
