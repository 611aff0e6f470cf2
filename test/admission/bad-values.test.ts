// Unknown and malformed values of the fields by which administrators and teams permit, select and import: whatever is
// wrong, the condition names the field and what would be right.

import { describe, expect, it } from 'vitest';
import type { Condition } from '../../src/admission/kinds/conditions.ts';
import { generateSigningKeyPem } from '../../src/oauth/registry/keys.ts';
import { admitAll, clientDocument, MACHINE, policyDocument, type WorldSettings } from './world.ts';

type Fields = Readonly<Record<string, unknown>>;

/** The message of the first condition that is False of the only object of ours. */
async function messageOn(documents: readonly unknown[], settings: WorldSettings = {}): Promise<string | undefined> {
  const { clients, policies, keys } = await admitAll(documents, settings);
  const verdicts: readonly { readonly conditions: readonly Condition[] }[] = [...clients, ...policies, ...keys];
  return verdicts.flatMap(({ conditions }) => conditions).find(({ status }) => status === 'False')?.message;
}

describe('a ClientPolicy', () => {
  const listing = (secretMetadata: unknown) => ({ allow: { secretMetadata } });
  it.each<[string, Fields, RegExp]>([
    ['keys as text', listing('a/*'), /^spec\.allow\.secretMetadata: .*array/],
    ['a key that is no text', listing([7]), /^spec\.allow\.secretMetadata\[0\]: .*string/],
    ['an empty key', listing(['']), /^spec\.allow\.secretMetadata\[0\]: .*empty/],
    ['a key twice', listing(['a/*', 'a/*']), /^spec\.allow\.secretMetadata: .*twice/],
    [
      'too many keys',
      listing(Array.from({ length: 101 }, (_, index) => `a/${index}`)),
      /^spec\.allow\.secretMetadata: .*100/,
    ],
    ['an unknown variable', listing([`\${name}/*`]), /^spec\.allow\.secretMetadata\[0\]: .*example\.com\/team/],
    ['a misspelt list', { allow: { secretMetdata: [] } }, /^spec\.allow\.secretMetdata: .*secretMetadata\?/],
    ['no selector', { namespaceSelector: undefined }, /^spec\.namespaceSelector: .*required/],
    [
      'a label that is no text',
      { namespaceSelector: { matchLabels: { tier: 7 } } },
      /^spec\.namespaceSelector\.matchLabels\.tier: .*string/,
    ],
    [
      'a misspelt selector',
      { namespaceSelector: { matchLabel: {} } },
      /^spec\.namespaceSelector\.matchLabel: .*matchLabels\?/,
    ],
    [
      'an unknown operator',
      { namespaceSelector: { matchExpressions: [{ key: 'tier', operator: 'Like' }] } },
      /^spec\.namespaceSelector\.matchExpressions\[0\]\.operator: .*In or NotIn or Exists or DoesNotExist/,
    ],
    [
      'an operator without its values',
      { namespaceSelector: { matchExpressions: [{ key: 'tier', operator: 'In' }] } },
      /^spec\.namespaceSelector\.matchExpressions\[0\]: .*needs values/,
    ],
  ])('with %s → the condition names the field and the remedy', async (_, spec, message) => {
    expect(await messageOn([policyDocument(spec)])).toMatch(message);
  });
});

describe('an OAuthClient', () => {
  const PATH = String.raw`^spec\.auth\.clientSecret\.secretTemplate`;
  it.each<[string, Fields, RegExp]>([
    ['labels as a list', { labels: ['a'] }, new RegExp(String.raw`${PATH}\.labels: .*`)],
    ['a label that is no text', { labels: { a: 1 } }, new RegExp(String.raw`${PATH}\.labels\.a: .*string`)],
    [
      'a malformed key',
      { labels: { 'a b': 'c' } },
      new RegExp(String.raw`${PATH}\.labels\["a b"\]: .*letters, digits`),
    ],
    ['a malformed value', { labels: { a: 'b c' } }, new RegExp(String.raw`${PATH}\.labels\.a: .*letters, digits`)],
    [
      'a reserved key',
      { annotations: { 'helm.sh/chart': 'c' } },
      new RegExp(String.raw`${PATH}\.annotations\["helm\.sh/chart"\]: .*leave it out`),
    ],
    [
      'a key of another operator',
      { annotations: { 'a.example/b': 'c' } },
      new RegExp(String.raw`${PATH}\.annotations\["a\.example/b"\]: .*ClientPolicy with allow\.secretMetadata`),
    ],
    ['a misspelt map', { label: {} }, new RegExp(String.raw`${PATH}\.label: .*labels\?`)],
  ])('with %s for its Secret → the condition names the field and the remedy', async (_, secretTemplate, message) => {
    expect(await messageOn([clientDocument({ ...MACHINE, auth: { clientSecret: { secretTemplate } } })])).toMatch(
      message,
    );
  });
});

describe('a SigningKey', async () => {
  const pem = await generateSigningKeyPem('ES256');
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'mine' }, stringData: { 'tls.key': pem } };
  const importing = (importSecretRef: unknown, more: Fields = {}) => ({
    apiVersion: 'grantry.dev/v1alpha1',
    kind: 'SigningKey',
    metadata: { name: 'imported' },
    spec: { importSecretRef, ...more },
  });

  it.each<[string, Fields, RegExp]>([
    ['a Secret by text', importing('mine'), /^spec\.importSecretRef: .*object/],
    ['no name', importing({}), /^spec\.importSecretRef\.name: .*required/],
    ['an impossible name', importing({ name: 'Mine' }), /^spec\.importSecretRef\.name: .*lower-case letters/],
    ['a Secret that is not there', importing({ name: 'other' }), /^spec\.importSecretRef\.name: .*no Secret "other"/],
    [
      'a key that is not there',
      importing({ name: 'mine', key: 'a.pem' }),
      /^spec\.importSecretRef\.name: .*"tls\.key"/,
    ],
    ['a malformed key id', importing({ name: 'mine', keyId: 'x' }), /^spec\.importSecretRef\.keyId: .*43 characters/],
    [
      'the id of another key',
      importing({ name: 'mine', keyId: 'A'.repeat(43) }),
      /^spec\.importSecretRef\.keyId: .*[A-Za-z0-9_-]{43}/,
    ],
    [
      'a key of another algorithm',
      importing({ name: 'mine' }, { algorithm: 'RS256' }),
      /^spec\.importSecretRef\.key: .*RS256/,
    ],
  ])('that imports %s → the condition names the field and the remedy', async (_, document, message) => {
    expect(await messageOn([document, secret])).toMatch(message);
  });
});
