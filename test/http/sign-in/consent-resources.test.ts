// Consent at resources with owners: what the page shows of them, in the language of the browser, and what is kept of the
// decision.

import { describe, expect, it } from 'vitest';
import { aResource, declared } from '../../oauth/a-resource.ts';
import { hidden, type Page, type TestBrowser } from './sign-in-browser.ts';
import { aWorld, PASSWORD, WEB, type World, type WorldOptions } from './sign-in-world.ts';

const NOTES = aResource({
  displayName: { text: 'Notes', translations: { de: 'Notizen' } },
  scopes: [
    { name: 'notes.read', description: { text: 'Read your notes', translations: { de: 'Ihre Notizen lesen' } } },
    ...declared('notes.write'),
  ],
});
const PHOTOS = aResource({ name: 'photos', identifier: 'https://photos.example/api', scopes: declared('photos.read') });
const CLIENT = {
  ...WEB,
  scopes: [],
  defaultScopes: [],
  audiences: [],
  resources: [NOTES, PHOTOS].map(({ name }) => ({ namespace: undefined, name, scopes: undefined })),
};
const AT_NOTES = { scope: 'notes.read notes.write', resource: NOTES.identifier };
const AT_BOTH = { scope: 'notes.read photos.read', resource: [NOTES.identifier, PHOTOS.identifier] };

interface Asked {
  readonly world: World;
  readonly browser: TestBrowser;
  readonly path: string;
  readonly page: Page;
}

/** A signed-in person with the consent page open. */
async function asked(request: object, options: WorldOptions = {}, language = 'en'): Promise<Asked> {
  const world = await aWorld({ clients: [CLIENT], resources: [NOTES, PHOTOS], ...options });
  const browser = world.browser();
  const login = await browser.get(world.authorizePath({ ...request }));
  const fields = {
    username: 'alice',
    password: PASSWORD,
    csrf: hidden(login, 'csrf'),
    request: hidden(login, 'request'),
  };
  const { location: path = '' } = await browser.post('/login', fields);
  return { world, browser, path, page: await browser.get(path, { 'accept-language': language }) };
}

async function allow({ browser, path, page }: Asked): Promise<void> {
  const { status } = await browser.post(path, { decision: 'allow', csrf: hidden(page, 'csrf') });
  expect(status).toBe(303);
}

/** The headings, scopes and facts of a page, one text each. */
function shownOn({ body }: Page): readonly string[] {
  const [above = ''] = body.split('<details>');
  return [...above.matchAll(/<(h2|h3|li|dd)>(.*?)<\/\1>/gs)].map(([, tag, inner = '']) => {
    const text = inner.replaceAll(/<[^>]*>/g, '').trim();
    return `${tag} ${text}`;
  });
}

