import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  appendParameters,
  isLoopback,
  isLoopbackOrPrivateUse,
  matchRedirectUri,
  plainHost,
  redirectUriFault,
} from '../../../src/oauth/values/redirect-uri.ts';
import { attacksOn, LOOPBACK_ATTACKS } from './redirect-attacks.ts';

const REGISTERED = [
  'https://shop.example/callback',
  'https://shop.example/callback?tenant=a%20b',
  'https://shop.example:8443/',
  'https://shop.example',
  'http://localhost:3000/callback',
  'com.example.app:/callback',
];

/** An edit that may make a registered address another one. */
const anEdit = fc.oneof(
  fc.record({ kind: fc.constant('insert'), at: fc.nat(), text: fc.string({ minLength: 1, maxLength: 3 }) }),
  fc.record({ kind: fc.constant('replace'), at: fc.nat(), text: fc.string({ unit: 'binary', maxLength: 1 }) }),
  fc.record({ kind: fc.constant('encode'), at: fc.nat(), text: fc.constant('') }),
  fc.record({ kind: fc.constant('case'), at: fc.nat(), text: fc.constant('') }),
);

function edited(uri: string, edit: { kind: string; at: number; text: string }): string {
  const at = edit.at % uri.length;
  const character = uri.charAt(at);
  const swapped = character === character.toLowerCase() ? character.toUpperCase() : character.toLowerCase();
  const middle: Record<string, string> = {
    insert: edit.text + character,
    replace: edit.text,
    encode: `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
    case: swapped,
  };
  return uri.slice(0, at) + middle[edit.kind] + uri.slice(at + 1);
}

describe('a sent redirect_uri (RFC 9700 §4.1.3)', () => {
  it.each(REGISTERED)('matches when it is registered byte for byte: %s', (uri) => {
    expect(matchRedirectUri(uri, REGISTERED)).toBe(true);
  });

  it('matches nothing when nothing is registered', () => {
    expect(matchRedirectUri('https://shop.example/callback', [])).toBe(false);
    expect(matchRedirectUri('', [])).toBe(false);
  });

  it.each(attacksOn('https://shop.example/callback'))('does not match with %s', (_, sent) => {
    expect(matchRedirectUri(sent, ['https://shop.example/callback'])).toBe(false);
  });

  it('does not match in another Unicode normal form', () => {
    const composed = 'com.example.app:/caf\u00e9';
    expect(matchRedirectUri(composed.normalize('NFD'), [composed])).toBe(false);
  });

  it('never matches after any edit that makes it another text', () => {
    const edits = fc.array(anEdit, { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(fc.constantFrom(...REGISTERED), edits, (uri, list) => {
        const sent = list.reduce(edited, uri);
        fc.pre(sent !== '' && !REGISTERED.includes(sent));
        expect(matchRedirectUri(sent, REGISTERED)).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });

  it('matches arbitrary text only if that very text is registered', () => {
    fc.assert(
      fc.property(fc.webUrl({ withQueryParameters: true }), fc.array(fc.webUrl()), (sent, registered) => {
        expect(matchRedirectUri(sent, registered)).toBe(registered.includes(sent));
        expect(matchRedirectUri(sent, [...registered, sent])).toBe(true);
      }),
    );
  });
});

describe('a redirect_uri on a loopback literal (RFC 8252 §7.3)', () => {
  const remainders = ['/callback', '/callback?x=1', '/', '', '?x=1'];
  const prefixes = ['http://127.0.0.1', 'http://[::1]'];
  const anAddress = fc.record({ prefix: fc.constantFrom(...prefixes), remainder: fc.constantFrom(...remainders) });
  const aPort = fc.oneof(
    fc.constant(''),
    fc.integer({ min: 1, max: 65_535 }).map((port) => `:${port}`),
  );

  it('matches on every port and without one, whichever port was registered', () => {
    fc.assert(
      fc.property(anAddress, aPort, aPort, ({ prefix, remainder }, registeredPort, port) => {
        expect(matchRedirectUri(prefix + port + remainder, [prefix + registeredPort + remainder])).toBe(true);
      }),
    );
  });

  it.each(LOOPBACK_ATTACKS)('does not match with %s', (_, sent) => {
    expect(matchRedirectUri(sent, ['http://127.0.0.1/callback'])).toBe(false);
    expect(matchRedirectUri(sent, ['http://127.0.0.1:8080/callback'])).toBe(false);
  });

  it('matches after an edit only where the edit changed the port to another good one', () => {
    const registered = 'http://127.0.0.1:8080/callback?x=1';
    fc.assert(
      fc.property(fc.array(anEdit, { minLength: 1, maxLength: 2 }), (edits) => {
        const sent = edits.reduce(edited, registered);
        const port = /^http:\/\/127\.0\.0\.1(?::([1-9]\d*))?\/callback\?x=1$/.exec(sent);
        const isPortEdit = port !== null && Number(port[1] ?? 1) < 65_536;
        expect(matchRedirectUri(sent, [registered])).toBe(isPortEdit);
      }),
      { numRuns: 2000 },
    );
  });

  it('distinguishes paths on every port', () => {
    fc.assert(
      fc.property(anAddress, anAddress, aPort, (one, other, port) => {
        const isSame = one.prefix === other.prefix && one.remainder === other.remainder;
        expect(matchRedirectUri(one.prefix + port + one.remainder, [other.prefix + other.remainder])).toBe(isSame);
      }),
    );
  });

  it.each(['http://127.0.0.1.example.com/cb', 'http://127.0.0.1@example.com/cb', 'http://[::1].example.com/cb'])(
    'admits no other port for a registered %s, which only begins like one',
    (uri) => {
      const withPort = uri.replace(/^(http:\/\/(?:127\.0\.0\.1|\[::1\]))/, '$1:80');
      expect(matchRedirectUri(uri, [uri])).toBe(true);
      expect(matchRedirectUri(withPort, [uri])).toBe(false);
    },
  );

  it('matches exactly only under the name localhost', () => {
    expect(matchRedirectUri('http://localhost:3000/cb', ['http://localhost:3000/cb'])).toBe(true);
    expect(matchRedirectUri('http://localhost:3001/cb', ['http://localhost:3000/cb'])).toBe(false);
    expect(matchRedirectUri('http://localhost/cb', ['http://localhost:3000/cb'])).toBe(false);
    expect(matchRedirectUri('http://localhost:3000/cb', ['http://127.0.0.1/cb'])).toBe(false);
  });
});

describe('an address to register', () => {
  it.each([
    'https://shop.example/callback',
    'https://shop.example',
    'https://shop.example:8443/callback?tenant=a&x=%2F',
    'https://xn--bcher-kva.example/callback',
    'https://192.0.2.7/callback',
    'https://[2001:db8::7]/callback',
    'https://shop.example/callback?codec=1&my_state=2',
    'https://shop.example/callback@2',
    'http://127.0.0.1/callback',
    'http://127.0.0.1:8080/callback',
    'http://[::1]/callback',
    'http://localhost',
    'http://localhost:3000/callback',
    'com.example.app:/callback',
    'com.example.app://callback',
    'com.example-app.v2:callback',
  ])('may be %s', (uri) => {
    expect(redirectUriFault(uri)).toBeUndefined();
  });

  it.each([
    ['', 'not_absolute'],
    ['/callback', 'not_absolute'],
    ['//shop.example/callback', 'not_absolute'],
    ['shop.example/callback', 'not_absolute'],
    ['https:', 'not_absolute'],
    ['https:shop.example', 'not_absolute'],
    ['https:/shop.example', 'not_absolute'],
    ['https:///callback', 'not_absolute'],
    ['https://shop.example/callback#top', 'fragment'],
    ['https://shop.example/callback#', 'fragment'],
    ['https://*.shop.example/callback', 'wildcard'],
    ['https://shop.example/*', 'wildcard'],
    ['https://user@shop.example/', 'userinfo'],
    ['https://shop.example:80@evil.example/', 'userinfo'],
    ['http://127.0.0.1@evil.example/', 'userinfo'],
    ['com.example.app://user@callback', 'userinfo'],
    ['https://shop.example\\@evil.example/', 'invalid_character'],
    ['https://shop.example/ callback', 'invalid_character'],
    ['https://shop.example/call\nback', 'invalid_character'],
    ['https://shop.example/callback\n', 'invalid_character'],
    ['https://shop.example/\u0000', 'invalid_character'],
    ['https://shop.example/caf\u00e9', 'invalid_character'],
    ['https://b\u00fccher.example/', 'invalid_character'],
    ['https://shop.example/%2', 'invalid_character'],
    ['https://shop.example/%zz', 'invalid_character'],
    ['https://shop.example/"', 'invalid_character'],
    ['https://shop.example/{id}', 'invalid_character'],
    ['https://shop.example:/', 'invalid_port'],
    ['https://shop.example:0/', 'invalid_port'],
    ['https://shop.example:0443/', 'invalid_port'],
    ['https://shop.example:65536/', 'invalid_port'],
    ['https://shop.example:port/', 'invalid_port'],
    ['http://127.0.0.1:0/', 'invalid_port'],
    ['https://SHOP.example/', 'invalid_host'],
    ['https://sh%6fp.example/', 'invalid_host'],
    ['https://2130706433/', 'invalid_host'],
    ['https://127.1/', 'invalid_host'],
    ['http://127.1/', 'invalid_host'],
    ['http://[0:0:0:0:0:0:0:1]/', 'invalid_host'],
    ['https://[::1/', 'invalid_host'],
    ['https://:443/', 'invalid_host'],
    ['https://shop.example./', 'invalid_host'],
    ['https://.shop.example/', 'invalid_host'],
    ['https://shop..example/', 'invalid_host'],
    ['https://./', 'invalid_host'],
    ['http://shop.example/', 'http_not_loopback'],
    ['http://127.0.0.2/', 'http_not_loopback'],
    ['http://127.0.0.1.evil.example/', 'http_not_loopback'],
    ['http://localhost.evil.example/', 'http_not_loopback'],
    ['http://[::2]/', 'http_not_loopback'],
    ['HTTPS://shop.example/', 'unsupported_scheme'],
    ['javascript:alert(1)', 'unsupported_scheme'],
    ['JavaScript:alert(1)', 'unsupported_scheme'],
    ['data:text/html,x', 'unsupported_scheme'],
    ['vbscript:x', 'unsupported_scheme'],
    ['file:///etc/passwd', 'unsupported_scheme'],
    ['ftp://shop.example/', 'unsupported_scheme'],
    ['myapp:/callback', 'unsupported_scheme'],
    ['com..example:/callback', 'unsupported_scheme'],
    ['com.example.:/callback', 'unsupported_scheme'],
    ['Com.Example.App:/callback', 'unsupported_scheme'],
    ['urn:ietf:wg:oauth:2.0:oob', 'unsupported_scheme'],
    ['https://shop.example/?code=x', 'response_parameter'],
    ['https://shop.example/?a=1&state=x', 'response_parameter'],
    ['https://shop.example/?iss', 'response_parameter'],
    ['https://shop.example/?error=', 'response_parameter'],
    ['https://shop.example/?error_description=x', 'response_parameter'],
    ['https://shop.example/?%63ode=x', 'response_parameter'],
    ['https://shop.example/?a=1;code=x', 'response_parameter'],
    ['https://shop.example/?a=1?b&code=x', 'response_parameter'],
    ['com.example.app:/callback?code=x', 'response_parameter'],
  ])('may not be %j: %s', (uri, fault) => {
    expect(redirectUriFault(uri)).toBe(fault);
  });

  it('is what a URL parser makes of it, up to the path: no redirect goes to another host than the one read', () => {
    const text = fc.string({ unit: fc.constantFrom(...'abz09.-:/@[]%?&=1\\'), maxLength: 20 });
    fc.assert(
      fc.property(fc.constantFrom('https://', 'http://'), text, (scheme, rest) => {
        const uri = scheme + rest;
        fc.pre(redirectUriFault(uri) === undefined);
        const { protocol, hostname, username, hash } = new URL(uri);
        expect(uri.startsWith(`${protocol}//${hostname}`)).toBe(true);
        expect([username, hash]).toEqual(['', '']);
      }),
      { numRuns: 500 },
    );
  });
});

