// A sign-in through grantry's pages, behind TLS and without, as the programs of the other files go through it.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CertificateMaker } from '../client-certificates.ts';
import { PKCE } from '../grantry.ts';
import { startGrantryProvider } from './setup/grantry-provider.ts';
import type { Provider } from './setup/provider.ts';
import { Visitor } from './setup/visitor.ts';

const redirectUri = 'http://127.0.0.1:1/callback';

describe.each(['http', 'https'])('grantry as a provider by %s', (scheme) => {
  const maker = new CertificateMaker();
  let provider: Provider;

  beforeAll(async () => {
    const authority = maker.authority();
    const certificate = maker.make({ issuer: authority, extensions: ['subjectAltName=DNS:localhost'] });
    const consumers = [{ clientId: 'shop.web', secret: 'a-secret-of-more-than-thirty-two-bytes', redirectUri }];
    provider = await startGrantryProvider(
      scheme === 'https' ? { consumers, tls: { certificate, authority } } : { consumers },
    );
  });
  afterAll(async () => {
    await provider?.stop();
    maker.remove();
  });

  it('given a visitor → a sign-in and a code; a second time a code without a sign-in', async () => {
    const visitor = new Visitor(provider);
    const query = new URLSearchParams({
      client_id: 'shop.web',
      redirect_uri: redirectUri,
      response_type: 'code',
      scope: 'openid profile',
      code_challenge: PKCE.challenge,
      code_challenge_method: 'S256',
    });
    const address = `${provider.endpoints.authorization}?${query}`;
    for (const _ of [1, 2]) {
      const answer = await visitor.answerTo(address, redirectUri);
      expect(Object.fromEntries(answer.searchParams)).toEqual({ code: expect.any(String), iss: provider.issuer });
      expect(visitor.signIns).toBe(1);
    }
  });
});
