// What is said of a provider that cannot be used, at its discovery, of its credentials and after a sign-in: a sentence for each
// cause, and nothing that the provider wrote.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { OidcProviderClient } from '../../../src/login/upstream/oidc.ts';
import { CertificateMaker, type MadeCertificate } from '../../client-certificates.ts';
import { freePort } from '../../free-port.ts';
import { anOidcProvider, SIGN_IN_REQUEST } from './providers.ts';
import { json, ScriptedProvider } from './scripted-provider.ts';

const DOCUMENT = '/.well-known/openid-configuration';
const TEXT = 'text-of-the-provider';

let authority: MadeCertificate;
let upstream: ScriptedProvider;
let ofAnotherName: ScriptedProvider;
beforeAll(async () => {
  const maker = new CertificateMaker();
  authority = maker.authority();
  const named = (name: string) => maker.make({ issuer: authority, extensions: [`subjectAltName=DNS:${name}`] });
  upstream = await ScriptedProvider.start(named('localhost'));
  ofAnotherName = await ScriptedProvider.start(named('other.example'));
});
afterAll(() => {
  upstream.stop();
  ofAnotherName.stop();
});
beforeEach(() => {
  upstream.metadata = {};
  upstream.claims = { preferred_username: 'ada', name: 'Ada', email: 'a@b.example', email_verified: true, groups: [] };
  upstream.answers.clear();
});

function clientAt(issuer: string, authorities: string | undefined = authority.certificate): OidcProviderClient {
  const credentials = { clientId: 'grantry', clientSecret: 'ofgrantry', authorities };
  return new OidcProviderClient(anOidcProvider({ issuer }), { credentials, isClaimedElsewhere: () => false });
}

function answer(path: string, body: unknown, status = 200): void {
  upstream.answers.set(path, (_request, response) => json(response, body, status));
}

function page(path: string): void {
  upstream.answers.set(path, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<p>${TEXT}`);
  });
}

describe('a discovery', () => {
  const detailAt = async (issuer: string, authorities?: string) => {
    const client = clientAt(issuer, authorities);
    const { detail } = await client.discover();
    client.close();
    return detail;
  };

  it('of a good document → no detail', async () => {
    expect(await detailAt(upstream.issuer)).toBeUndefined();
  });

  it('of an issuer with a slash that the document has not → names the issuer of the document', async () => {
    expect(await detailAt(`${upstream.issuer}/`)).toBe(`the document names the issuer ${upstream.issuer}`);
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['another issuer', { issuer: 'https://other.example' }, 'the document names the issuer https://other.example'],
    ['an issuer that is none', { issuer: `${TEXT}\n` }, 'the discovery document failed: ERR_INVALID_URL'],
    ['an issuer beyond any', { issuer: `https://x/${'x'.repeat(81)}` }, 'the document names another issuer'],
    ['no key set', { jwks_uri: null }, 'the discovery document lacks an endpoint'],
    [
      'a token endpoint without TLS',
      { token_endpoint: `http://${TEXT}` },
      'the discovery document has an endpoint without TLS',
    ],
  ])('of a document with %s → says so', async (_, metadata, detail) => {
    upstream.metadata = metadata;
    expect(await detailAt(upstream.issuer)).toBe(detail);
  });

  it.each([404, 403, 500, 503, 429])('answered with status %i → the status', async (status) => {
    answer(DOCUMENT, { error: TEXT }, status);
    expect(await detailAt(upstream.issuer)).toBe(`the discovery document answered status ${status}`);
  });

  it('answered with a page → no JSON', async () => {
    page(DOCUMENT);
    expect(await detailAt(upstream.issuer)).toBe('the discovery document failed: OAUTH_RESPONSE_IS_NOT_JSON');
  });

  it('where nothing listens, of an unknown authority, and by TLS of another name → the code of each', async () => {
    expect(await detailAt(`http://127.0.0.1:${await freePort()}`)).toBe('the discovery document failed: ECONNREFUSED');
    const stranger = new CertificateMaker().authority().certificate;
    expect(await detailAt(upstream.issuer, stranger)).toBe(
      'the discovery document failed: UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    );
    expect(await detailAt(ofAnotherName.issuer)).toBe('the discovery document failed: ERR_TLS_CERT_ALTNAME_INVALID');
  });
});

