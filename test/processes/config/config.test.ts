import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  ConfigurationError,
  readSettings,
  type SettingsSources,
  variableReference,
} from '../../../src/processes/config/config.ts';

function faults(environment: NonNullable<SettingsSources['environment']>): readonly string[] {
  try {
    readSettings({ environment });
  } catch (error) {
    if (error instanceof ConfigurationError) return error.faults;
    throw error;
  }
  return [];
}

describe('the configuration', () => {
  it('has a default for everything that dev needs', () => {
    expect(readSettings({ environment: {} })).toMatchObject({
      issuer: 'http://localhost:9400',
      host: '127.0.0.1',
      rateLimits: true,
      dpopNonce: 'on-demand',
      signInOrder: 'providers-first',
      auditSubjects: 'hashed',
      trustedProxies: [],
      drainDelaySeconds: 5,
    });
  });

  it('names a faulty setting as it was given: by its flag or by its variable', () => {
    expect(() => readSettings({ environment: {}, flags: { GRANTRY_ISSUER: 'https://id.example/' } })).toThrow(
      /^--issuer /,
    );
    expect(() => readSettings({ environment: {}, flags: { GRANTRY_ADMIN_PORT: 'x' } })).toThrow(/^--admin-port /);
    const environment = { GRANTRY_ISSUER: 'https://id.example/' };
    expect(() => readSettings({ environment, flags: { GRANTRY_PORT: '1' } })).toThrow(/^GRANTRY_ISSUER /);
  });

  it('takes a flag before the environment, and the environment before the defaults of a command', () => {
    const environment = { GRANTRY_PORT: '2000', GRANTRY_HOST: '::1' };
    const defaults = { GRANTRY_HOST: '0.0.0.0', GRANTRY_DRAIN_DELAY: '0s' };
    expect(readSettings({ environment, defaults, flags: { GRANTRY_PORT: '3000' } })).toMatchObject({
      port: 3000,
      host: '::1',
      drainDelaySeconds: 0,
      issuer: 'http://localhost:3000',
    });
  });

  it('is frozen', () => {
    expect(Object.isFrozen(readSettings({ environment: {} }))).toBe(true);
  });

  it('refuses an unknown variable and names the nearest known one', () => {
    const [fault = ''] = faults({ GRANTRY_ISUER: 'https://id.example' });
    expect(fault).toContain('GRANTRY_ISUER');
    expect(fault).toContain('GRANTRY_ISSUER?');
  });

  it('names every faulty variable at once', () => {
    const found = faults({ GRANTRY_PORT: '70000', GRANTRY_RATE_LIMITS: 'maybe', GRANTRY_HOTS: 'x' });
    for (const name of ['GRANTRY_PORT', 'GRANTRY_RATE_LIMITS', 'GRANTRY_HOTS']) {
      expect(found.filter((fault) => fault.startsWith(name))).toHaveLength(1);
    }
  });

  it('passes over the service links of a release called grantry', () => {
    const environment = {
      GRANTRY_SERVICE_HOST: '10.96.0.10',
      GRANTRY_SERVICE_PORT: '9400',
      GRANTRY_SERVICE_PORT_HTTP: '9400',
      GRANTRY_PORT: 'tcp://10.96.0.10:9400',
      GRANTRY_PORT_9400_TCP: 'tcp://10.96.0.10:9400',
      GRANTRY_PORT_9400_TCP_PROTO: 'tcp',
      GRANTRY_PORT_9400_TCP_PORT: '9400',
      GRANTRY_PORT_9400_TCP_ADDR: '10.96.0.10',
      GRANTRY_ADMIN_SERVICE_HOST: '10.96.0.11',
      GRANTRY_ADMIN_PORT: 'tcp://10.96.0.11:9401',
      GRANTRY_REDIS_PORT_53_UDP: 'udp://10.96.0.12:53',
    };
    expect(readSettings({ environment })).toMatchObject({ port: 9400, adminPort: 9401 });
  });

  it.each([
    'https://id.example',
    'https://id.example:8443',
    'https://id.example/auth/team-1',
    'http://localhost:9400',
    'http://127.0.0.1:9400/auth',
    'http://[::1]:9400',
  ])('accepts the issuer %s', (issuer) => {
    expect(readSettings({ environment: { GRANTRY_ISSUER: issuer } }).issuer).toBe(issuer);
  });

  it.each([
    ['http beyond loopback', 'http://id.example'],
    ['http at an address that only looks like loopback', 'http://127.0.0.1.id.example'],
    ['http at another loopback spelling', 'http://127.1:9400'],
    ['a slash at the end', 'https://id.example/'],
    ['a slash at the end of a path', 'https://id.example/auth/'],
    ['a query', 'https://id.example?x=1'],
    ['an empty query', 'https://id.example?'],
    ['a fragment', 'https://id.example#x'],
    ['a user name', 'https://me@id.example'],
    ['an upper-case host', 'https://ID.example'],
    ['a default port', 'https://id.example:443'],
    ['dot segments', 'https://id.example/a/../b'],
    ['an escape', 'https://id.example/%61'],
    ['an empty segment', 'https://id.example//a'],
    ['another scheme', 'ftp://id.example'],
    ['no address at all', 'id.example'],
    ['nothing', ''],
  ])('refuses an issuer with %s', (_what, issuer) => {
    expect(faults({ GRANTRY_ISSUER: issuer })).toEqual([expect.stringMatching(/^GRANTRY_ISSUER /)]);
  });

  it.each(['10.0.0.0/8', '::1', '10.0.0.1, fd00::/8'])('accepts the trusted proxies %s', (text) => {
    expect(readSettings({ environment: { GRANTRY_TRUSTED_PROXIES: text } }).trustedProxies).toEqual(text.split(', '));
  });

  it.each(['10.0.0.0/33', 'everybody', '*', '10.0.0', '::/129', '10.0.0.0/8/8', '10.0.0.0/', '0.0.0.0/0', '::/00'])(
    'refuses the trusted proxy %s',
    (text) => {
      expect(faults({ GRANTRY_TRUSTED_PROXIES: text })).toEqual([expect.stringMatching(/^GRANTRY_TRUSTED_PROXIES /)]);
    },
  );

  it('lets key sets be fetched from public addresses alone, unless it names others', () => {
    expect(readSettings({ environment: {} }).fetch).toEqual({ networks: [], caFile: undefined });
    const environment = { GRANTRY_FETCH_NETWORKS: '10.96.0.0/12, fd00::7', GRANTRY_FETCH_CA_FILE: '/ca.crt' };
    expect(readSettings({ environment }).fetch).toEqual({ networks: ['10.96.0.0/12', 'fd00::7'], caFile: '/ca.crt' });
  });

  it.each(['10.0.0.0/33', 'keys.example.com', '0.0.0.0/0', '::/0', 'fe80::1%eth0', '010.0.0.1'])(
    'refuses the network of key hosts %s',
    (text) => {
      expect(faults({ GRANTRY_FETCH_NETWORKS: text })).toEqual([expect.stringMatching(/^GRANTRY_FETCH_NETWORKS /)]);
    },
  );

  it.each(['', ' ada', 'ada\n', 'a\u0000b', 'a'.repeat(255)])('refuses %j as the first user', (text) => {
    expect(faults({ GRANTRY_INITIAL_USER: text })).toEqual([expect.stringMatching(/^GRANTRY_INITIAL_USER /)]);
  });

  it('refuses values that are none of those allowed', () => {
    const wrong = {
      GRANTRY_DPOP_NONCE: 'sometimes',
      GRANTRY_SIGN_IN_ORDER: 'local',
      GRANTRY_LOG_LEVEL: 'loud',
      GRANTRY_LOG_FORMAT: 'xml',
      GRANTRY_LOG_ONE_TOKEN_IN: '0',
      GRANTRY_AUDIT_SUBJECTS: 'none',
      GRANTRY_DRAIN_DELAY: '2h',
      GRANTRY_NAMESPACE: 'Not-A-Namespace',
      GRANTRY_DEFAULT_POLICY: 'Whatever',
    };
    for (const [name, value] of Object.entries(wrong)) {
      expect(faults({ [name]: value })).toEqual([expect.stringMatching(new RegExp(`^${name} `))]);
    }
  });

  const redis = { GRANTRY_REDIS_URL: 'redis://localhost' };
  const webhook = { GRANTRY_ALERT_WEBHOOK_URL: 'https://siem.example/in', GRANTRY_ALERT_WEBHOOK_SECRET_FILE: '/s' };

  it('reads where Redis is and what is asked of it', () => {
    const { redis: settings } = readSettings({
      environment: { ...redis, GRANTRY_REDIS_WAIT: '1:100', GRANTRY_REDIS_STRICT: 'on' },
    });
    expect(settings).toMatchObject({
      target: { form: 'standalone', address: { host: 'localhost', port: 6379 } },
      acknowledgement: { replicas: 1, timeout: 100 },
      prefix: 'grantry:',
      strict: true,
    });
    expect(readSettings({ environment: {} }).redis).toBeUndefined();
  });

  it.each([
    ['GRANTRY_REDIS_URL', 'http://localhost:6379'],
    ['GRANTRY_REDIS_URL', 'redis://user:password@localhost'],
    ['GRANTRY_REDIS_WAIT', '1'],
    ['GRANTRY_REDIS_WAIT', '0:100'],
    ['GRANTRY_REDIS_WAIT', '1:501'],
    ['GRANTRY_REDIS_PREFIX', 'a{b}'],
    ['GRANTRY_REDIS_STRICT', 'yes'],
    ['GRANTRY_ALERT_WEBHOOK_URL', 'http://siem.example/in'],
    ['GRANTRY_ALERT_WEBHOOK_URL', 'https://user:password@siem.example/in'],
    ['GRANTRY_ALERT_WEBHOOK_URL', 'https://siem.example/in#part'],
    ['GRANTRY_ALERT_WEBHOOK_URL', 'siem.example'],
  ])('refuses %s=%s, and does not repeat a password', (name, value) => {
    const found = faults({ ...redis, ...webhook, [name]: value });
    expect(found).toEqual([expect.stringMatching(new RegExp(`^${name} `))]);
    expect(found[0]).not.toContain(':password');
  });

  it('refuses what needs another variable, or cannot be beside one, and names both', () => {
    const pairs = [
      [{ GRANTRY_REDIS_WAIT: '1:100' }, 'GRANTRY_REDIS_WAIT', 'GRANTRY_REDIS_URL'],
      [{ ...redis, GRANTRY_REDIS_KEY_FILE: '/k' }, 'GRANTRY_REDIS_KEY_FILE', 'GRANTRY_REDIS_CERTIFICATE_FILE'],
      [
        { ...redis, GRANTRY_REDIS_USERNAME: 'grantry', GRANTRY_REDIS_USERNAME_FILE: '/u' },
        'GRANTRY_REDIS_USERNAME',
        'GRANTRY_REDIS_USERNAME_FILE',
      ],
      [webhook, 'GRANTRY_ALERT_WEBHOOK_URL', 'GRANTRY_REDIS_URL'],
      [
        { ...redis, GRANTRY_ALERT_WEBHOOK_URL: 'https://siem.example' },
        'GRANTRY_ALERT_WEBHOOK_URL',
        'GRANTRY_ALERT_WEBHOOK_SECRET_FILE',
      ],
    ] as const;
    for (const [environment, ...names] of pairs) {
      const found = faults(environment);
      expect(found).toHaveLength(1);
      for (const name of names) expect(found[0]).toContain(name);
    }
  });

  it.each(['Corp', 'Ä', '登录 & Co', 'x'.repeat(60), '\u{1f511}'.repeat(60)])(
    'takes %s as the name of a brand',
    (name) => {
      const brand = { name, logoFile: '/logo.svg', accent: undefined, help: undefined, hasFooter: true };
      const environment = { GRANTRY_BRAND_NAME: name, GRANTRY_BRAND_LOGO_FILE: '/logo.svg' };
      expect(readSettings({ environment })).toMatchObject({ brand });
    },
  );

  it.each(['', ' ', 'a\nb', 'a\u2028b', 'a\u202eb', 'a\0b', 'x'.repeat(61)])(
    'refuses %j as the name of a brand',
    (name) => {
      const found = faults({ GRANTRY_BRAND_NAME: name });
      expect(found).toHaveLength(1);
      expect(found[0]).toMatch(/^GRANTRY_BRAND_NAME /);
    },
  );

  it('takes accent colours, help and the footer of a brand', () => {
    const environment = {
      GRANTRY_BRAND_ACCENT_COLOR: '#0B57d0',
      GRANTRY_BRAND_ACCENT_COLOR_DARK: '#a8c7fa',
      GRANTRY_BRAND_HELP_URL: 'https://help.example.com',
      GRANTRY_BRAND_HELP_TEXT: '登录 & Hilfe',
      GRANTRY_BRAND_FOOTER: 'off',
    };
    const accent = { light: '#0B57d0', dark: '#a8c7fa' };
    const help = { url: 'https://help.example.com/', text: '登录 & Hilfe' };
    expect(readSettings({ environment }).brand).toMatchObject({ accent, help, hasFooter: false });
    const mail = { GRANTRY_BRAND_HELP_URL: 'mailto:help@example.com', GRANTRY_BRAND_HELP_TEXT: 'x'.repeat(100) };
    expect(readSettings({ environment: mail }).brand.help?.url).toBe('mailto:help@example.com');
  });

  it.each([
    ['GRANTRY_BRAND_ACCENT_COLOR', '', 'is not a colour as #rrggbb, such as #0f5f5c'],
    ['GRANTRY_BRAND_ACCENT_COLOR', '0f5f5c', 'is not a colour as #rrggbb, such as #0f5f5c'],
    ['GRANTRY_BRAND_ACCENT_COLOR', '#05c', 'is not a colour as #rrggbb, such as #0f5f5c'],
    ['GRANTRY_BRAND_ACCENT_COLOR', '#0f5f5cff', 'is not a colour as #rrggbb, such as #0f5f5c'],
    ['GRANTRY_BRAND_ACCENT_COLOR', '#0f5f5c;}', 'is not a colour as #rrggbb, such as #0f5f5c'],
    ['GRANTRY_BRAND_ACCENT_COLOR', 'teal', 'is not a colour as #rrggbb, such as #0f5f5c'],
    [
      'GRANTRY_BRAND_ACCENT_COLOR',
      '#e2001a',
      'has a contrast of 4.39:1 with shaded parts of the card (#edf3f1) in the light scheme, and needs 4.5:1: choose a darker colour',
    ],
    [
      'GRANTRY_BRAND_ACCENT_COLOR_DARK',
      '#0f5f5c',
      'has a contrast of 1.95:1 with shaded parts of the card (#202b29) in the dark scheme, and needs 4.5:1: choose a lighter colour',
    ],
    [
      'GRANTRY_BRAND_HELP_URL',
      'help.example.com',
      'is not an https or mailto address without a user name and password',
    ],
    [
      'GRANTRY_BRAND_HELP_URL',
      'http://help.example',
      'is not an https or mailto address without a user name and password',
    ],
    [
      'GRANTRY_BRAND_HELP_URL',
      'javascript:alert(1)',
      'is not an https or mailto address without a user name and password',
    ],
    [
      'GRANTRY_BRAND_HELP_URL',
      'data:text/html,a',
      'is not an https or mailto address without a user name and password',
    ],
    ['GRANTRY_BRAND_HELP_URL', 'mailto:', 'is not an https or mailto address without a user name and password'],
    [
      'GRANTRY_BRAND_HELP_URL',
      'https://a@help.example',
      'is not an https or mailto address without a user name and password',
    ],
    [
      'GRANTRY_BRAND_HELP_URL',
      'https://:b@help.example',
      'is not an https or mailto address without a user name and password',
    ],
    ['GRANTRY_BRAND_HELP_URL', `https://help.example/${'x'.repeat(980)}`, 'has more than 1000 characters'],
    ['GRANTRY_BRAND_HELP_TEXT', '', 'is not a text of 1 to 100 characters without controls'],
    ['GRANTRY_BRAND_HELP_TEXT', 'a\nb', 'is not a text of 1 to 100 characters without controls'],
    ['GRANTRY_BRAND_HELP_TEXT', 'x'.repeat(101), 'is not a text of 1 to 100 characters without controls'],
    ['GRANTRY_BRAND_FOOTER', 'false', 'is neither on nor off'],
  ])('refuses %s=%j with the sentence about it, and no other', (name, value, sentence) => {
    const fitting = {
      GRANTRY_BRAND_ACCENT_COLOR: '#0b57d0',
      GRANTRY_BRAND_ACCENT_COLOR_DARK: '#a8c7fa',
      GRANTRY_BRAND_HELP_URL: 'https://help.example.com',
      GRANTRY_BRAND_HELP_TEXT: 'Help',
    };
    expect(faults({ ...fitting, [name]: value })).toEqual([`${name} ${sentence}`]);
  });

  it.each([
    ['GRANTRY_BRAND_ACCENT_COLOR', '#0b57d0', 'GRANTRY_BRAND_ACCENT_COLOR_DARK'],
    ['GRANTRY_BRAND_ACCENT_COLOR_DARK', '#a8c7fa', 'GRANTRY_BRAND_ACCENT_COLOR'],
    ['GRANTRY_BRAND_HELP_URL', 'https://help.example.com', 'GRANTRY_BRAND_HELP_TEXT'],
    ['GRANTRY_BRAND_HELP_TEXT', 'Help', 'GRANTRY_BRAND_HELP_URL'],
  ])('refuses %s=%s without %s', (name, value, other) => {
    const found = faults({ [name]: value });
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(new RegExp(`^(${name} and ${other}|${other} and ${name}) need each other`));
  });

  it('is documented variable by variable, with default and meaning', () => {
    const page = readFileSync(new URL('../../../docs/reference/configuration.md', import.meta.url), 'utf8');
    const documented = page.split('\n').filter((line) => line.startsWith('| `GRANTRY_'));
    const expected = variableReference().map(({ name, default: text, meaning }) => {
      const shown = text === undefined ? 'none' : text === '' ? 'empty' : `\`${text}\``;
      return `| \`${name}\` | ${shown} | ${meaning} |`;
    });
    expect(documented).toEqual(expected);
  });
});
