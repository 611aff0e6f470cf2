// How the other files read the examples: with a folder of the test's own.

import { afterEach, expect, it } from 'vitest';
import { folderOf, removeFolder } from '../manifests/a-folder.ts';
import { EXAMPLE_ISSUER, Examples } from './setup/examples.ts';

const CLIENT = `apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: {name: wiki, namespace: shop}
spec:
  auth: {clientSecret: {keys: {issuer: WIKI_ISSUER}, randomKeys: [WIKI_COOKIES]}}
  grantTypes: [authorization_code, refresh_token]
  redirectUris: ['https://wiki.example.com/callback']
  backchannelLogoutUri: https://wiki.example.com/logout
  scopes: [openid, groups]
`;
const POLICY = `---
apiVersion: grantry.dev/v1alpha1
kind: ClientPolicy
metadata: {name: shop}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}
  allow: {scopes: [openid, groups], logoutHosts: [wiki.example.com]}
`;
const addresses = { 'https://wiki.example.com': 'http://127.0.0.1:1', [EXAMPLE_ISSUER]: 'http://127.0.0.1:2' };

const folders: string[] = [];
afterEach(async () => {
  await Promise.all(folders.splice(0).map(removeFolder));
});

async function examplesOf(files: Readonly<Record<string, string>>): Promise<Examples> {
  const folder = await folderOf(files);
  folders.push(folder);
  return new Examples(folder);
}

it('given a client with its policy → the client at the addresses of a test, and its Secret', async () => {
  const examples = await examplesOf({ 'wiki/client.yaml': CLIENT + POLICY });
  const spec = { tokens: { idTokenSigningAlgorithm: 'ES256' } };
  const { client, secret } = await examples.client('wiki', { addresses, spec });
  expect(client).toMatchObject({
    clientId: 'shop.wiki',
    redirectUris: ['http://127.0.0.1:1/callback'],
    backchannelLogoutUri: 'http://127.0.0.1:1/logout',
    idTokens: { signingAlgorithm: 'ES256' },
  });
  expect(secret).toEqual({
    'client-id': 'shop.wiki',
    'client-secret': client.secret,
    WIKI_ISSUER: 'http://127.0.0.1:2',
    WIKI_COOKIES: expect.stringMatching(/^[\w-]{43}$/),
  });
});

it('given a client without a secret → no Secret', async () => {
  const text = CLIENT.replace(/auth: .*/, 'auth: {method: none}') + POLICY;
  const { client, secret } = await (await examplesOf({ 'wiki/client.yaml': text })).client('wiki', { addresses });
  expect([client.authMethod, client.secret, secret]).toEqual(['none', undefined, {}]);
});

it.each([
  ['without its policy', CLIENT],
  ['with an unknown field', `${CLIENT}  color: red\n${POLICY}`],
  ['with an address that the test does not replace', CLIENT.replace('wiki.example.com/c', 'a.example.com/c') + POLICY],
])('given a client %s → a failure', async (_, text) => {
  const examples = await examplesOf({ 'wiki/client.yaml': text });
  await expect(examples.client('wiki', { addresses })).rejects.toThrow('wiki/client.yaml');
});

it('given a file with an address that the test does not replace → a failure', async () => {
  const examples = await examplesOf({ 'a.conf': 'from https://wiki.example.com/a to https://other.example.com' });
  expect(() => examples.file('a.conf', addresses)).toThrow('https://other.example.com');
  const more = { ...addresses, 'https://other.example.com': 'http://[::1]' };
  expect(examples.file('a.conf', more)).toBe('from http://127.0.0.1:1/a to http://[::1]');
});
