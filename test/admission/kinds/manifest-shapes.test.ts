// What single values of a manifest may look like, decided by pattern alone, so that the CRDs decide the same.

import { describe, expect, it } from 'vitest';
import { CLIENT_POLICY } from '../../../src/admission/kinds/client-policy.ts';
import { OAUTH_CLIENT } from '../../../src/admission/kinds/oauth-client.ts';
import { clientDocument, policyDocument, WEB } from '../world.ts';

const accepts = (spec: object) => OAUTH_CLIENT.refuse.safeParse(clientDocument({ ...WEB, ...spec })).success;
const lifetime = (accessTokenLifetime: string) => accepts({ tokens: { accessTokenLifetime } });
const glob = (pattern: string) =>
  CLIENT_POLICY.refuse.safeParse(policyDocument({ allow: { scopes: [pattern] } })).success;

describe('the shape of', () => {
  it.each(['10m', '1h30m', '1h0m1s', '90s', '0s', '99999h'])('a duration: %s', (text) => {
    expect(lifetime(text)).toBe(true);
  });
  it.each(['', '0', '30m1h', '1.5h', '500ms', '+1h', '-1h', '1d', '100000h', ' 1h'])('no duration: %j', (text) => {
    expect(lifetime(text)).toBe(false);
  });

  it.each([
    ['64Mi', 64 * 2 ** 20],
    ['1Ki', 1024],
    ['512k', 512_000],
    ['1G', 1e9],
    ['999999Gi', 999_999 * 2 ** 30],
  ])('a quantity of bytes: %s', (maxState, bytes) => {
    const read = CLIENT_POLICY.refuse.parse(policyDocument({ limits: { maxState } }));
    expect(read.spec.limits.maxState).toBe(bytes);
  });
  it.each(['', '64', '0Mi', '064Mi', '1.5Gi', '64MB', '64 Mi', '-1Mi', '1Ti', '1000000Gi', '64m', 64])(
    'no quantity of bytes: %j',
    (maxState) => {
      expect(CLIENT_POLICY.refuse.safeParse(policyDocument({ limits: { maxState } })).success).toBe(false);
    },
  );

  it.each(['2026-01-31T12:00:00Z', '2024-02-29T23:59:59.123+05:30'])('a time: %s', (revokeTokensBefore) => {
    expect(accepts({ revokeTokensBefore })).toBe(true);
  });
  it.each(['2026-01-31', '2026-01-31T12:00Z', '2026-01-31t12:00:00z', '2026-02-29T12:00:00Z', '2026-01-31T12:00:00'])(
    'no time: %s',
    (revokeTokensBefore) => {
      expect(accepts({ revokeTokensBefore })).toBe(false);
    },
  );

  it.each([
    'https://app.example.com',
    'http://localhost:3000',
    'http://127.0.0.1',
    'http://[::1]:8080',
    'https://1st.example.x2y',
  ])('an origin: %s', (text) => {
    expect(accepts({ allowedCorsOrigins: [text] })).toBe(true);
    // A browser would send it so.
    expect(new URL(text).origin).toBe(text);
  });
  it.each([
    ...['https://App.example.com', 'https://app.example.com/', 'https://app.example.com:443', 'http://app:80'],
    ...[
      'http://127.1',
      'http://1.2.3.256',
      'https://app.0x7f',
      'https://a.123',
      'https://app:65536',
      'https://app:080',
    ],
    ...['ftp://app', 'https://[0:0:0:0:0:0:0:1]', 'https://user@app', 'https://'],
  ])('no origin: %s', (text) => {
    expect(accepts({ allowedCorsOrigins: [text] })).toBe(false);
  });

  it.each(['https://example.com/about?a=b#c', 'http://x', 'https://Example.COM:8443'])(
    'a web address: %s',
    (clientUri) => {
      expect(accepts({ clientUri })).toBe(true);
      expect(URL.canParse(clientUri)).toBe(true);
    },
  );
  it.each([
    'javascript:alert(1)',
    'https://',
    'https://a b',
    'https://user@app',
    'https://1.2.3',
    '//app',
    'https://a:0',
  ])('no web address: %s', (clientUri) => {
    expect(accepts({ clientUri })).toBe(false);
  });

  it.each(['Shop', 'Größe 1 (neu)', 'می\u200Cخواهم', 'क\u094D\u200Dष', '\u2764\uFE0F Shop', '\u{1F6D2}', '店'])(
    'visible text: %j',
    (displayName) => {
      expect(accepts({ displayName })).toBe(true);
    },
  );
  it.each([
    '',
    'a\nb',
    'a\u202Eb',
    'a\u200Bb',
    'a\u200Db',
    'a\uFE0F',
    'م\u200C',
    '\u200Cم',
    'م\u200C\u200Cم',
    '\u3164',
    '\u00AD',
  ])('no visible text: %j', (displayName) => {
    expect(accepts({ displayName })).toBe(false);
  });

  it.each([`\${namespace}/*`, '$', '$$', '{', `$\${namespace}{`, 'a$b', '**'])('a glob: %s', (pattern) => {
    expect(glob(pattern)).toBe(true);
  });
  it.each(['', `\${name}`, '${', `\${namespace`, 'a b', 'ä'])('no glob: %j', (pattern) => {
    expect(glob(pattern)).toBe(false);
  });

  it('ServiceAccounts names each once', () => {
    const auth = (...names: string[]) => ({ auth: { serviceAccounts: names.map((name) => ({ name })) } });
    expect(accepts(auth('a', 'b'))).toBe(true);
    expect(accepts(auth('a', 'a'))).toBe(false);
  });
});
