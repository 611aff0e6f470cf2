// What bounds a call of the library to the issuer, whose answer the API's own callers wait for: time, and no other address.

import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { AccessDenied, createVerifier, type VerifierOptions } from '../../src/resource-server/index.ts';
import { createTestIssuer } from '../../src/resource-server/testing.ts';

const AUDIENCE = 'urn:a';
const MODES = [
  ['for its keys', { mode: 'local' }, 5000, '503 keys_unavailable', '/.well-known/jwks.json'],
  [
    'about a token',
    { mode: 'introspection', introspection: { clientId: 'api', clientSecret: 'secret' } },
    2000,
    '503 introspection_unavailable',
    '/introspect',
  ],
] as const;

/** An issuer that answers so, and what an API says to a good token of it. */
async function issuerThat(answers: RequestListener, mode: (typeof MODES)[number][1]) {
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url);
    answers(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const verifier = createVerifier(Object.assign({ issuer, audience: AUDIENCE }, mode) as VerifierOptions);
  const authorization = `Bearer ${createTestIssuer({ issuer, audience: AUDIENCE }).token()}`;
  const outcome = async () => {
    try {
      await verifier.verify(new Request('https://api.example/', { headers: { authorization } }));
      return 'passes';
    } catch (error) {
      if (!(error instanceof AccessDenied)) throw error;
      return `${error.status} ${error.reason}`;
    }
  };
  return { asked, outcome };
}

describe.each(MODES)('an issuer that is asked %s', (_asked, mode, milliseconds, unavailable, path) => {
  it.each<[string, (response: ServerResponse) => unknown]>([
    ['with nothing', () => {}],
    ['with half an answer', (response) => response.writeHead(200).write('{"active":')],
  ])('and answers %s until the time is over → 503', async (_what, begin) => {
    const over = new AbortController();
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(over.signal);
    onTestFinished(() => timeout.mockRestore());
    const begun = Promise.withResolvers<void>();
    const { outcome } = await issuerThat((_request, response) => {
      begin(response);
      begun.resolve();
    }, mode);
    const answered = outcome();
    await begun.promise;
    over.abort();
    expect(await answered).toBe(unavailable);
    expect(timeout.mock.calls).toEqual([[milliseconds]]);
  });

  it('by a fetch that heeds no signal → 503 once the time is over', async () => {
    const over = new AbortController();
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(over.signal);
    onTestFinished(() => timeout.mockRestore());
    const issuer = createTestIssuer({ audience: AUDIENCE });
    const fetch = () => new Promise<never>(() => {});
    const options = Object.assign({ issuer: issuer.issuer, audience: AUDIENCE, fetch }, mode) as VerifierOptions;
    const headers = { authorization: `Bearer ${issuer.token()}` };
    const verified = createVerifier(options).verify(new Request('https://api.example/', { headers }));
    setImmediate(() => over.abort());
    await expect(verified).rejects.toMatchObject({ status: 503 });
  });

  it('and redirects → 503, and the redirect is not followed', async () => {
    const { asked, outcome } = await issuerThat((_request, response) => {
      response.writeHead(307, { location: '/elsewhere' }).end();
    }, mode);
    expect(await outcome()).toBe(unavailable);
    expect(asked).toEqual([path]);
  });
});