describe('the consent page about a resource with an owner', () => {
  it.each([
    ['en', 'Notes', 'Read your notes', 'Let <bdi>Shop</bdi> use your account?'],
    ['de-AT, en;q=0.5', 'Notizen', 'Ihre Notizen lesen', 'Darf <bdi>Shop</bdi> Ihr Konto verwenden?'],
  ])(
    'given %s → its name and scopes in that language, with identifier and scope name in the details',
    async (language, ...said) => {
      const [name, description, title] = said;
      const { page } = await asked(AT_NOTES, {}, language);
      expect(page.body).toContain(`<h1>${title}</h1>`);
      expect(page.body).toContain(`<html lang="${language.slice(0, 2)}">`);
      const [shown = '', details = ''] = page.body.split('<details>');
      expect(shown).toContain(`<dd><bdi>${name}</bdi></dd>`);
      expect(shown).toContain(`<li><bdi>${description}</bdi></li>`);
      expect(shown).toContain('<li><code>notes.write</code></li>');
      expect(shown).not.toMatch(new RegExp(`notes\\.read|${NOTES.identifier}`));
      expect(details).toContain(`<bdi>${name}</bdi> <span class="detail">${NOTES.identifier}</span>`);
      expect(details).toContain(`<bdi>${description}</bdi> <code>notes.read</code>`);
      expect(details).not.toContain('notes.write');
    },
  );

  it('given a name in another language only → that name; given none → the identifier', async () => {
    const french = aResource({ displayName: { text: 'Notes', translations: { fr: 'Carnet' } } });
    const named = await asked(AT_NOTES, { resources: [french] }, 'de');
    expect(named.page.body).toContain('<dd><bdi>Notes</bdi></dd>');
    const nameless = await asked(AT_NOTES, { resources: [aResource()] });
    expect(nameless.page.body).toContain(`<dd>${NOTES.identifier}</dd>`);
  });

  it('given texts that are markup → text, and links of clients only', async () => {
    const hostile = '</h3><script>alert(1)</script><a href="https://evil.example">Bank</a>';
    const text = { text: hostile, translations: {} };
    const resource = aResource({
      displayName: text,
      documentationUri: 'https://evil.example/docs',
      policyUri: 'https://evil.example/privacy',
      tosUri: 'https://evil.example/terms',
      scopes: [{ name: 'notes.read', description: text }, ...declared('notes.write')],
    });
    const { page } = await asked(AT_NOTES, { resources: [resource] });
    expect(page.body).not.toMatch(/<script|<a (?!href="\/account\/)/);
    expect(page.body.match(/<bdi>&#60;\/h3&#62;/g)).toHaveLength(4);
  });

  it('given claims of the person beside two resources → above the names of both', async () => {
    const client = { ...CLIENT, scopes: ['openid', 'email'] };
    const request = { ...AT_BOTH, scope: `openid email ${AT_BOTH.scope}` };
    const { page } = await asked(request, { clients: [client] });
    const shown = shownOn(page);
    const address = shown.findIndex((text) => text.startsWith('li Your email address'));
    expect(address).toBeGreaterThan(0);
    expect(shown.findIndex((text) => text.startsWith('h3'))).toBeGreaterThan(address);
  });

  it('given two resources → the scopes of each below its own name', async () => {
    const { page } = await asked(AT_BOTH);
    expect(shownOn(page)).toEqual([
      'h2 It asks for',
      'h3 Notes',
      'li Read your notes',
      `h3 ${PHOTOS.identifier}`,
      'li photos.read',
      'dd shop.example',
      expect.stringContaining('dd Until access is revoked'),
    ]);
  });

  it('given a resource of an owner and two of none → these together, their scopes once', async () => {
    const clients = [{ ...CLIENT, scopes: ['read'], audiences: ['urn:example:a', 'urn:example:b'] }];
    const request = { scope: 'notes.read read', resource: [NOTES.identifier, 'urn:example:a', 'urn:example:b'] };
    const { page } = await asked(request, { clients });
    expect(shownOn(page).slice(1, 6)).toEqual([
      'h3 Notes',
      'li Read your notes',
      'h3 urn:example:a',
      'h3 urn:example:b',
      'li read',
    ]);
  });
});

describe('consent at two resources', () => {
  it('is kept for each with its own scopes, and not asked for again', async () => {
    const opened = await asked(AT_BOTH);
    await allow(opened);
    const { world, browser } = opened;
    const kept = await world.stores.consents.read(world.subject('alice'), CLIENT.uid);
    // The store holds each scope with its MAC.
    expect([...(kept ?? [])].map(([audience, sealed]) => [audience, sealed.map((each) => each.split('"')[0])])).toEqual(
      [
        [NOTES.identifier, ['notes.read']],
        [PHOTOS.identifier, ['photos.read']],
      ],
    );
    const again = await browser.get(world.authorizePath(AT_BOTH));
    expect(again.location).toMatch(/^https:\/\/shop\.example\/callback\?.*code=/);
  });

  it('is asked for what is new at one, and shows what was allowed at the other', async () => {
    const opened = await asked({ scope: 'notes.read', resource: NOTES.identifier });
    await allow(opened);
    const { world, browser } = opened;
    const { location = '' } = await browser.get(world.authorizePath(AT_BOTH));
    expect(shownOn(await browser.get(location)).slice(0, 6)).toEqual([
      'h2 It asks for more than before',
      `h3 ${PHOTOS.identifier}`,
      'li photos.read',
      'h2 You already allowed',
      'h3 Notes',
      'li Read your notes',
    ]);
  });

  it('is asked for a scope that the other resource has now too', async () => {
    const opened = await asked(AT_BOTH);
    await allow(opened);
    const { world, browser } = opened;
    world.setResources([NOTES, { ...PHOTOS, scopes: declared('photos.read', 'notes.read') }]);
    const { location = '' } = await browser.get(world.authorizePath(AT_BOTH));
    expect(shownOn(await browser.get(location)).slice(0, 3)).toEqual([
      'h2 It asks for more than before',
      `h3 ${PHOTOS.identifier}`,
      'li notes.read',
    ]);
  });
});
