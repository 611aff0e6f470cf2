import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import {
  clientSecretKeys,
  clientSecretManifest,
} from '../../../src/admission/client-secrets/client-secret-manifest.ts';
import { secretTemplateFaults } from '../../../src/admission/client-secrets/secret-template.ts';
import { clientFaults } from '../../../src/admission/clients/client-rules.ts';
import { readManifest } from '../../../src/admission/kinds/manifest.ts';
import { OAUTH_CLIENT, type OAuthClientManifest } from '../../../src/admission/kinds/oauth-client.ts';
import { PRESET_NAMES } from '../../../src/admission/kinds/secret-presets.ts';

function manifestWith(clientSecret: object): OAuthClientManifest {
  const { manifest, faults } = readManifest(OAUTH_CLIENT.refuse, {
    apiVersion: 'grantry.dev/v1alpha1',
    kind: 'OAuthClient',
    metadata: { name: 'app', namespace: 'team' },
    spec: { grantTypes: ['client_credentials'], scopes: ['openid', 'email'], auth: { clientSecret } },
  });
  if (manifest === undefined) throw new Error(JSON.stringify(faults));
  return manifest;
}

/** The keys, random ones as `random`, and the labels of the Secret that is written for a client. */
function secretFor(clientSecret: object) {
  const manifest = manifestWith(clientSecret);
  const { randomKeys = [] } = manifest.spec.auth.clientSecret ?? {};
  const { metadata, stringData } = clientSecretManifest({
    manifest,
    object: { namespace: 'team', name: 'app', uid: 'u', generation: 1, createdAt: 0, manifest: {} },
    facts: { clientId: 'team.app', clientSecret: 's3cret', issuer: 'https://id.example' },
    randomValues: Object.fromEntries(randomKeys.map((key) => [key, 'random'])),
  });
  const { 'grantry.dev/client': _, 'grantry.dev/client-uid': __, ...labels } = metadata.labels;
  return { stringData, labels };
}

const PLAIN = { 'client-id': 'team.app', 'client-secret': 's3cret', 'issuer-url': 'https://id.example' };
const GRAFANA = {
  GF_AUTH_GENERIC_OAUTH_CLIENT_ID: 'team.app',
  GF_AUTH_GENERIC_OAUTH_CLIENT_SECRET: 's3cret',
  GF_AUTH_GENERIC_OAUTH_AUTH_URL: 'https://id.example/authorize',
  GF_AUTH_GENERIC_OAUTH_TOKEN_URL: 'https://id.example/token',
  GF_AUTH_GENERIC_OAUTH_API_URL: 'https://id.example/userinfo',
  GF_AUTH_GENERIC_OAUTH_SCOPES: 'openid email',
  GF_AUTH_GENERIC_OAUTH_USE_PKCE: 'true',
  OAUTH_ISSUER: 'https://id.example',
};
const EXPECTED: Readonly<Record<string, object>> = {
  none: { stringData: PLAIN, labels: {} },
  'oauth2-proxy': { stringData: { ...PLAIN, 'cookie-secret': 'random' }, labels: {} },
  argocd: { stringData: PLAIN, labels: { 'app.kubernetes.io/part-of': 'argocd' } },
  grafana: { stringData: GRAFANA, labels: {} },
  'envoy-gateway': { stringData: PLAIN, labels: {} },
  spring: {
    stringData: {
      'client-id': 'team.app',
      'client-secret': 's3cret',
      'issuer-uri': 'https://id.example',
      type: 'oauth2',
      provider: 'grantry',
    },
    labels: {},
  },
};

