// Tokens that a running grantry binds to the certificate of a client, at an API that asks for certificates itself (RFC 8705 §3;
// docs/scope.md: 8705-2).

import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { accessOf as accessOfConnect, protect as protectConnect } from '../../src/resource-server/connect.ts';
import { accessOf, resourceServer } from '../../src/resource-server/fastify.ts';
import {
  type ApiRequest,
  createVerifier,
  type Verifier,
  type VerifierOptions,
} from '../../src/resource-server/index.ts';
import type { MadeCertificate } from '../client-certificates.ts';
import { DEFAULT_AUDIENCE } from '../grantry.ts';
import { type MutualTlsGrantry, MutualTlsWorld } from '../http/mtls/mutual-tls-grantry.ts';

const world = new MutualTlsWorld();
const { maker, authority } = world;
const job = maker.client(authority, { subject: '/CN=job' });
/** The same name and authority. */
const renewed = maker.client(authority, { subject: '/CN=job' });
/** Known to no authority. */
const stranger = maker.make({ subject: '/CN=job' });

const JWT = 'team.job';
const OPAQUE = 'team.opaque';
const UNBOUND = 'team.unbound';
const API = { clientId: 'team.api', secret: 'the-secret-of-the-api-behind-it' };
const byName = { authMethod: 'tls_client_auth', certificate: { name: 'subjectDn', value: 'CN=job' } } as const;
const tokens = {
  accessTokenFormat: 'opaque',
  accessTokenLifetimeSeconds: 600,
  refreshTokenIdleLifetimeSeconds: 1_209_600,
  refreshTokenLifetimeSeconds: 7_776_000,
  refreshTokenRotation: 'Always',
  refreshTokenReuseGraceSeconds: 10,
} as const;
const grantTypes = ['client_credentials'] as const;

let mtls: MutualTlsGrantry;

beforeAll(async () => {
  mtls = await world.start({
    clients: [
      { clientId: JWT, grantTypes, senderConstraint: 'MutualTLS', ...byName },
      { clientId: OPAQUE, grantTypes, senderConstraint: 'MutualTLS', tokens, ...byName },
      { clientId: UNBOUND, grantTypes, ...byName },
      { ...API, resourceServerAudiences: [DEFAULT_AUDIENCE] },
    ],
  });
});
afterAll(() => maker.remove());

async function tokenOf(clientId: string): Promise<string> {
  return (await mtls.tokens(clientId, { certificate: job })).body.access_token;
}

/** As the guide has it. A connection without a certificate has an object without members. */
function certificate(presented: ApiRequest): Uint8Array | undefined {
  return 'socket' in presented ? (presented.socket as TLSSocket).getPeerCertificate().raw : undefined;
}

function verifierOf(mode: 'local' | 'introspection', options: Partial<VerifierOptions> = {}): Verifier {
  const { issuer, clock } = mtls.grantry;
  const introspection = { clientId: API.clientId, clientSecret: API.secret };
  const by = mode === 'local' ? { mode } : { mode, introspection };
  return createVerifier(Object.assign({ issuer, audience: DEFAULT_AUDIENCE, clock, certificate }, by, options));
}

/** Which certificates are good is the issuer's business: the API takes any and compares. */
const tls = {
  cert: world.server.certificate,
  key: world.server.key,
  requestCert: true,
  rejectUnauthorized: false,
} as const;

const ADAPTERS = {
  Connect: async (verifier: Verifier): Promise<number> => {
    const middleware = protectConnect(verifier);
    const listener: RequestListener = (incoming, outgoing) =>
      middleware(incoming, outgoing, () => outgoing.end(accessOfConnect(incoming).clientId));
    const server = createServer(tls, listener).listen(0, '127.0.0.1');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  },

  Fastify: async (verifier: Verifier): Promise<number> => {
    const app = fastify({ https: tls, forceCloseConnections: true });
    app.register(resourceServer, { verifier });
    app.get('/notes', (incoming) => accessOf(incoming).clientId);
    await app.listen({ host: '127.0.0.1', port: 0 });
    onTestFinished(() => app.close());
    return (app.server.address() as AddressInfo).port;
  },
};

interface Answer {
  readonly status: number;
  /** Of the challenge. */
  readonly error: string | undefined;
  readonly body: string;
  readonly session: Buffer | undefined;
  readonly isResumed: boolean;
}

/** One request on a connection of its own. */
async function called(port: number, token: string, by?: MadeCertificate, session?: Buffer): Promise<Answer> {
  const own = by && { cert: by.certificate, key: by.key };
  const options = {
    host: '127.0.0.1',
    port,
    path: '/notes',
    agent: false,
    ca: world.server.certificate,
    session,
    ...own,
  };
  const sent = request({ ...options, servername: 'localhost', headers: { authorization: `Bearer ${token}` } });
  let ticket: Buffer | undefined;
  sent.on('socket', (socket) => socket.on('session', (made: Buffer) => (ticket = made)));
  sent.end();
  const [response] = await once(sent, 'response');
  const isResumed = response.socket.isSessionReused();
  const body = (await response.toArray()).join('');
  const error = /error="(\w+)"/.exec(response.headers['www-authenticate'] ?? '')?.[1];
  return { status: response.statusCode, error, body, session: ticket, isResumed };
}

describe.each(['Connect', 'Fastify'] as const)('an API over TLS by %s', (adapter) => {
  const INVALID = { status: 401, error: 'invalid_token' };

  it.each([
    ['local', JWT],
    ['introspection', JWT],
    ['introspection', OPAQUE],
  ] as const)('%s, given a token of %s → it passes with its certificate and with no other', async (mode, clientId) => {
    const port = await ADAPTERS[adapter](verifierOf(mode));
    const token = await tokenOf(clientId);
    const first = await called(port, token, job);
    expect(first).toMatchObject({ status: 200, body: clientId });
    for (const other of [undefined, renewed, stranger]) {
      expect(await called(port, token, other)).toMatchObject(INVALID);
    }
    expect(await called(port, token, job, first.session)).toMatchObject({ status: 200, isResumed: true });
  });

  it('that demands such tokens → a bearer token does not pass, with a certificate or without', async () => {
    const port = await ADAPTERS[adapter](verifierOf('local', { requireBinding: 'MutualTLS' }));
    const unbound = await tokenOf(UNBOUND);
    for (const by of [job, undefined]) expect(await called(port, unbound, by)).toMatchObject(INVALID);
    expect(await called(port, await tokenOf(JWT), job)).toMatchObject({ status: 200 });
  });

  it('that reads no certificates → no such token passes', async () => {
    const port = await ADAPTERS[adapter](verifierOf('local', { certificate: () => undefined }));
    expect(await called(port, await tokenOf(JWT), job)).toMatchObject(INVALID);
    expect(await called(port, await tokenOf(UNBOUND), job)).toMatchObject({ status: 200 });
  });
});