describe('a host that is read without a parser', () => {
  it('is the one that a parser finds, and never the own machine', () => {
    const parts = ['a', 'b1', '0', '.', '.a', '.example', '-', 'xn--', 'localhost'];
    const names = fc.array(fc.constantFrom(...parts), { maxLength: 5 });
    const schemes = ['https://', 'https://', 'https://', 'https:/', 'http://'];
    const odd = ['A', ':', '80', '@', '/', '?', '#', '\\', '\t', '%41', 'ß', '。', '127.0.0.1', '[::1]'];
    const rest = fc.tuple(names, fc.option(fc.constantFrom(...odd), { nil: '' }), names);
    let told = 0;
    fc.assert(
      fc.property(fc.constantFrom(...schemes), rest, (scheme, [before, between, after]) => {
        const uri = [scheme, ...before, between, ...after].join('');
        const host = plainHost(uri);
        if (host === undefined) return;
        told++;
        expect(host).toBe(URL.parse(uri)?.hostname);
        expect(uri).toMatch(/^https:/);
        expect(isLoopback(uri)).toBe(false);
      }),
      { numRuns: 20_000 },
    );
    expect(told).toBeGreaterThan(100);
  });

  it('leaves most addresses without need of one', () => {
    expect(plainHost('https://shop.example/cb?x=1')).toBe('shop.example');
    expect(plainHost('https://shop.example:8443/')).toBeUndefined();
    expect(plainHost('https://app.localhost/')).toBeUndefined();
  });
});