describe('credentials that are tried with a made-up code', () => {
  const verified = async () => {
    const client = clientAt(upstream.issuer);
    await client.discover();
    const detail = await client.verifyCredentials(SIGN_IN_REQUEST.callbackUrl);
    client.close();
    return detail;
  };

  it('of which the code alone is refused → accepted; nothing but the code is made up', async () => {
    upstream.redeemed.length = 0;
    let form: URLSearchParams | undefined;
    let authorization: string | undefined;
    upstream.answers.set('/token', (request, response) => {
      authorization = request.headers.authorization;
      request.on('data', (chunk) => {
        form = new URLSearchParams(String(chunk));
      });
      request.on('end', () => json(response, { error: 'invalid_grant', error_description: TEXT }, 400));
    });
    expect(await verified()).toBeUndefined();
    expect(Object.fromEntries(form ?? [])).toEqual({
      grant_type: 'authorization_code',
      code: expect.stringMatching(/^[\w-]{43}$/),
      code_verifier: expect.stringMatching(/^[\w-]{43}$/),
      redirect_uri: SIGN_IN_REQUEST.callbackUrl,
    });
    expect(authorization).toBe(`Basic ${btoa('grantry:ofgrantry')}`);
  });

  it.each<[string, number, Record<string, unknown>, string]>([
    ['invalid_client', 401, { error: 'invalid_client' }, 'the token endpoint answered invalid_client'],
    ['unauthorized_client', 400, { error: 'unauthorized_client' }, 'the token endpoint answered unauthorized_client'],
    ['a word of its own', 400, { error: TEXT }, 'the token endpoint answered status 400'],
    ['a fault', 500, { error: TEXT }, 'the token endpoint answered status 500'],
    ['no word', 404, {}, 'the token endpoint answered status 404'],
  ])('that are answered with %s → says so', async (_, status, body, detail) => {
    answer('/token', body, status);
    expect(await verified()).toBe(detail);
  });

  it('refused by a challenge → its error', async () => {
    upstream.answers.set('/token', (_request, response) => {
      response.writeHead(401, { 'www-authenticate': `Basic realm="${TEXT}", error="invalid_client"` }).end();
    });
    expect(await verified()).toBe('the token endpoint answered invalid_client');
  });

  it.each<[string, number, unknown, string]>([
    ['no keys', 200, { keys: [] }, 'the key set has no keys'],
    ['no member keys', 200, {}, 'the key set has no keys'],
    ['status 404', 404, {}, 'the key set answered status 404'],
    ['status 503', 503, {}, 'the key set answered status 503'],
  ])('and a key set with %s → says so', async (_, status, body, detail) => {
    answer('/token', { error: 'invalid_grant' }, 400);
    answer('/keys', body, status);
    expect(await verified()).toBe(detail);
  });
});

describe('a sign-in', () => {
  const detailOf = async (parameters: Readonly<Record<string, string>> = { code: 'c1' }) => {
    const client = clientAt(upstream.issuer);
    await client.discover();
    const started = await client.begin(SIGN_IN_REQUEST);
    if (started === 'unavailable') throw new Error('the provider was discovered');
    upstream.nonce = started.nonce;
    const query = new URLSearchParams({ state: started.state, ...parameters });
    const end = await client.finish({
      pending: started,
      callbackUrl: SIGN_IN_REQUEST.callbackUrl,
      parameters: query,
    });
    client.close();
    return end.outcome === 'unavailable' || end.outcome === 'invalid' ? [end.outcome, end.detail] : [end.outcome];
  };

  it('that succeeds → no detail', async () => {
    expect(await detailOf()).toEqual(['asserted']);
  });

  it.each<[string, string, number, unknown, string[]]>([
    [
      'a wrong secret',
      '/token',
      401,
      { error: 'invalid_client' },
      ['invalid', 'the token endpoint answered invalid_client'],
    ],
    ['a fault of the token endpoint', '/token', 502, {}, ['unavailable', 'the token endpoint answered status 502']],
    ['a key set without keys', '/keys', 200, { keys: [] }, ['invalid', 'the key set has no key for the ID token']],
    ['a key set that is unavailable', '/keys', 503, {}, ['unavailable', 'the key set answered status 503']],
    ['a key set at another place', '/keys', 404, {}, ['invalid', 'the key set answered status 404']],
  ])('with %s → says so', async (_, path, status, body, expected) => {
    answer(path, body, status);
    expect(await detailOf()).toEqual(expected);
  });

  it('whose userinfo is refused → names userinfo', async () => {
    upstream.claims = {};
    answer('/userinfo', { error: TEXT }, 403);
    expect(await detailOf()).toEqual(['invalid', 'userinfo answered status 403']);
  });

  it.each<[Record<string, unknown>, string]>([
    [{ nonce: 'another' }, 'a claim of the ID token has another value than expected'],
    [{ aud: TEXT }, 'a claim of the ID token has another value than expected'],
    [{ exp: 1 }, 'the ID token is not valid at this time'],
  ])('with the claims %j → says so', async (claims, detail) => {
    upstream.claims = claims;
    expect(await detailOf()).toEqual(['invalid', detail]);
  });

  it('that the provider ends by a word of the RFCs → the word; by another → no detail', async () => {
    expect(await detailOf({ error: 'unauthorized_client', error_description: TEXT })).toEqual([
      'invalid',
      'the authorization endpoint answered unauthorized_client',
    ]);
    expect(await detailOf({ error: TEXT })).toEqual(['invalid', undefined]);
  });
});
