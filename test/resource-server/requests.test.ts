// What a verifier reads of a request, and what it leaves for the handler behind it.

import { fastify } from 'fastify';
import * as oauth from 'oauth4webapi';
import { describe, expect, it } from 'vitest';
import { protect as protectRoute } from '../../src/resource-server/fastify.ts';
import {
  AccessDenied,
  createVerifier,
  type Needs,
  type NodeRequest,
  protect,
} from '../../src/resource-server/index.ts';
import { createTestIssuer } from '../../src/resource-server/testing.ts';
import { DpopHolder } from '../dpop-holder.ts';

const FORM = 'application/x-www-form-urlencoded';
const { issuer, audience, fetch, token } = createTestIssuer({ audience: 'https://notes.example/api' });
const verifier = createVerifier({ issuer, audience, fetch, mode: 'local', formBody: true });

function posted(body: string): Request {
  return new Request('https://notes.example/notes', { method: 'POST', body, headers: { 'content-type': FORM } });
}

async function outcome(request: Request | NodeRequest, form?: unknown): Promise<string> {
  try {
    return (await verifier.verify(request, { form })).subject;
  } catch (error) {
    if (!(error instanceof AccessDenied)) throw error;
    return `${error.status} ${error.reason}`;
  }
}

describe('needs', () => {
  const presented = new Request('https://notes.example/', { headers: { authorization: `Bearer ${token()}` } });

  it.each([
    ['a misspelt name', { scopes: 'notes.read' }],
    ['a bare scope', 'notes.read'],
    ['a bare list', ['notes.read']],
  ])('given as %s → TypeError, and no access without the scope', async (_, given) => {
    const needs = given as Needs;
    await expect(verifier.verify(presented, needs)).rejects.toThrow(TypeError);
    const app = fastify();
    app.get('/', { preHandler: protectRoute(verifier, needs) }, () => 'served');
    const response = await app.inject({ url: '/', headers: { authorization: `Bearer ${token()}` } });
    expect(response.statusCode).toBe(500);
  });
});

describe('a Fetch request', () => {
  it('with a token in its form → the handler still reads the form, and its answer is not stored', async () => {
    const api = protect(verifier, async (request) => new Response(await request.text()));
    const form = `access_token=${token()}&title=a`;
    const response = await api(posted(form));
    expect(await response.text()).toBe(form);
    expect(response.headers.get('cache-control')).toBe('no-store');
  });

  it('with a form that is larger than any with a token → 400, and it is not read to its end', async () => {
    expect(await outcome(posted(`access_token=${token()}&title=${'a'.repeat(100_000)}`))).toBe('400 token_malformed');
  });

  it('whose handler throws → the error of the handler', async () => {
    const api = protect(verifier, () => Promise.reject(new RangeError('of the handler')));
    await expect(api(posted(`access_token=${token()}`))).rejects.toThrow(RangeError);
  });
});

describe('a node:http request', () => {
  const rawHeaders = ['Content-Type', FORM, 'Content-Length', '9'];
  const node = (changes: Partial<NodeRequest> = {}): NodeRequest => ({
    method: 'POST',
    url: '/',
    rawHeaders,
    ...changes,
  });

  it.each([
    ['text', (value: string) => `access_token=${value}`],
    ['bytes', (value: string) => Buffer.from(`access_token=${value}`)],
    ['parameters', (value: string) => new URLSearchParams({ access_token: value })],
    ['an object', (value: string) => ({ access_token: value })],
    ['an object without a prototype', (value: string) => Object.assign(Object.create(null), { access_token: value })],
  ])('with its form as %s → a token', async (_, formOf) => {
    expect(await outcome(node(), formOf(token()))).toBe('test-subject');
    expect(await outcome(node({ body: formOf(token()) }))).toBe('test-subject');
  });

  it.each([
    [{ access_token: ['a', 'b'] }, '400 token_repeated'],
    [{ access_token: { a: 1 } }, '400 token_malformed'],
    [{ access_token: null }, '400 token_malformed'],
    [{ title: 'a' }, '401 no_credentials'],
  ])('with the form %j → %s', async (form, expected) => {
    expect(await outcome(node(), form)).toBe(expected);
  });

  it('whose form no parser has read → TypeError: the API is put together wrongly', async () => {
    await expect(outcome(node())).rejects.toThrow(TypeError);
  });

  it('below a router that cuts its address → its proof names the whole one', async () => {
    const holder = new DpopHolder();
    const bound = token({ claims: { cnf: { jkt: holder.thumbprint } } });
    const ath = await oauth.calculatePKCECodeChallenge(bound);
    const proof = holder.proof('https://notes.example/api/notes', Date.now(), { claims: { htm: 'GET', ath } });
    const headers = ['Authorization', `DPoP ${bound}`, 'DPoP', proof];
    const request = { method: 'GET', url: '/notes', originalUrl: '/api/notes?x=1', rawHeaders: headers };
    expect(await outcome(request)).toBe('test-subject');
  });
});

describe('oauth4webapi', () => {
  it('reads both challenges of one line', async () => {
    const request = new Request('https://notes.example/notes', { headers: { authorization: 'Bearer garbage' } });
    const api = protect(verifier, () => new Response(), { scope: 'notes.read' });
    const url = new URL('https://notes.example/notes');
    const call = oauth.protectedResourceRequest('garbage', 'GET', url, undefined, undefined, {
      [oauth.customFetch]: () => api(request),
    });
    const error = await call.catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(oauth.WWWAuthenticateChallengeError);
    expect((error as oauth.WWWAuthenticateChallengeError).cause).toMatchObject([
      {
        scheme: 'bearer',
        parameters: {
          realm: audience,
          error: 'invalid_token',
          scope: 'notes.read',
          resource_metadata: 'https://notes.example/.well-known/oauth-protected-resource/api',
        },
      },
      { scheme: 'dpop', parameters: { algs: 'ES256 PS256 EdDSA Ed25519' } },
    ]);
  });
});
