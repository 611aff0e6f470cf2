import { describe, expect, it } from 'vitest';
import { clientAccess } from '../../../src/oauth/access/client-access.ts';
import { consentNeeded, requestedAccess } from '../../../src/oauth/access/consent.ts';
import type { AuthorizationSnapshot, Consent, Prompt } from '../../../src/oauth/ports/login-stores.ts';
import type { Client } from '../../../src/oauth/registry/client.ts';
import { Resources } from '../../../src/oauth/registry/resources.ts';
import { aClient } from '../a-client.ts';
import { aResource, declared } from '../a-resource.ts';

const API = 'https://api.shop.example/';
const FILES = 'https://files.shop.example/';
const audiences = [API, FILES];
const webApp = aClient({ audiences });
const firstParty = aClient({ audiences, consent: 'Skip' });
const nativeApp = aClient({
  audiences,
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

function need(client: Client, request: AuthorizationSnapshot, given: Consent | undefined) {
  return consentNeeded({ client, request, access: clientAccess(client, { resources: Resources.NONE }) }, given);
}

const everything = new Map([[API, ['shop/write', 'shop/read']]]);

describe('consent', () => {
  it('is asked for the whole scope the first time', () => {
    expect(need(webApp, aRequest(), undefined)).toEqual({
      ask: true,
      newAccess: new Map([[API, ['shop/read', 'shop/write']]]),
    });
  });

  it('is asked again with prompt=consent, also where it may be skipped', () => {
    const openid = { nonce: undefined, maxAge: undefined, loginHint: undefined, subject: undefined };
    const asks = (prompt: readonly Prompt[], client: Client) =>
      need(client, aRequest({ openid: { ...openid, prompt } }), everything).ask;
    for (const client of [webApp, firstParty]) {
      expect([asks(['consent'], client), asks(['login', 'consent'], client)]).toEqual([true, true]);
      expect([asks([], client), asks(['login'], client), asks(['none'], client)]).toEqual([false, false, false]);
    }
  });

  it('is not asked again for what was given, in whatever order', () => {
    expect(need(webApp, aRequest(), everything)).toEqual({ ask: false, newAccess: new Map() });
  });

  it('is not asked for less than was given', () => {
    expect(need(webApp, aRequest({ scope: ['shop/read'] }), everything).ask).toBe(false);
  });

  it('is asked for the difference when the scope is wider', () => {
    const given = new Map([[API, ['shop/read']]]);
    expect(need(webApp, aRequest(), given)).toEqual({ ask: true, newAccess: new Map([[API, ['shop/write']]]) });
  });

  it('is asked for the new audience when only the audience is wider', () => {
    const newAccess = new Map([[FILES, ['shop/read', 'shop/write']]]);
    expect(need(webApp, aRequest({ audiences }), everything)).toEqual({ ask: true, newAccess });
  });

  it('at one audience for one scope and at another for another is no consent to the two crossed', () => {
    const given = new Map([
      [API, ['shop/read']],
      [FILES, ['shop/write']],
    ]);
    const crossed = aRequest({ scope: ['shop/write'], audiences: [API] });
    expect(need(webApp, crossed, given)).toEqual({ ask: true, newAccess: new Map([[API, ['shop/write']]]) });
    expect(need(webApp, aRequest({ audiences }), given)).toEqual({
      ask: true,
      newAccess: new Map([
        [API, ['shop/write']],
        [FILES, ['shop/read']],
      ]),
    });
  });

  it('is not asked for a client whose policy lets it skip', () => {
    expect(need(firstParty, aRequest(), undefined).ask).toBe(false);
  });

  it.each([
    'http://127.0.0.1:5000/cb',
    'http://[::1]/cb',
    'http://localhost/cb',
    'https://localhost/cb',
    'https://shop.localhost/cb',
    'com.example.app:/cb',
  ])('is asked of a public client at %s every time', (redirectUri) => {
    expect(need(nativeApp, aRequest({ redirectUri }), everything)).toEqual({ ask: true, newAccess: new Map() });
  });

  it('is asked of a public client on loopback even where consent may be skipped', () => {
    const client = { ...nativeApp, consent: 'Skip' as const };
    expect(need(client, aRequest({ redirectUri: 'http://127.0.0.1/cb' }), everything).ask).toBe(true);
  });

  it('is remembered for a public client at an https address', () => {
    expect(need(nativeApp, aRequest(), everything).ask).toBe(false);
  });

  it.each(['http://127.0.0.1:5000/cb', 'http://[::1]/cb', 'com.example.app:/cb', 'https://127.0.0.1/cb'])(
    'is asked of a confidential client at %s every time, also where it may be skipped',
    (redirectUri) => {
      for (const client of [webApp, firstParty]) {
        expect(need(client, aRequest({ redirectUri }), everything).ask).toBe(true);
      }
    },
  );

  it.each([
    'http://localhost/cb',
    'http://localhost:8080/cb',
    'https://localhost/cb',
    'https://localhost:8443/cb',
    'https://shop.localhost:8443/cb',
  ])('is remembered for a confidential client at %s, a developer’s web app', (redirectUri) => {
    expect(need(webApp, aRequest({ redirectUri }), everything).ask).toBe(false);
  });
});

describe('consent at resources with owners', () => {
  const notes = aResource({ scopes: declared('notes.read', 'shared') });
  const photos = aResource({
    name: 'photos',
    identifier: 'https://photos.example/api',
    scopes: declared('photos.read', 'shared'),
  });
  const references = [notes, photos].map(({ name }) => ({ namespace: undefined, name, scopes: undefined }));
  const client = aClient({ audiences: [], resources: references });
  const access = clientAccess(client, { resources: new Resources([notes, photos]) });
  const request = aRequest({
    scope: ['notes.read', 'photos.read', 'shared'],
    audiences: [notes.identifier, photos.identifier],
  });
  const each = new Map([
    [notes.identifier, ['notes.read', 'shared']],
    [photos.identifier, ['photos.read', 'shared']],
  ]);

  it('is asked for the scopes of each, and no scope at the other', () => {
    expect(requestedAccess({ request, access })).toEqual(each);
    expect(consentNeeded({ client, request, access }, undefined)).toEqual({ ask: true, newAccess: each });
  });

  it('is asked for a scope of both where it was not given', () => {
    const given = new Map([...each, [photos.identifier, ['photos.read']]]);
    const newAccess = new Map([[photos.identifier, ['shared']]]);
    expect(consentNeeded({ client, request, access }, given)).toEqual({ ask: true, newAccess });
    expect(consentNeeded({ client, request, access }, each)).toEqual({ ask: false, newAccess: new Map() });
  });

  it('is not about a resource that has nothing of the scope', () => {
    const narrow = { ...request, scope: ['notes.read'] };
    expect(requestedAccess({ request: narrow, access })).toEqual(new Map([[notes.identifier, ['notes.read']]]));
  });
});
