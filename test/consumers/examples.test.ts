// How the other files read the examples: with a folder of the test's own.

import { afterEach, expect, it } from 'vitest';
import { folderOf, removeFolder } from '../manifests/a-folder.ts';
import { EXAMPLE_ISSUER, Examples } from './setup/examples.ts';

const CLIENT = `apiVersion: grantry.dev/v1alpha1
kind: OAuthClient
metadata: {name: wiki, namespace: shop}
spec:
  grantTypes: [authorization_code, refresh_token]
  redirectUris: ['https://wiki.example.com/callback']
  backchannelLogoutUri: https://wiki.example.com/logout
  scopes: [openid, groups]
`;
const POLICY = `apiVersion: grantry.dev/v1alpha1
kind: ClientPolicy
metadata: {name: shop}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}
  allow: {scopes: [openid, groups], logoutHosts: [wiki.example.com]}
`;
const WISHES = {
  addresses: { 'https://wiki.example.com': 'http://127.0.0.1:1', [EXAMPLE_ISSUER]: 'http://127.0.0.1:2' },
  secret: 'a-secret-of-more-than-thirty-two-bytes',
};

const folders: string[] = [];
afterEach(async () => {
  await Promise.all(folders.splice(0).map(removeFolder));
});

async function examplesOf(files: Readonly<Record<string, string>>): Promise<Examples> {
  const folder = await folderOf(files);
  folders.push(folder);
  return new Examples(folder);
}

it.each(['policy.yaml', 'wiki/policy.yaml'])(
  'given a client and %s → the client at the addresses of a test',
  async (policy) => {
    const examples = await examplesOf({ 'wiki/client.yaml': CLIENT, [policy]: POLICY });
    expect(await examples.client('wiki', { ...WISHES, algorithm: 'ES256' })).toMatchObject({
      clientId: 'shop.wiki',
      secret: WISHES.secret,
      redirectUris: ['http://127.0.0.1:1/callback'],
      backchannelLogoutUri: 'http://127.0.0.1:1/logout',
      idTokens: { signingAlgorithm: 'ES256' },
      admittedBy: 'policy',
    });
  },
);

it.each([
  ['without its policy', { 'wiki/client.yaml': CLIENT }],
  ['with an unknown field', { 'wiki/client.yaml': `${CLIENT}  color: red\n`, 'policy.yaml': POLICY }],
  [
    'with an address that no test replaces',
    { 'wiki/client.yaml': CLIENT.replace('wiki.example.com/callback', 'other.example.com/'), 'policy.yaml': POLICY },
  ],
])('given a client %s → a failure', async (_, files) => {
  const examples = await examplesOf(files);
  await expect(examples.client('wiki', WISHES)).rejects.toThrow('wiki/client.yaml');
});

it('given a file with an address that no test replaces → a failure', async () => {
  const examples = await examplesOf({ 'a.conf': 'from https://wiki.example.com/a to https://other.example.com' });
  expect(() => examples.file('a.conf', WISHES.addresses)).toThrow('https://other.example.com');
  const addresses = { ...WISHES.addresses, 'https://other.example.com': 'http://[::1]' };
  expect(examples.file('a.conf', addresses)).toBe('from http://127.0.0.1:1/a to http://[::1]');
});
