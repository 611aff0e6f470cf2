// How an API checks an access token: by our library and by those that it is compared with, each behind its own adapter and given
// the same request.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fastifyJwt from '@fastify/jwt';
import { auth } from 'express-oauth2-jwt-bearer';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { protect as protectConnect } from '../../src/resource-server/connect.ts';
import { accessOf, protect as protectFastify } from '../../src/resource-server/fastify.ts';
import { createVerifier, type Verifier } from '../../src/resource-server/index.ts';

/** What an API knows of its issuer. */
export interface IssuerFacts {
  readonly issuer: string;
  readonly audience: string;
  readonly jwks: { readonly keys: readonly object[] };
  /** The one key of the set, as PEM. */
  readonly publicKey: string;
}

/** Checks one token. Rejects where it is refused. */
export type TokenCheck = (token: string) => Promise<unknown>;

/** What an API in production gets with a request besides the token. */
const HEADERS = {
  host: 'notes.example.com',
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  accept: 'application/json',
  'accept-encoding': 'gzip, deflate, br',
  'x-forwarded-for': '203.0.113.7',
  'x-forwarded-proto': 'https',
  traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
};
const RAW_HEADERS = Object.entries(HEADERS).flat();

export const CHECKERS = {
  'ours, Connect': async (facts) => {
    const middleware = protectConnect(verifierOf(facts));
    return (token) =>
      new Promise<void>((resolve, reject) => {
        const request = { method: 'GET', url: '/notes', rawHeaders: withToken(token) };
        const response = { statusCode: 200, setHeader: () => {}, end: () => reject(new Error('refused')) };
        middleware(request, response, (error) => (error === undefined ? resolve() : reject(error)));
      });
  },

  'express-oauth2-jwt-bearer': async ({ issuer, audience, jwks }) => {
    const jwksUri = await addressOf(jwks);
    // As Express makes it: its types are those of a whole request.
    const middleware = auth({ issuer, audience, jwksUri, strict: true }) as (
      request: object,
      response: object,
      next: (error?: unknown) => void,
    ) => void;
    const more = {
      method: 'GET',
      url: '/notes',
      originalUrl: '/notes',
      protocol: 'https',
      query: {},
      is: () => false,
      get: (name: string) => new Map(Object.entries(HEADERS)).get(name.toLowerCase()),
    };
    return (token) =>
      new Promise<void>((resolve, reject) => {
        const headers = { ...HEADERS, authorization: `Bearer ${token}` };
        middleware({ ...more, headers }, {}, (error) => (error === undefined ? resolve() : reject(error)));
      });
  },

  'ours, Fastify': async (facts) => {
    const [request, reply] = await aRequest(fastify());
    const hook = protectFastify(verifierOf(facts));
    return async (token) => {
      request.raw.rawHeaders = withToken(token);
      await hook(request, reply);
      // As a handler does; it throws where no token has been admitted.
      accessOf(request);
    };
  },

  '@fastify/jwt': (facts) => fastifyChecker(facts, {}),
  '@fastify/jwt with its cache': (facts) => fastifyChecker(facts, { cache: true }),
} as const satisfies Record<string, (facts: IssuerFacts) => Promise<TokenCheck>>;

async function fastifyChecker(
  { issuer, audience, publicKey }: IssuerFacts,
  more: { readonly cache?: boolean },
): Promise<TokenCheck> {
  const app = fastify();
  await app.register(fastifyJwt, {
    secret: { public: publicKey },
    verify: { algorithms: ['ES256'], allowedIss: issuer, allowedAud: audience, ...more },
  });
  const [request] = await aRequest(app);
  return async (token) => {
    request.raw.headers.authorization = `Bearer ${token}`;
    await request.jwtVerify();
  };
}

/** A request as a handler of Fastify has it, and its reply. */
async function aRequest(app: FastifyInstance): Promise<readonly [FastifyRequest, FastifyReply]> {
  const { promise, resolve } = Promise.withResolvers<readonly [FastifyRequest, FastifyReply]>();
  app.get('/notes', (request, reply) => {
    resolve([request, reply]);
    return '';
  });
  await app.inject({ url: '/notes', headers: HEADERS });
  return await promise;
}

function verifierOf({ issuer, audience, jwks }: IssuerFacts): Verifier {
  return createVerifier({ issuer, audience, mode: 'local', fetch: async () => Response.json(jwks) });
}

function withToken(token: string): string[] {
  return [...RAW_HEADERS, 'authorization', `Bearer ${token}`];
}

/** Serves a key set; its fetching does not keep the process. */
async function addressOf(jwks: object): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(jwks));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
}