describe('a preset', () => {
  it.each(PRESET_NAMES)('%s gives the Secret that its consumer expects, and nothing about it is a fault', (preset) => {
    expect(secretFor({ preset })).toEqual(EXPECTED[preset]);
    const { spec } = manifestWith({ preset });
    const supported = {
      issuer: undefined,
      supportedGrantTypes: ['client_credentials'],
      supportedAuthMethods: ['client_secret_basic'],
    };
    expect(clientFaults(spec, supported)).toEqual([]);
    expect(spec.auth.clientSecret && secretTemplateFaults(spec.auth.clientSecret, spec.scopes)).toEqual([]);
  });

  it('gives way to what the manifest says itself, field by field', () => {
    const own = {
      keys: { clientId: 'ID' },
      extraData: { GF_AUTH_GENERIC_OAUTH_AUTH_URL: 'https://other.example', MORE: 'x' },
      randomKeys: ['GF_AUTH_GENERIC_OAUTH_USE_PKCE'],
      secretTemplate: { labels: { tier: 'one' } },
    };
    const { GF_AUTH_GENERIC_OAUTH_CLIENT_ID: _, ...others } = GRAFANA;
    expect(secretFor({ preset: 'grafana', ...own })).toEqual({
      stringData: {
        ...others,
        ID: 'team.app',
        GF_AUTH_GENERIC_OAUTH_AUTH_URL: 'https://other.example',
        MORE: 'x',
        GF_AUTH_GENERIC_OAUTH_USE_PKCE: 'random',
      },
      labels: { tier: 'one' },
    });
    const labels = { 'app.kubernetes.io/part-of': 'platform' };
    expect(secretFor({ preset: 'argocd', secretTemplate: { labels } }).labels).toEqual(labels);
  });

  it('leaves a key alone that the manifest uses for something else', () => {
    const renamed = secretFor({ preset: 'oauth2-proxy', keys: { issuer: 'cookie-secret' } });
    expect(renamed.stringData['cookie-secret']).toBe('https://id.example');
    const kept = secretFor({ preset: 'oauth2-proxy', extraData: { 'cookie-secret': 'mine' } });
    expect(kept.stringData['cookie-secret']).toBe('mine');
    expect(secretFor({ preset: 'oauth2-proxy', randomKeys: ['cookie-secret'] })).toEqual(EXPECTED['oauth2-proxy']);
  });

  it('says where the secret is looked for in a Secret of the owner as well', () => {
    const { spec } = manifestWith({ preset: 'grafana', source: 'Existing', keys: { previousClientSecret: 'OLD' } });
    expect(clientSecretKeys(spec)).toMatchObject({
      clientSecret: 'GF_AUTH_GENERIC_OAUTH_CLIENT_SECRET',
      previousClientSecret: 'OLD',
    });
  });

  it('that is unknown is refused, and changes nothing', () => {
    const { spec } = manifestWith({ preset: 'jenkins' });
    const supported = {
      issuer: undefined,
      supportedGrantTypes: ['client_credentials'],
      supportedAuthMethods: ['client_secret_basic'],
    };
    expect(clientFaults(spec, supported).map(({ reason }) => reason)).toEqual(['UnsupportedPreset']);
    expect(secretFor({ preset: 'jenkins' })).toEqual(EXPECTED.none);
  });
});

it('literals with each variable → addresses of the issuer, and what the client has', () => {
  const names = ['CLIENT_ID', 'ISSUER', 'TOKEN_ENDPOINT', 'USERINFO_ENDPOINT', 'END_SESSION_ENDPOINT', 'JWKS_URI'];
  const extraData = Object.fromEntries(
    [...names, 'AUTHORIZATION_ENDPOINT', 'SCOPES'].map((name) => [name, `<\${${name}}>`]),
  );
  expect(secretFor({ extraData }).stringData).toMatchObject({
    CLIENT_ID: '<team.app>',
    ISSUER: '<https://id.example>',
    AUTHORIZATION_ENDPOINT: '<https://id.example/authorize>',
    TOKEN_ENDPOINT: '<https://id.example/token>',
    USERINFO_ENDPOINT: '<https://id.example/userinfo>',
    END_SESSION_ENDPOINT: '<https://id.example/logout>',
    JWKS_URI: '<https://id.example/.well-known/jwks.json>',
    SCOPES: '<openid email>',
  });
});

it('the guide has a line and a client for each preset, whose Secret is the one its consumer expects', () => {
  const guide = readFileSync(join(import.meta.dirname, '../../../docs/guides/consumers.md'), 'utf8');
  const names = PRESET_NAMES.filter((name) => name !== 'none').toSorted();
  expect([...guide.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name = '']) => name).toSorted()).toEqual(names);
  const shown = [...guide.matchAll(/```yaml\n(apiVersion: grantry.*?)```/gs)]
    .flatMap(([, yaml = '']) => parseAllDocuments(yaml))
    .map((document) => document.toJS() as { readonly spec: { readonly auth?: { readonly clientSecret?: object } } })
    .flatMap(({ spec }) => spec.auth?.clientSecret ?? [])
    .map((clientSecret): { readonly preset?: string } => clientSecret);
  expect([...new Set(shown.flatMap(({ preset = [] }) => preset))].toSorted()).toEqual(names);
  for (const { preset, ...own } of shown) {
    if (preset !== undefined) expect(secretFor({ preset, ...own })).toMatchObject(EXPECTED[preset] ?? {});
  }
});