describe('an address that another app could listen to (RFC 8252 §8.6)', () => {
  it.each([
    'http://127.0.0.1/cb',
    'http://127.0.0.1:80/cb',
    'http://[::1]:80/cb',
    'http://localhost?x',
    'https://localhost:8443/cb',
    'https://app.localhost/cb',
    'https://127.0.0.2/cb',
    'https://0.0.0.0/cb',
    'https://[::ffff:7f00:1]/cb',
    'com.example.app:/cb',
  ])('is %s', (uri) => {
    expect(isLoopbackOrPrivateUse(uri)).toBe(true);
  });

  it.each([
    'https://shop.example/cb',
    'https://localhost.example/',
    'https://127.0.0.1.example/',
    'https://[2001:db8::1]:443/',
  ])('is not %s', (uri) => {
    expect(isLoopbackOrPrivateUse(uri)).toBe(false);
  });
});

describe('the address of a response (RFC 6749 §3.1.2, §4.1.2)', () => {
  it.each([
    ['https://a.example', 'https://a.example?code=1'],
    ['https://a.example/cb', 'https://a.example/cb?code=1'],
    ['https://a.example/cb?', 'https://a.example/cb?code=1'],
    ['https://a.example/cb?x=%2f+y', 'https://a.example/cb?x=%2f+y&code=1'],
    ['https://a.example/cb?x=1&', 'https://a.example/cb?x=1&code=1'],
    ['com.example.app:/cb', 'com.example.app:/cb?code=1'],
  ])('keeps %s as it is', (uri, location) => {
    expect(appendParameters(uri, { code: '1', state: undefined })).toBe(location);
  });

  it('carries any well-formed text through both ways of decoding a query', () => {
    const value = fc.string({ unit: 'binary' });
    fc.assert(
      fc.property(fc.constantFrom(...REGISTERED), value, value, (uri, code, state) => {
        const location = appendParameters(uri, { code, state });
        expect(location.startsWith(uri)).toBe(true);
        const form = new URLSearchParams(location.slice(location.indexOf('?')));
        expect([form.getAll('code'), form.getAll('state')]).toEqual([[code], [state]]);
        const pairs = location.slice(location.indexOf('?') + 1).split('&');
        expect(decodeURIComponent(pairs.at(-1) ?? '')).toBe(`state=${state}`);
        expect(location).not.toMatch(/[\s#<>"\\]/);
      }),
    );
  });
});
