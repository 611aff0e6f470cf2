// The Secrets that presets ask for, as the controller writes them: what the consumer finds, what a rotation leaves as it
// was, and what the manifest says itself.

import { beforeAll, expect, it } from 'vitest';
import { until } from '../../until.ts';
import { ClientInstall } from '../setup/client-controllers.ts';
import { sharedCluster } from '../setup/shared-cluster.ts';

const cluster = sharedCluster();
let install: ClientInstall;
let team: string;
beforeAll(async () => {
  install = await ClientInstall.make(cluster);
  team = await cluster.namespace();
});

const ISSUER = 'https://id.example';
const SECRET = expect.stringMatching(/^[\w-]{43}$/);
const plain = (name: string) => ({ 'client-id': `${team}.${name}`, 'client-secret': SECRET, 'issuer-url': ISSUER });

const PRESETS: readonly (readonly [string, (name: string) => object, object])[] = [
  // 32 bytes in base64url, of which it makes an AES-256 key.
  ['oauth2-proxy', (name) => ({ ...plain(name), 'cookie-secret': SECRET }), {}],
  ['argocd', plain, { 'app.kubernetes.io/part-of': 'argocd' }],
  [
    'grafana',
    (name) => ({
      GF_AUTH_GENERIC_OAUTH_CLIENT_ID: `${team}.${name}`,
      GF_AUTH_GENERIC_OAUTH_CLIENT_SECRET: SECRET,
      GF_AUTH_GENERIC_OAUTH_AUTH_URL: `${ISSUER}/authorize`,
      GF_AUTH_GENERIC_OAUTH_TOKEN_URL: `${ISSUER}/token`,
      GF_AUTH_GENERIC_OAUTH_API_URL: `${ISSUER}/userinfo`,
      GF_AUTH_GENERIC_OAUTH_SCOPES: `${team}/read`,
      GF_AUTH_GENERIC_OAUTH_USE_PKCE: 'true',
      OAUTH_ISSUER: ISSUER,
    }),
    {},
  ],
  ['envoy-gateway', plain, {}],
  [
    'spring',
    (name) => ({
      'client-id': `${team}.${name}`,
      'client-secret': SECRET,
      'issuer-uri': ISSUER,
      type: 'oauth2',
      provider: 'grantry',
    }),
    {},
  ],
];

it.each(PRESETS)('the preset %s makes the Secret that its consumer reads', async (preset, data, labels) => {
  await install.start();
  await install.apply(team, preset, { auth: { clientSecret: { preset } } });
  const { metadata } = await install.whenReady(team, preset);
  const secret = await install.secret(team, `${preset}-oauth`);
  expect([secret?.type, secret?.data]).toEqual(['Opaque', data(preset)]);
  const { 'grantry.dev/client': _, 'grantry.dev/client-uid': __, ...others } = secret?.metadata.labels ?? {};
  expect(others).toEqual(labels);
  const texts = Object.values(secret?.data ?? {});
  const accepted = await Promise.all(texts.map((text) => install.accepts(metadata.uid, text)));
  expect(accepted.filter(Boolean)).toHaveLength(1);
});

it('a rotation keeps the random values of a preset', async () => {
  await install.start();
  const spec = { auth: { clientSecret: { preset: 'oauth2-proxy' } } };
  await install.apply(team, 'rotated', spec);
  const { metadata, status } = await install.whenReady(team, 'rotated');
  const first = await install.secret(team, 'rotated-oauth');
  await install.apply(team, 'rotated', spec, { annotations: { 'grantry.dev/rotate-requested-at': 'now' } });
  const current = async () => (await install.secret(team, 'rotated-oauth'))?.data;
  await install.passUnobserved(metadata.uid, status.secret.revision);
  await until('there is a new one', async () => (await current())?.['client-secret'] !== first?.data['client-secret']);
  expect(await current()).toEqual({ ...first?.data, 'client-secret': SECRET });
});

it('what the manifest says itself wins over the preset, and a preset that goes takes what was its own along', async () => {
  await install.start();
  const own = {
    keys: { clientSecret: 'password' },
    extraData: { provider: 'company' },
    secretTemplate: { labels: { 'app.kubernetes.io/part-of': 'shop' } },
  };
  await install.apply(team, 'own', { auth: { clientSecret: { preset: 'spring', ...own } } });
  await install.whenReady(team, 'own');
  const first = await install.secret(team, 'own-oauth');
  const id = { 'client-id': `${team}.own` };
  expect(first?.data).toEqual({ ...id, password: SECRET, 'issuer-uri': ISSUER, type: 'oauth2', provider: 'company' });
  expect(first?.metadata.labels).toMatchObject({ 'app.kubernetes.io/part-of': 'shop' });
  await install.apply(team, 'own', { auth: { clientSecret: { preset: 'none' } } });
  const current = async () => (await install.secret(team, 'own-oauth'))?.data;
  await until('what was the preset’s is gone', async () => (await current())?.type === undefined);
  await install.whenReady(team, 'own');
  expect(await current()).toEqual({ ...id, 'client-secret': first?.data.password, 'issuer-url': ISSUER });
});

it('an unknown preset is refused with its name', async () => {
  await install.start();
  await install.apply(team, 'unknown', { auth: { clientSecret: { preset: 'jenkins' } } });
  const { status } = await install.whenCondition(team, 'unknown', 'Accepted', 'UnsupportedPreset');
  expect(JSON.stringify(status)).toContain('oauth2-proxy');
  expect(await install.secret(team, 'unknown-oauth')).toBeUndefined();
});
