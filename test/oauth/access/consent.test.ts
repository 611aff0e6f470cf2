import { describe, expect, it } from 'vitest';
import { consentNeeded } from '../../../src/oauth/access/consent.ts';
import type { AuthorizationSnapshot } from '../../../src/oauth/ports/login-stores.ts';
import { aClient } from '../a-client.ts';

const API = 'https://api.shop.example/';
const webApp = aClient();
const firstParty = aClient({ consent: 'Skip' });
const nativeApp = aClient({
  authMethod: 'none',
  redirectUris: ['http://127.0.0.1/cb', 'https://shop.example/callback'],
});

function aRequest(overrides: Partial<AuthorizationSnapshot> = {}): AuthorizationSnapshot {
  return {
    clientUid: webApp.uid,
    clientId: webApp.clientId,
    redirectUri: 'https://shop.example/callback',
    scope: ['shop/read', 'shop/write'],
    audiences: [API],
    codeChallenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    state: undefined,
    ...overrides,
  };
}

const FILES = 'https://files.shop.example/';
const everything = new Map([[API, ['shop/write', 'shop/read']]]);

describe('consent', () => {
  it('is asked for the whole scope the first time', () => {
    expect(consentNeeded(webApp, aRequest(), undefined)).toEqual({ ask: true, newScope: ['shop/read', 'shop/write'] });
  });

  it('is not asked again for what was given, in whatever order', () => {
    expect(consentNeeded(webApp, aRequest(), everything)).toEqual({ ask: false, newScope: [] });
  });

  it('is not asked for less than was given', () => {
    expect(consentNeeded(webApp, aRequest({ scope: ['shop/read'] }), everything).ask).toBe(false);
  });

  it('is asked for the difference when the scope is wider', () => {
    const given = new Map([[API, ['shop/read']]]);
    expect(consentNeeded(webApp, aRequest(), given)).toEqual({ ask: true, newScope: ['shop/write'] });
  });

  it('is asked for all of the scope when only the audience is wider', () => {
    const request = aRequest({ audiences: [API, FILES] });
    expect(consentNeeded(webApp, request, everything)).toEqual({ ask: true, newScope: ['shop/read', 'shop/write'] });
  });

  it('at one audience for one scope and at another for another is no consent to the two crossed', () => {
    const given = new Map([
      [API, ['shop/read']],
      [FILES, ['shop/write']],
    ]);
    const crossed = aRequest({ scope: ['shop/write'], audiences: [API] });
    expect(consentNeeded(webApp, crossed, given)).toEqual({ ask: true, newScope: ['shop/write'] });
    const both = aRequest({ audiences: [API, FILES] });
    expect(consentNeeded(webApp, both, given)).toEqual({ ask: true, newScope: ['shop/read', 'shop/write'] });
  });

  it('is not asked for a client whose policy lets it skip', () => {
    expect(consentNeeded(firstParty, aRequest(), undefined).ask).toBe(false);
  });

  it.each(['http://127.0.0.1:5000/cb', 'http://[::1]/cb', 'http://localhost/cb', 'com.example.app:/cb'])(
    'is asked of a public client at %s every time',
    (redirectUri) => {
      expect(consentNeeded(nativeApp, aRequest({ redirectUri }), everything)).toEqual({ ask: true, newScope: [] });
    },
  );

  it('is asked of a public client on loopback even where consent may be skipped', () => {
    const client = { ...nativeApp, consent: 'Skip' as const };
    expect(consentNeeded(client, aRequest({ redirectUri: 'http://127.0.0.1/cb' }), everything).ask).toBe(true);
  });

  it('is remembered for a public client at an https address', () => {
    expect(consentNeeded(nativeApp, aRequest(), everything).ask).toBe(false);
  });

  it.each(['http://127.0.0.1:5000/cb', 'http://[::1]/cb', 'com.example.app:/cb', 'https://127.0.0.1/cb'])(
    'is asked of a confidential client at %s every time, also where it may be skipped',
    (redirectUri) => {
      for (const client of [webApp, firstParty]) {
        expect(consentNeeded(client, aRequest({ redirectUri }), everything).ask).toBe(true);
      }
    },
  );

  it.each(['http://localhost/cb', 'http://localhost:8080/cb'])(
    'is remembered for a confidential client at %s, a developer’s web app',
    (redirectUri) => {
      expect(consentNeeded(webApp, aRequest({ redirectUri }), everything).ask).toBe(false);
    },
  );
});
