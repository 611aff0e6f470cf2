// Discovery documents that are not used: what is reported of them is a word, and nothing of what they say.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ProviderClients } from '../../../src/login/upstream/provider-clients.ts';
import { CertificateMaker, type MadeCertificate } from '../../client-certificates.ts';
import { TestClock } from '../../grantry.ts';
import { until } from '../../until.ts';
import { anOidcProvider } from './providers.ts';
import { ScriptedProvider } from './scripted-provider.ts';

const PATH = '/.well-known/openid-configuration';
const BYTES_MAX = 1024 * 1024;

let authority: MadeCertificate;
let upstream: ScriptedProvider;
beforeAll(async () => {
  const maker = new CertificateMaker();
  authority = maker.authority();
  upstream = await ScriptedProvider.start(
    maker.make({ issuer: authority, extensions: ['subjectAltName=DNS:localhost'] }),
  );
});
afterAll(() => upstream.stop());
beforeEach(() => {
  upstream.metadata = {};
  upstream.answers.clear();
  upstream.asked.clear();
});

/** What is reported of the provider once it was tried. */
async function reportOf(): Promise<unknown> {
  const credentials = Object.assign({}, anOidcProvider().credentials, { authorities: authority.certificate });
  const provider = anOidcProvider({ issuer: upstream.issuer, credentials });
  const served = [provider];
  const clients = new ProviderClients({
    clock: new TestClock(),
    providers: () => served,
    observe: () => {},
    onDiscovered: () => {},
    onGroupsLeftOut: () => {},
  });
  clients.discover();
  await until('the discovery', () => (upstream.asked.get(PATH) ?? 0) > 0 && !clients.isDiscovering);
  clients.close();
  return clients.reports().get(provider.uid);
}

const FAILED = { generation: 1, reach: 'DiscoveryFailed', isOverage: false };

/** A good document of so many bytes. */
function documentOf(bytes: number): string {
  const { issuer } = upstream;
  const endpoints = { authorization_endpoint: `${issuer}/a`, token_endpoint: `${issuer}/t`, jwks_uri: `${issuer}/k` };
  const document = (padding: string) => JSON.stringify(Object.assign({ issuer, padding }, endpoints));
  return document('x'.repeat(bytes - document('').length));
}

function answerWith(text: string): void {
  upstream.answers.set(PATH, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(text);
  });
}

it('a document of 1 MiB → used; of one byte more → failed', async () => {
  answerWith(documentOf(BYTES_MAX));
  expect(await reportOf()).toEqual({ generation: 1, reach: 'Reachable', isOverage: false });
  answerWith(documentOf(BYTES_MAX + 1));
  expect(await reportOf()).toEqual(FAILED);
});

it.each([301, 302, 303, 307, 308])(
  'a redirect with %i to a good document → failed, and not followed',
  async (status) => {
    upstream.answers.set(PATH, (_request, response) => {
      response.writeHead(status, { location: `${upstream.issuer}/elsewhere` }).end();
    });
    upstream.answers.set('/elsewhere', (_request, response) => response.end(documentOf(1000)));
    expect(await reportOf()).toEqual(FAILED);
    expect(upstream.asked.get('/elsewhere')).toBeUndefined();
  },
);

describe('behind an https issuer', () => {
  it.each(['authorization_endpoint', 'token_endpoint', 'userinfo_endpoint', 'jwks_uri'])(
    'an http %s, also on loopback → failed',
    async (endpoint) => {
      for (const address of [
        'http://127.0.0.1:1/x',
        'http://corp.example.com/x',
        'HTTP://corp.example.com/x',
        '//x/',
      ]) {
        upstream.metadata = { [endpoint]: address };
        expect(await reportOf()).toEqual(FAILED);
      }
      upstream.metadata = {};
      expect(await reportOf()).toEqual({ generation: 1, reach: 'Reachable', isOverage: false });
    },
  );
});

it.each([
  ['another issuer', { issuer: 'https://evil.example/<script>' }, 'IssuerMismatch'],
  ['no address in an endpoint', { token_endpoint: '<script>alert(1)</script>' }, 'DiscoveryFailed'],
  ['a number in an endpoint', { token_endpoint: 7 }, 'DiscoveryFailed'],
])('a document with %s → a word of ours, and nothing of the document', async (_case, metadata, reach) => {
  upstream.metadata = metadata;
  expect(await reportOf()).toEqual({ generation: 1, reach, isOverage: false });
});
